//! Invitations from the view of the invited user: listing, accepting and declining. Users join an existing workspace
//! only by invitation.

use std::collections::HashMap;
use std::sync::Arc;

use tracing::Instrument;

use super::Access;
use super::credential_cache::CachedUser;
use crate::error::{Error, ErrorCode, Result};
use crate::model::access::{self, Invitation, Membership, WorkspaceRecord};
use crate::store;

/// A user who signed in with a token of an identity provider. The user may have no workspace.
pub struct SignedIn {
    access: Arc<Access>,
    user: Arc<CachedUser>,
}

impl SignedIn {
    /// Returns the id of the user.
    pub fn user_id(&self) -> &str {
        &self.user.record.id
    }
}

/// An invitation and its workspace.
pub type Proposal = (Invitation, WorkspaceRecord);

impl Access {
    /// Returns the user that a token identifies. Rejects keys: a key belongs to one workspace, so a key must not join
    /// other workspaces.
    pub async fn signed_in(self: &Arc<Self>, bearer: &str) -> Result<SignedIn> {
        if access::is_key(bearer) {
            self.authenticate(bearer, None).await?;
            let message = "this operation needs a token of the identity provider, not a key";
            return Err(Error::forbidden(ErrorCode::SessionRequired, message));
        }
        let identity = self.policy().tokens.verify(bearer, self.clock.now_ms()).await?;
        Ok(SignedIn { access: self.clone(), user: self.admit(&identity).await? })
    }

    /// Returns the given invitations that are still open. An open invitation has not expired, and if a key created the
    /// invitation, the key still exists.
    pub(super) async fn still_open(&self, invitations: Vec<Invitation>) -> Result<Vec<Invitation>> {
        let now = self.clock.now_ms();
        let key = |invitation: &Invitation| invitation.derived_from.clone().filter(|origin| !origin.contains(':'));
        let keys: Vec<Arc<str>> = invitations.iter().filter_map(key).collect();
        let existing = if keys.is_empty() { Default::default() } else { self.control.living_keys(&keys).await? };
        let is_open = |invitation: &Invitation| {
            invitation.expires_at.is_none_or(|end| end > now)
                && key(invitation).is_none_or(|key| existing.contains(&key))
        };
        Ok(invitations.into_iter().filter(is_open).collect())
    }

    async fn proposals(&self, email: &str) -> Result<Vec<Proposal>> {
        let invitations = self.still_open(self.control.invitations_of(email, self.clock.now_ms()).await?).await?;
        let mut workspaces = HashMap::new();
        let mut proposals = Vec::with_capacity(invitations.len());
        for invitation in invitations {
            let id = invitation.workspace_id.clone();
            if !workspaces.contains_key(&id) {
                workspaces.insert(id.clone(), self.workspace(&id).await?);
            }
            proposals.extend(workspaces.get(&id).cloned().map(|workspace| (invitation, workspace)));
        }
        Ok(proposals)
    }

    async fn accept(&self, id: &str, email: &str, user_id: &str) -> Result<(Membership, WorkspaceRecord)> {
        let acceptance = self.control.accept_invitation(id, email, user_id, self.clock.now_ms());
        let member = self.forgetting(acceptance).await?.ok_or_else(|| Error::not_found("invitation", id))?;
        let workspace = self.workspace(&member.workspace_id).await?;
        Ok((member, workspace))
    }
}

impl SignedIn {
    /// Returns the open invitations to the user's verified address, oldest first. Considers only the oldest 200
    /// unexpired invitations. The list is empty if the user has no verified address.
    pub async fn invitations(&self) -> Result<Vec<Proposal>> {
        match self.user.record.verified_email() {
            Some(email) => self.access.proposals(email).await,
            None => Ok(Vec::new()),
        }
    }

    /// Joins the workspace of an invitation, and deletes the invitation. Existing members keep their role.
    pub async fn accept(&self, id: &str) -> Result<(Membership, WorkspaceRecord)> {
        let (email, access) = (self.email(id)?, self.access.clone());
        let (id, user_id) = (id.to_owned(), self.user.record.id.clone());
        // Runs in a separate task, so that the cache is cleared even if the client disconnects.
        let task = async move { access.accept(&id, &email, &user_id).await };
        match tokio::spawn(task.in_current_span()).await {
            Ok(result) => result,
            Err(error) if error.is_cancelled() => Err(Error::Unavailable(store::Error::Closing)),
            Err(error) => Err(Error::internal(error)),
        }
    }

    /// Declines an invitation and deletes it.
    pub async fn decline(&self, id: &str) -> Result<()> {
        match self.access.control.decline_invitation(id, &self.email(id)?).await? {
            true => Ok(()),
            false => Err(Error::not_found("invitation", id)),
        }
    }

    /// Returns the user's verified address. If the user has no verified address, fails with the error that the
    /// invitation `id` does not exist: users without a verified address have no invitations.
    fn email(&self, id: &str) -> Result<Arc<str>> {
        let email = self.user.record.email.clone().filter(|_| self.user.record.email_verified);
        email.ok_or_else(|| Error::not_found("invitation", id))
    }
}
