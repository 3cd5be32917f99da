//! Users who come with a token: who is known, who comes for the first time, and who gets a workspace of their own.

use std::sync::Arc;
use std::time::Duration;

use uuid::Uuid;

use super::Access;
use super::known::{KnownUser, default_plan, not_a_member};
use super::tokens::Identity;
use crate::error::{Error, Result};
use crate::model::access::{Membership, UserRecord, WorkspaceRecord};
use crate::model::address;
use crate::model::plan::PlanStatus;
use crate::store;
use crate::store::retry;
use crate::store::sign_up::FoundUser;

impl Access {
    /// The user whom a valid token stands for. The first one makes the user. A user whom the settings give a workspace of
    /// their own gets it with any token, so that whoever is removed from all other workspaces still has one. Without such
    /// a workspace only an invited user is admitted, who is in no workspace until they accept.
    pub(super) async fn admit(&self, identity: &Identity) -> Result<Arc<KnownUser>> {
        if let Some(user) = self.known.user(&identity.user_id)
            && is_as_told(&user.record, identity)
        {
            return Ok(user);
        }
        for wait in retry::waits() {
            match self.try_admit(identity).await {
                // Another server, or another request, was faster: it is looked again.
                Err(Error::Unavailable(store::Error::Conflict)) => {
                    tokio::time::sleep(Duration::from_millis(wait)).await
                }
                other => return other,
            }
        }
        self.try_admit(identity).await
    }

    async fn try_admit(&self, identity: &Identity) -> Result<Arc<KnownUser>> {
        let changes = self.known.changes();
        match self.control.find_user(&identity.user_id).await? {
            Some(found) if !is_as_told(&found.user, identity) => {
                self.control.write_user_about(&told(identity)).await?;
                self.known.forget();
                Err(again())
            }
            Some(found) if self.lacks_own_workspace(identity, &found.memberships) => {
                self.control.write_own_workspace(&self.own_workspace(identity)).await?;
                self.known.forget();
                Err(again())
            }
            Some(FoundUser { user, memberships }) => {
                let user = Arc::new(KnownUser::new(user, memberships, &self.policy().settings));
                if self.exclusive {
                    self.known.keep_user(&user, changes);
                }
                Ok(user)
            }
            None => {
                self.sign_up(identity).await?;
                Err(again())
            }
        }
    }

    /// Writes a user who comes for the first time, in one transaction with a workspace of their own where the settings
    /// give them one.
    async fn sign_up(&self, identity: &Identity) -> Result<()> {
        let own = self.may_own(identity).then(|| self.own_workspace(identity));
        if own.is_none() && !self.is_invited(identity).await? {
            return Err(not_a_member());
        }
        let plan = default_plan(&self.policy().settings).begun_at(self.clock.now_ms());
        let plan = Some(plan).filter(|plan| plan.status == PlanStatus::Trialing);
        let user = UserRecord { plan, ..told(identity) };
        self.control.write_user(&user, own.as_ref()).await?;
        tracing::info!(user = %user.id, "a user came for the first time");
        Ok(())
    }

    async fn is_invited(&self, identity: &Identity) -> Result<bool> {
        let Some(email) = identity.verified_email() else { return Ok(false) };
        let invitations = self.control.invitations_of(email, self.clock.now_ms()).await?;
        Ok(!self.still_open(invitations).await?.is_empty())
    }

    fn lacks_own_workspace(&self, identity: &Identity, memberships: &[Membership]) -> bool {
        let own = own_workspace_id(identity);
        self.may_own(identity) && !memberships.iter().any(|member| *member.workspace_id == *own)
    }

    /// Whether the operator lets a user have a workspace of their own.
    fn may_own(&self, identity: &Identity) -> bool {
        let settings = &self.policy().settings;
        let domain = identity.verified_email().and_then(address::domain);
        let allowed = &settings.allowed_email_domains;
        let is_allowed =
            allowed.is_empty() || domain.is_some_and(|domain| allowed.iter().any(|allowed| allowed == domain));
        settings.auto_provision && is_allowed
    }

    fn own_workspace(&self, identity: &Identity) -> WorkspaceRecord {
        let id = own_workspace_id(identity);
        let name = identity.name.clone().or_else(|| identity.email.clone());
        WorkspaceRecord {
            slug: format!("w-{}", &id[..8]),
            id: id.into(),
            name: name.map_or_else(|| "Workspace".to_owned(), |name| name.to_string()),
            owner_id: identity.user_id.clone(),
            created_at: self.clock.now_ms(),
        }
    }
}

/// Made of the user's id, so that two servers at once make the same workspace.
fn own_workspace_id(identity: &Identity) -> String {
    Uuid::new_v5(&Uuid::NAMESPACE_OID, format!("workspace of {}", identity.user_id).as_bytes()).to_string()
}

/// What was written is read at the next look.
fn again() -> Error {
    Error::Unavailable(store::Error::Conflict)
}

/// Whether what is known of a user is what their issuer says.
fn is_as_told(user: &UserRecord, identity: &Identity) -> bool {
    user.email == identity.email && user.email_verified == identity.email_verified && user.name == identity.name
}

fn told(identity: &Identity) -> UserRecord {
    UserRecord {
        id: identity.user_id.clone(),
        email: identity.email.clone(),
        email_verified: identity.email_verified,
        name: identity.name.clone(),
        plan: None,
    }
}
