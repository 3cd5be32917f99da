//! Credentials for listening to agent feeds. A credential is signed and short-lived. A credential allows only
//! listening, unless its creator also requested the right to act for the agents.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::Access;
use super::credential_cache::default_plan;
use super::signing::Purpose;
use crate::error::{Error, Result};
use crate::model::access::{Caller, Role};
use crate::store::control::members::GrantBasis;

/// The prefix that distinguishes credentials from keys.
const PREFIX: &str = "fwrt_";
/// The maximum lifetime of a credential, in milliseconds.
const VALID_MS: i64 = 60 * 60 * 1_000;

/// A verified credential. `caller` is the creator of the credential, but has only the rights of the credential and
/// expires with the credential.
pub struct ListenerCredential {
    pub caller: Caller,
    /// The covered agents. `None` means all agents of the workspace.
    pub agents: Option<Arc<[Arc<str>]>>,
    /// Whether the credential also allows acting for the agents.
    pub acts: bool,
}

/// The signed contents of a credential.
#[derive(Serialize, Deserialize)]
struct CredentialClaims {
    user: Arc<str>,
    workspace: Arc<str>,
    key: Option<Arc<str>>,
    agents: Option<Arc<[Arc<str>]>>,
    /// Whether the credential also allows acting for the agents. Older credentials lack this field and allow only
    /// listening.
    #[serde(default)]
    acts: bool,
    expires_at: i64,
}

impl Access {
    /// Issues a credential for listening to the feeds of the given agents of the caller's workspace. If `agents` is
    /// `None`, the credential covers all agents. With `acts`, the credential also allows acting for the agents. Returns
    /// the credential and its expiry, which is never later than the expiry of the caller's own key or token.
    pub async fn issue_listener_credential(
        &self,
        caller: &Caller,
        agents: Option<Arc<[Arc<str>]>>,
        acts: bool,
    ) -> Result<(String, i64)> {
        let soon = self.clock.now_ms().saturating_add(VALID_MS);
        let expires_at = caller.expires_at.map_or(soon, |end| end.min(soon));
        let claims = CredentialClaims {
            user: caller.user_id.clone(),
            workspace: caller.workspace_id.clone(),
            key: caller.key_id.clone(),
            agents,
            acts,
            expires_at,
        };
        let signed = self.sign_claims(Purpose::Realtime, &claims).await?;
        Ok((format!("{PREFIX}{signed}"), expires_at))
    }

    /// Returns whether a text has the prefix of a credential for listening.
    pub fn is_listener_credential(text: &str) -> bool {
        text.starts_with(PREFIX)
    }

