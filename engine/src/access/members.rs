//! Members: who is in a workspace and as what, whom its owners invite, and who leaves.

use uuid::Uuid;

use super::Access;
use super::keys::refused;
use crate::error::{Error, Result};
use crate::model::access::{Caller, Invitation, Membership, Role, UserRecord, WorkspaceRecord};
use crate::store::members::Ground;

/// Somebody who is in a workspace, or is invited to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Member {
    Joined(Membership, UserRecord),
    Invited(Invitation),
}

impl Access {
    /// What a user is in a workspace: `None` for somebody who is no user of it. This is the one place that decides it.
    pub async fn role_of(&self, workspace_id: &str, user_id: &str) -> Result<Option<Role>> {
        Ok(self.control.read_membership(workspace_id, user_id).await?.map(|member| member.role))
    }

    /// Everybody in a workspace, and after them those who are invited; the oldest first.
    pub async fn members_of(&self, workspace_id: &str) -> Result<Vec<Member>> {
        let joined = self.control.read_members(workspace_id).await?;
        let invited = self.still_open(self.control.read_invitations(workspace_id).await?).await?;
        let joined = joined.into_iter().map(|(member, user)| Member::Joined(member, user));
        Ok(joined.chain(invited.into_iter().map(Member::Invited)).collect())
    }

    /// Invites an address, in its normal form, on behalf of an owner. The invitation ends with the key that made it.
    pub async fn invite(
        &self,
        workspace: &WorkspaceRecord,
        by: &Caller,
        email: &str,
        role: Role,
    ) -> Result<Invitation> {
        let name = format!("invitation/{}/{email}", workspace.id);
        let invitation = Invitation {
            // The same address twice is one invitation, with the later role.
            id: Uuid::new_v5(&Uuid::NAMESPACE_OID, name.as_bytes()).to_string().into(),
            workspace_id: workspace.id.clone(),
            email: email.into(),
            role,
            created_at: self.clock.now_ms(),
            expires_at: by.expires_at.filter(|_| by.key_id.is_some()),
            derived_from: Some(by.origin()),
        };
        let _turn = self.turns.take(&workspace.id).await;
        let taken = Error::conflict("already_member", "somebody with this address is a member already");
        let joined = self.control.read_members(&workspace.id).await?;
        if joined.iter().any(|(_, user)| user.verified_email() == Some(email)) {
            return Err(taken);
        }
        self.control.write_invitation(&invitation, &by.user_id).await?.map_err(refused)?;
        Ok(invitation)
    }

    /// Gives a member, or somebody who is invited, another role.
    pub async fn change_role(&self, workspace: &WorkspaceRecord, id: &str, role: Role) -> Result<Member> {
        keep_founder(workspace, id)?;
        let _turn = self.turns.take(&workspace.id).await;
        let changed = self.control.write_role(&workspace.id, id, role).await;
        self.known.forget();
        if !changed? {
            let invited = self.control.write_invited_role(&workspace.id, id, role).await?;
            return invited.map(Member::Invited).ok_or_else(|| Error::not_found("member", id));
        }
        self.held.end_above(&workspace.id, id, Some(role));
        let members = self.members_of(&workspace.id).await?;
        members.into_iter().find(|member| member.id() == id).ok_or_else(|| Error::not_found("member", id))
    }

    /// Takes a member out of a workspace, with all their keys there, or takes an invitation back.
    pub async fn remove_member(&self, workspace: &WorkspaceRecord, id: &str) -> Result<()> {
        keep_founder(workspace, id)?;
        let _turn = self.turns.take(&workspace.id).await;
        let removed = self.control.delete_member(&workspace.id, id).await;
        self.known.forget();
        if let Some(keys) = removed? {
            self.held.end_above(&workspace.id, id, None);
            // The keys may have opened other workspaces too, and so may what was derived from them there.
            for key in keys {
                self.held.end(&Ground::Key(key.clone()));
                self.sweep(&key).await;
            }
            return Ok(());
        }
        match self.control.delete_invitation(&workspace.id, id).await? {
            true => Ok(()),
            false => Err(Error::not_found("member", id)),
        }
    }
}

/// Whose workspace it is stays its owner: there is always somebody who decides who may be in it.
fn keep_founder(workspace: &WorkspaceRecord, id: &str) -> Result<()> {
    match *workspace.owner_id == *id {
        true => Err(Error::conflict("workspace_owner", "whose workspace it is stays its owner")),
        false => Ok(()),
    }
}

impl Member {
    /// The user's id, or the invitation's.
    pub fn id(&self) -> &str {
        match self {
            Member::Joined(member, _) => &member.user_id,
            Member::Invited(invitation) => &invitation.id,
        }
    }
}
