//! The bearer token of a request, and the identity that the token proves.

use std::sync::{Arc, OnceLock};

use foldwork_engine::model::access::Caller;
use poem::Request;
use poem::http::header::AUTHORIZATION;

/// The header that selects one of a user's workspaces in a request, and names the workspace in a response.
pub const WORKSPACE: &str = "foldwork-workspace";

/// The sender of an authenticated request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SenderIdentity {
    pub user_id: Option<Arc<str>>,
    /// The id of the key that was sent as the token. The id is not a secret.
    pub key_id: Option<Arc<str>>,
    pub workspace_id: Option<Arc<str>>,
}

impl From<&Caller> for SenderIdentity {
    fn from(caller: &Caller) -> SenderIdentity {
        SenderIdentity {
            user_id: Some(caller.user_id().into()),
            key_id: caller.key_id().map(Arc::from),
            workspace_id: Some(caller.workspace_id().into()),
        }
    }
}

/// The result of a request's authentication: an identity if the request's token is valid. Clones share the identity.
#[derive(Clone, Default)]
pub struct VerifiedIdentity(Arc<OnceLock<SenderIdentity>>);

impl VerifiedIdentity {
    /// Returns whether authentication has accepted the request's token.
    pub fn is_marked(&self) -> bool {
        self.identity().is_some()
    }

    /// Returns the identity if authentication has accepted the request's token.
    pub fn identity(&self) -> Option<&SenderIdentity> {
        self.0.get()
    }

    /// Marks the request's token as valid.
    pub fn mark(&self, identity: SenderIdentity) {
        // Ignores a second identity, because a token that is checked twice has the same identity.
        let _ = self.0.set(identity);
    }
}

/// Returns the bearer token in the request's `Authorization` header.
pub fn bearer(request: &Request) -> Option<&str> {
    let value = request.headers().get(AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim()).filter(|token| !token.is_empty())
}
