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
use crate::store::retry;

impl Access {
    /// Returns the user that a valid token identifies. The user's first token creates the user record, and a token with
    /// other claims about the user updates the record. If the settings give the user a workspace of their own, any
    /// token creates this workspace if it is missing. A user who is removed from all other workspaces therefore still
    /// has a workspace. If the settings give the user no workspace, a new user is admitted only with an invitation, and
    /// has no workspace before accepting an invitation.
    pub(super) async fn admit(&self, identity: &TokenIdentity) -> Result<Arc<CachedUser>> {
        if let Some(user) = self.known.user(&identity.user.id)
            && matches_claims(&user.record, &identity.user)
        {
            return Ok(user);
        }
        // An attempt ends with a conflict if it has written records, or if another server or request wrote the user
        // first. The next attempt reads the user again.
        retry::after_conflicts(|| self.try_admit(identity)).await
    }

    async fn try_admit(&self, identity: &TokenIdentity) -> Result<Arc<CachedUser>> {
        let changes = self.known.changes();
        match self.control.find_user(&identity.user.id).await? {
            Some(found) if !matches_claims(&found.user, &identity.user) => {
                self.control.write_user_about(&identity.user).await?;
                self.known.forget();
            }
            Some(found) if self.lacks_own_workspace(identity, &found.memberships) => {
                self.control.write_own_workspace(&self.own_workspace(identity)).await?;
                self.known.forget();
            }
            Some(found) => {
                let user = Arc::new(CachedUser::new(found, &self.policy().settings));
                if self.exclusive {
                    self.known.keep_user(&user, changes);
                }
                return Ok(user);
            }
            None => self.sign_up(identity).await?,
        }
        // The conflict makes the caller retry, and read the records that were just written.
        Err(Error::Unavailable(store::Error::Conflict))
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
        let user = UserRecord { plan, ..identity.user.clone() };
        self.control.write_user(&user, own.as_ref()).await?;
        tracing::info!(user = %user.id, "created a user at the first sign-in");
        Ok(())
    }

    async fn is_invited(&self, identity: &TokenIdentity) -> Result<bool> {
        let Some(email) = identity.user.verified_email() else { return Ok(false) };
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
        let domain = identity.user.verified_email().and_then(address::domain);
        let allowed = &settings.allowed_email_domains;
        let is_allowed =
            allowed.is_empty() || domain.is_some_and(|domain| allowed.iter().any(|allowed| allowed == domain));
        settings.auto_provision && is_allowed
    }

    fn own_workspace(&self, identity: &TokenIdentity) -> WorkspaceRecord {
        let id = own_workspace_id(identity);
        let name = identity.user.name.clone().or_else(|| identity.user.email.clone());
        WorkspaceRecord {
            slug: format!("w-{}", &id[..8]),
            id: id.into(),
            name: name.map_or_else(|| "Workspace".to_owned(), |name| name.to_string()),
            owner_id: identity.user.id.clone(),
            created_at: self.clock.now_ms(),
        }
    }
}

/// Returns the id of the user's own workspace. The id is derived from the user's id, so two servers that admit the same
/// user create only one workspace.
fn own_workspace_id(identity: &TokenIdentity) -> String {
    Uuid::new_v5(&Uuid::NAMESPACE_OID, format!("workspace of {}", identity.user.id).as_bytes()).to_string()
}

/// Returns whether the stored user record agrees with the claims of the token.
fn matches_claims(user: &UserRecord, claimed: &UserRecord) -> bool {
    user.email == claimed.email && user.email_verified == claimed.email_verified && user.name == claimed.name
}