    /// Verifies a credential. Also checks in the store that the key of the credential's creator is still valid, and
    /// that the creator is still a member with the required role.
    pub async fn listening(&self, credential: &str) -> Result<ListenerCredential> {
        const INVALID: Error = Error::Unauthenticated("the credential is not valid");
        let signed = credential.strip_prefix(PREFIX).ok_or(INVALID)?;
        let claims: CredentialClaims = self.verified_claims(Purpose::Realtime, signed).await?.ok_or(INVALID)?;
        if claims.expires_at <= self.clock.now_ms() {
            return Err(Error::Unauthenticated("the credential has expired"));
        }
        // A credential for acting is rejected if its creator has become a viewer, who may not act.
        let role = if claims.acts { Role::Editor } else { Role::Viewer };
        let member = GrantBasis::Member(claims.workspace.clone(), claims.user.clone(), role);
        let bases: Vec<GrantBasis> = claims.key.clone().map(GrantBasis::Key).into_iter().chain([member]).collect();
        if self.control.existing_bases(&bases, self.clock.now_ms()).await?.len() < bases.len() {
            return Err(Error::Unauthenticated(
                "the key of the credential was revoked or has expired, or the user is no longer a member with the \
                 required role",
            ));
        }
        // The caller has no scopes and the lowest sufficient role, so the credential allows only the actions for which
        // it was issued. The caller is treated as subscribed, because listening needs no subscription.
        let caller = Caller {
            user_id: claims.user,
            workspace_id: claims.workspace,
            key_id: claims.key,
            session: None,
            scopes: [].into(),
            opens_all: false,
            agents: claims.agents.clone(),
            above: [].into(),
            expires_at: Some(claims.expires_at),
            role,
            plan: Arc::new(default_plan(&self.policy().settings).begun_at(claims.expires_at)),
            is_lapsed: false,
        };
        Ok(ListenerCredential { caller, agents: claims.agents, acts: claims.acts })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::keys::{DerivedKeys, NewKey};
    use crate::clock::{Clock, SystemClock};
    use crate::model::access::Scope;
    use crate::store::Store;

    async fn opened() -> (Arc<Access>, Caller) {
        let store = Store::connect("mem://").await.expect("a store");
        let access = Arc::new(Access::open(&store, Arc::new(SystemClock)).await.expect("access"));
        let (workspace, _) = access.provision("one", None).await.expect("a workspace");
        let new = NewKey { name: "key".into(), scopes: vec![Scope::ApiRead], ..NewKey::default() };
        let made = access.create_key(None, &workspace.id, &workspace.owner_id, new, None, None).await.expect("a key");
        let caller = access.authenticate(&made.secret.expect("its secret"), None).await.expect("a caller");
        (access, caller)
    }

    #[tokio::test]
    async fn a_credential_identifies_its_key_but_is_not_accepted_as_a_key() {
        let (access, caller) = opened().await;
        let agents: Arc<[Arc<str>]> = [Arc::from("a")].into();
        let (credential, expires_at) =
            access.issue_listener_credential(&caller, Some(agents), false).await.expect("signed");
        assert!(expires_at <= SystemClock.now_ms() + VALID_MS);
        let listening = access.listening(&credential).await.expect("a valid credential");
        assert_eq!(listening.caller.key_id(), caller.key_id());
        assert_eq!(listening.caller.workspace_id(), caller.workspace_id());
        assert!(listening.caller.scopes().is_empty());
        assert_eq!(listening.agents.as_deref(), Some(&[Arc::from("a")][..]));
        assert!(access.authenticate(&credential, None).await.is_err(), "a credential was accepted as a key");
    }

    #[tokio::test]
    async fn a_credential_is_rejected_after_its_key_is_revoked() {
        let (access, caller) = opened().await;
        let (credential, _) = access.issue_listener_credential(&caller, None, true).await.expect("signed");
        assert!(access.listening(&credential).await.is_ok());
        access
            .revoke_key(caller.workspace_id(), caller.key_id().expect("a key"), None, DerivedKeys::Refuse)
            .await
            .expect("revoked");
        assert!(matches!(access.listening(&credential).await, Err(Error::Unauthenticated(_))));
    }

    #[tokio::test]
    async fn a_credential_expires_no_later_than_the_key_or_token_of_its_caller() {
        let (access, caller) = opened().await;
        let caller = Caller { expires_at: Some(SystemClock.now_ms() - 1), ..caller };
        let (credential, _) = access.issue_listener_credential(&caller, None, true).await.expect("signed");
        assert!(matches!(access.listening(&credential).await, Err(Error::Unauthenticated(_))));
    }

    #[tokio::test]
    async fn altered_and_malformed_credentials_are_rejected() {
        let (access, caller) = opened().await;
        let (credential, _) = access.issue_listener_credential(&caller, None, true).await.expect("signed");
        for place in (0..credential.len()).step_by(7) {
            let mut changed = credential.clone().into_bytes();
            changed[place] = if changed[place] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(changed).expect("letters");
            if changed != credential {
                assert!(access.listening(&changed).await.is_err(), "{place}");
            }
        }
        for text in ["", "fwrt_", "fwrt_..", "fwrt_a.b.c", &"fwrt_x".repeat(10_000)] {
            assert!(matches!(access.listening(text).await, Err(Error::Unauthenticated(_))), "{text}");
        }
    }
}
