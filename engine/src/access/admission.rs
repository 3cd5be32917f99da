//! Users who come with a token: who is known, who joins, and who gets a workspace of their own.

use std::sync::Arc;
use std::time::Duration;

use uuid::Uuid;

use super::Access;
use super::known::{KnownUser, default_plan, not_a_member};
use super::tokens::Identity;
use crate::error::{Error, Result};
use crate::model::access::{Invitation, UserRecord, WorkspaceRecord};
use crate::model::plan::PlanStatus;
use crate::store;
use crate::store::retry;
use crate::store::sign_up::FoundUser;

impl Access {
    /// The user whom a valid token stands for. The first one makes the user, and has them join what they are invited
    /// to, or get a workspace of their own.
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
        let email = identity.verified_email();
        match self.control.find_user(&identity.user_id, email).await? {
            Some(found) if found.is_invited => {
                let invitations = self.invitations(email).await?;
                self.control.join(&identity.user_id, &invitations, self.clock.now_ms()).await?;
                self.known.forget();
                Err(again())
            }
            Some(found) if !is_as_told(&found.user, identity) => {
                self.control.write_user_about(&told(identity)).await?;
                self.known.forget();
                Err(again())
            }
            Some(FoundUser { user, memberships, .. }) => {
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

    /// Writes a user who comes for the first time, in one transaction with what they get.
    async fn sign_up(&self, identity: &Identity) -> Result<()> {
        let now = self.clock.now_ms();
        let invitations = self.invitations(identity.verified_email()).await?;
        let own = if invitations.is_empty() { Some(self.own_workspace(identity, now)?) } else { None };
        let plan = default_plan(&self.policy().settings).begun_at(now);
        let plan = Some(plan).filter(|plan| plan.status == PlanStatus::Trialing);
        let user = UserRecord { plan, ..told(identity) };
        self.control.write_user(&user, own.as_ref(), &invitations, now).await?;
        tracing::info!(user = %user.id, "a user came for the first time");
        Ok(())
    }

    /// The workspace that nobody's guest gets, if the operator lets them have one.
    fn own_workspace(&self, identity: &Identity, now: i64) -> Result<WorkspaceRecord> {
        let settings = &self.policy().settings;
        let domain = identity.verified_email().and_then(|email| email.rsplit_once('@')).map(|(_, domain)| domain);
        let allowed = &settings.allowed_email_domains;
        let may = allowed.is_empty() || domain.is_some_and(|domain| allowed.iter().any(|allowed| allowed == domain));
        if !settings.auto_provision || !may {
            return Err(not_a_member());
        }
        // Made of the user's id, so that two servers at once make the same one, and one of them fails.
        let id =
            Uuid::new_v5(&Uuid::NAMESPACE_OID, format!("workspace of {}", identity.user_id).as_bytes()).to_string();
        let name = identity.name.clone().or_else(|| identity.email.clone());
        Ok(WorkspaceRecord {
            slug: format!("w-{}", &id[..8]),
            id: id.into(),
            name: name.map_or_else(|| "Workspace".to_owned(), |name| name.to_string()),
            owner_id: identity.user_id.clone(),
            created_at: now,
        })
    }

    async fn invitations(&self, email: Option<&str>) -> Result<Vec<Invitation>> {
        match email {
            Some(email) => Ok(self.control.invitations_of(email).await?),
            None => Ok(Vec::new()),
        }
    }
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
