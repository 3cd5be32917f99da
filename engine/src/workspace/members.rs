//! Manages the members of the workspace, their roles, invitations and plans, and returns the caller's profile.

use super::call_context::Operation;
use super::rights::{Administrator, Owner, ProfileReader, Reader};
use crate::access::members::Member;
pub use crate::access::plans::NewPlan;
use crate::error::{Error, Result};
use crate::mailbox::offboarding::Departure;
use crate::model::access::{Invitation, Role, Scope, UserRecord};
use crate::model::address;
use crate::model::facts::Assignee;
use crate::model::plan::UserPlan;

/// The maximum length of an e-mail address, in bytes.
const MAX_EMAIL_BYTES: usize = 320;

impl ProfileReader {
    /// Returns the caller's user record. The record contains the address only if the caller has the scope `email:read`.
    pub async fn profile(&self) -> Result<UserRecord> {
        let user = self.context.access().user(self.caller().user_id()).await?;
        let shows = self.caller().holds(Scope::EmailRead);
        Ok(UserRecord { email: user.email.filter(|_| shows), ..user })
    }
}

impl Reader {
    /// Returns the members of the workspace, then its invitations. The records contain e-mail addresses, which must be
    /// hidden from users without the scope `email:read`.
    pub async fn list_members(&self) -> Result<Vec<Member>> {
        self.context.access().members_of(&self.record().id).await
    }

    /// Returns whether a user is a member of this workspace.
    pub async fn is_member(&self, user_id: &str) -> Result<bool> {
        self.context.is_member(user_id).await
    }
}

impl Owner {
    /// Invites an e-mail address. A user who signs in with this verified address may accept the invitation. If the
    /// caller used a key, the invitation expires with the key.
    pub async fn invite(&self, email: &str, role: Role) -> Result<Invitation> {
        let email = address::normal(email);
        let is_address = email.len() <= MAX_EMAIL_BYTES
            && email.split_once('@').is_some_and(|(name, domain)| !name.is_empty() && !domain.is_empty())
            && !email.chars().any(|c| c.is_whitespace() || c.is_control());
        if !is_address {
            let message = format!("expected an e-mail address of at most {MAX_EMAIL_BYTES} bytes");
            return Err(Error::invalid_at("/email", message));
        }
        Operation::perform(self, |operation| async move {
            operation.access().invite(operation.context().record(), operation.caller(), &email, role).await
        })
        .await
    }

    /// Changes the role of a member or of an invitation.
    pub async fn change_role(&self, id: &str, role: Role) -> Result<Member> {
        let id = id.to_owned();
        Operation::perform(self, |operation| async move {
            operation.access().change_role(operation.context().record(), operation.caller(), &id, role).await
        })
        .await
    }

    /// Makes a member the owner of the workspace, and gives the member the role owner.
    pub async fn change_owner(&self, id: &str) -> Result<Member> {
        let id = id.to_owned();
        Operation::perform(self, |operation| async move {
            operation.access().change_owner(operation.context().record(), &id).await
        })
        .await
    }

    /// Removes a member from the workspace, with the member's keys, invitations and sign-in codes. The open tasks of
    /// the member go to the successor, or become unassigned. If `id` is the id of an invitation, withdraws the
    /// invitation.
    pub async fn remove_member(&self, id: &str, successor: Option<Assignee>) -> Result<()> {
        let (id, left) = (id.to_owned(), Departure::member(id, successor));
        self.context.check_successor(&left.who, left.successor.as_ref()).await?;
        Operation::perform(self, |operation| async move {
            let removed = operation.access().remove_member(operation.context().record(), &id).await;
            // If an earlier removal ended before the tasks were handed over, this removal finds no member, but hands
            // over the tasks.
            if matches!(removed, Ok(()) | Err(Error::NotFound { .. })) {
                operation.hand_over(&left).await?;
            }
            removed
        })
        .await
    }
}

impl Administrator {
    /// Sets the plan of a user.
    pub async fn set_plan(&self, user_id: &str, new: NewPlan) -> Result<UserPlan> {
        let user_id = user_id.to_owned();
        Operation::perform(self, |operation| async move { operation.access().set_plan(&user_id, new).await }).await
    }
}
