//! The credential by which agents listen: signed, short-lived, and good for nothing else.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::Access;
use super::known::default_plan;
use super::signing::Purpose;
use crate::error::{Error, Result};
use crate::model::access::{Caller, Role};
use crate::store::members::Ground;

/// What such a credential begins with: nobody takes it for a key.
const PREFIX: &str = "fwrt_";
/// How long one is good, in milliseconds.
const VALID_MS: i64 = 60 * 60 * 1_000;

/// Somebody who listens: who handed the right on, until when, and which agents are in reach.
pub struct Listening {
    pub caller: Caller,
    /// `None`: all agents of the workspace.
    pub agents: Option<Arc<[Arc<str>]>>,
    /// Whether whoever handed it on may act for them.
    pub acts: bool,
}

/// What is signed.
#[derive(Serialize, Deserialize)]
struct Claims {
    user: Arc<str>,
    workspace: Arc<str>,
    key: Option<Arc<str>>,
    agents: Option<Arc<[Arc<str>]>>,
    /// Not there in credentials that were handed out before it was recorded: these only listen.
    #[serde(default)]
    acts: bool,
    expires_at: i64,
}

impl Access {
    /// Hands out a credential by which these agents of the caller's workspace are listened for, or all of them, and by
    /// which they are acted for where the caller may. Returns it and when it ends: with the caller's own right at the
    /// latest.
    pub async fn hand_out(
        &self,
        caller: &Caller,
        agents: Option<Arc<[Arc<str>]>>,
        acts: bool,
    ) -> Result<(String, i64)> {
        let soon = self.clock.now_ms().saturating_add(VALID_MS);
        let expires_at = caller.expires_at.map_or(soon, |end| end.min(soon));
        let claims = Claims {
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

    /// Whether a text has the form of such a credential.
    pub fn is_handed_out(text: &str) -> bool {
        text.starts_with(PREFIX)
    }

    /// Who shows this credential. Whether its key was revoked meanwhile is asked of the store.
    pub async fn listening(&self, credential: &str) -> Result<Listening> {
        const INVALID: Error = Error::Unauthenticated("the credential is not valid");
        let signed = credential.strip_prefix(PREFIX).ok_or(INVALID)?;
        let claims: Claims = self.verified_claims(Purpose::Realtime, signed).await?.ok_or(INVALID)?;
        if claims.expires_at <= self.clock.now_ms() {
            return Err(Error::Unauthenticated("the credential has expired"));
        }
        // Whoever was made a viewer since acts for nobody.
        let role = if claims.acts { Role::Editor } else { Role::Viewer };
        let member = Ground::Member(claims.workspace.clone(), claims.user.clone(), role);
        let grounds: Vec<Ground> = claims.key.clone().map(Ground::Key).into_iter().chain([member]).collect();
        if self.control.existing_grounds(&grounds).await?.len() < grounds.len() {
            return Err(Error::Unauthenticated("what the credential came from was revoked"));
        }
        // It allows nothing but what a listener does: no scope, the least role for that, and nothing to pay for.
        let caller = Caller {
            user_id: claims.user,
            workspace_id: claims.workspace,
            key_id: claims.key,
            session: None,
            scopes: [].into(),
            opens_all: false,
            expires_at: Some(claims.expires_at),
            role,
            plan: Arc::new(default_plan(&self.policy().settings).begun_at(claims.expires_at)),
            is_lapsed: false,
        };
        Ok(Listening { caller, agents: claims.agents, acts: claims.acts })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::keys::NewKey;
    use crate::clock::{Clock, SystemClock};
    use crate::model::access::Scope;
    use crate::store::Store;

    async fn opened() -> (Arc<Access>, Caller) {
        let store = Store::connect("mem://").await.expect("a store");
        let access = Arc::new(Access::open(&store, Arc::new(SystemClock)).await.expect("access"));
        let (workspace, _) = access.provision("one", None).await.expect("a workspace");
        let new = NewKey { name: "key".into(), scopes: vec![Scope::ApiRead], ..NewKey::default() };
        let made = access.create_key(&workspace.id, &workspace.owner_id, new, None, None).await.expect("a key");
        let caller = access.authenticate(&made.secret.expect("its secret"), None).await.expect("a caller");
        (access, caller)
    }

    #[tokio::test]
    async fn a_credential_names_whom_it_came_from_and_allows_nothing() {
        let (access, caller) = opened().await;
        let agents: Arc<[Arc<str>]> = [Arc::from("a")].into();
        let (credential, expires_at) = access.hand_out(&caller, Some(agents), false).await.expect("signed");
        assert!(expires_at <= SystemClock.now_ms() + VALID_MS);
        let listening = access.listening(&credential).await.expect("it is good");
        assert_eq!(listening.caller.key_id(), caller.key_id());
        assert_eq!(listening.caller.workspace_id(), caller.workspace_id());
        assert!(listening.caller.scopes().is_empty());
        assert_eq!(listening.agents.as_deref(), Some(&[Arc::from("a")][..]));
        assert!(access.authenticate(&credential, None).await.is_err(), "it is no key");
    }

    #[tokio::test]
    async fn a_credential_ends_with_its_key() {
        let (access, caller) = opened().await;
        let (credential, _) = access.hand_out(&caller, None, true).await.expect("signed");
        assert!(access.listening(&credential).await.is_ok());
        access.revoke_key(caller.workspace_id(), caller.key_id().expect("a key"), None).await.expect("revoked");
        assert!(matches!(access.listening(&credential).await, Err(Error::Unauthenticated(_))));
    }

    #[tokio::test]
    async fn a_credential_lasts_no_longer_than_the_right_it_came_from() {
        let (access, caller) = opened().await;
        let caller = Caller { expires_at: Some(SystemClock.now_ms() - 1), ..caller };
        let (credential, _) = access.hand_out(&caller, None, true).await.expect("signed");
        assert!(matches!(access.listening(&credential).await, Err(Error::Unauthenticated(_))));
    }

    #[tokio::test]
    async fn no_other_text_is_a_credential() {
        let (access, caller) = opened().await;
        let (credential, _) = access.hand_out(&caller, None, true).await.expect("signed");
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
