//! Admits users who present a token. Creates the records of new users and, if the settings allow this, a workspace for
//! each user.

use std::sync::Arc;

use uuid::Uuid;

use super::Access;
use super::credential_cache::{CachedUser, default_plan};
use super::tokens::TokenIdentity;
use crate::error::{Error, ErrorCode, Result};
use crate::model::access::{Membership, UserRecord, WorkspaceRecord};
use crate::model::address;
use crate::model::plan::PlanStatus;
use crate::store;
use crate::store::control::sign_up::FoundUser;
use crate::store::retry;

impl Access {
    /// Returns the user that a valid token identifies. The user's first token creates the user record, and a token with
    /// other claims about the user updates the record. If the settings give the user a workspace of their own, any
    /// token creates this workspace if it is missing. A user who is removed from all other workspaces therefore still
    /// has a workspace. If the settings give the user no workspace, a new user is admitted only with an invitation, and
    /// has no workspace before accepting an invitation.
    pub(super) async fn admit(&self, identity: &TokenIdentity) -> Result<Arc<CachedUser>> {
        if let Some(user) = self.known.user(&identity.user_id)
            && matches_claims(&user.record, identity)
        {
            return Ok(user);
        }
        // An attempt ends with a conflict if it has written records, or if another server or request wrote the user
        // first. The next attempt reads the user again.
        retry::after_conflicts(|| self.try_admit(identity)).await
    }

    async fn try_admit(&self, identity: &TokenIdentity) -> Result<Arc<CachedUser>> {
        let changes = self.known.changes();
        match self.control.find_user(&identity.user_id).await? {
            Some(found) if !matches_claims(&found.user, identity) => {
                self.control.write_user_about(&user_record(identity)).await?;
                self.known.forget();
                Err(retry_error())
            }
            Some(found) if self.lacks_own_workspace(identity, &found.memberships) => {
                self.control.write_own_workspace(&self.own_workspace(identity)).await?;
                self.known.forget();
                Err(retry_error())
            }
            Some(FoundUser { user, memberships }) => {
                let user = Arc::new(CachedUser::new(user, memberships, &self.policy().settings));
                if self.exclusive {
                    self.known.keep_user(&user, changes);
                }
                Ok(user)
            }
            None => {
                self.sign_up(identity).await?;
                Err(retry_error())
            }
        }
    }

    /// Creates a new user. If the settings give the user a workspace of their own, the same transaction creates that
    /// workspace. Otherwise fails if the user has no open invitation.
    async fn sign_up(&self, identity: &TokenIdentity) -> Result<()> {
        let own = self.may_own(identity).then(|| self.own_workspace(identity));
        if own.is_none() && !self.is_invited(identity).await? {
            let message = "the user is in no workspace and has no open invitation to a verified email address";
            return Err(Error::forbidden(ErrorCode::NotAMember, message));
        }
        let plan = default_plan(&self.policy().settings).begun_at(self.clock.now_ms());
        let plan = Some(plan).filter(|plan| plan.status == PlanStatus::Trialing);
        let user = UserRecord { plan, ..user_record(identity) };
        self.control.write_user(&user, own.as_ref()).await?;
        tracing::info!(user = %user.id, "created a user at the first sign-in");
        Ok(())
    }

    async fn is_invited(&self, identity: &TokenIdentity) -> Result<bool> {
        let Some(email) = identity.verified_email() else { return Ok(false) };
        let invitations = self.control.invitations_of(email, self.clock.now_ms()).await?;
        Ok(!self.still_open(invitations).await?.is_empty())
    }

    fn lacks_own_workspace(&self, identity: &TokenIdentity, memberships: &[Membership]) -> bool {
        let own = own_workspace_id(identity);
        self.may_own(identity) && !memberships.iter().any(|member| *member.workspace_id == *own)
    }

    /// Returns whether the settings give the user a workspace of their own.
    fn may_own(&self, identity: &TokenIdentity) -> bool {
        let settings = &self.policy().settings;
        let domain = identity.verified_email().and_then(address::domain);
        let allowed = &settings.allowed_email_domains;
        let is_allowed =
            allowed.is_empty() || domain.is_some_and(|domain| allowed.iter().any(|allowed| allowed == domain));
        settings.auto_provision && is_allowed
    }

    fn own_workspace(&self, identity: &TokenIdentity) -> WorkspaceRecord {
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

/// Returns the id of the user's own workspace. The id is derived from the user's id, so two servers that admit the same
/// user create only one workspace.
fn own_workspace_id(identity: &TokenIdentity) -> String {
    Uuid::new_v5(&Uuid::NAMESPACE_OID, format!("workspace of {}", identity.user_id).as_bytes()).to_string()
}

/// Returns a conflict error. The caller then retries and reads the records that were just written.
fn retry_error() -> Error {
    Error::Unavailable(store::Error::Conflict)
}

/// Returns whether the stored user record agrees with the claims of the token.
fn matches_claims(user: &UserRecord, identity: &TokenIdentity) -> bool {
    user.email == identity.email && user.email_verified == identity.email_verified && user.name == identity.name
}

fn user_record(identity: &TokenIdentity) -> UserRecord {
    UserRecord {
        id: identity.user_id.clone(),
        email: identity.email.clone(),
        email_verified: identity.email_verified,
        name: identity.name.clone(),
        plan: None,
    }
}
