//! Members of workspaces: their roles, invitations and removal.

use uuid::Uuid;

use super::Access;
use super::keys::refused;
use crate::error::{Error, ErrorCode, Result};
use crate::model::access::{Caller, Invitation, Membership, Role, UserRecord, WorkspaceRecord};

/// A member of a workspace, or an invitation to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Member {
    Joined(Membership, UserRecord),
    Invited(Invitation),
}

impl Access {
    /// Returns the role of a user in a workspace, or `None` if the user is not a member.
    pub async fn role_of(&self, workspace_id: &str, user_id: &str) -> Result<Option<Role>> {
        Ok(self.control.read_membership(workspace_id, user_id).await?.map(|member| member.role))
    }

    /// Returns the members of a workspace, oldest first, and then its open invitations, oldest first.
    pub async fn members_of(&self, workspace_id: &str) -> Result<Vec<Member>> {
        let joined = self.control.read_members(workspace_id).await?;
        let invited = self.still_open(self.control.read_invitations(workspace_id).await?).await?;
        let joined = joined.into_iter().map(|(member, user)| Member::Joined(member, user));
        Ok(joined.chain(invited.into_iter().map(Member::Invited)).collect())
    }

    /// Invites an address, which must be in its normal form. If the caller used a key, the invitation expires with that
    /// key.
    pub async fn invite(
        &self,
        workspace: &WorkspaceRecord,
        by: &Caller,
        email: &str,
        role: Role,
    ) -> Result<Invitation> {
        let name = format!("invitation/{}/{email}", workspace.id);
        let invitation = Invitation {
            // Inviting the same address twice results in one invitation, with the later role.
            id: Uuid::new_v5(&Uuid::NAMESPACE_OID, name.as_bytes()).to_string().into(),
            workspace_id: workspace.id.clone(),
            email: email.into(),
            role,
            created_at: self.clock.now_ms(),
            expires_at: by.expires_at.filter(|_| by.key_id.is_some()),
            derived_from: Some(by.origin()),
        };
        let _turn = self.change_locks.lock(&workspace.id).await;
        let joined = self.control.read_members(&workspace.id).await?;
        if joined.iter().any(|(_, user)| user.verified_email() == Some(email)) {
            let message = format!("a user with the email address '{email}' is already a member of the workspace");
            return Err(Error::conflict(ErrorCode::AlreadyMember, message));
        }
        self.control.write_invitation(&invitation, &by.user_id).await?.map_err(refused)?;
        Ok(invitation)
    }

    /// Changes the role of a member or of an invitation. If an owner loses the role, the owner's invitations and
    /// sign-in codes end.
    pub async fn change_role(&self, workspace: &WorkspaceRecord, by: &Caller, id: &str, role: Role) -> Result<Member> {
        let _turn = self.change_locks.lock(&workspace.id).await;
        let changed = self.forgetting(self.control.write_role(&workspace.id, id, role)).await?;
        if !changed.map_err(refused)? {
            let invited = self.control.write_invited_role(&workspace.id, id, role, &by.user_id).await?;
            return invited.map_err(refused)?.map(Member::Invited).ok_or_else(|| Error::not_found("member", id));
        }
        self.held.end_above(&workspace.id, id, Some(role));
        self.member(&workspace.id, id).await
    }

    /// Makes a member the owner of the workspace. The former owner keeps the role `owner`, but can now get a lower role
    /// or be removed.
    pub async fn change_owner(&self, workspace: &WorkspaceRecord, id: &str) -> Result<Member> {
        let _turn = self.change_locks.lock(&workspace.id).await;
        let is_member = self.forgetting(self.control.write_owner(&workspace.id, id)).await?;
        match self.member(&workspace.id, id).await? {
            member if is_member => Ok(member),
            _ => Err(Error::conflict(
                ErrorCode::NotJoined,
                "an invited person must accept the invitation before becoming the owner",
            )),
        }
    }

    async fn member(&self, workspace_id: &str, id: &str) -> Result<Member> {
        let members = self.members_of(workspace_id).await?;
        members.into_iter().find(|member| member.id() == id).ok_or_else(|| Error::not_found("member", id))
    }

    /// Removes a member from a workspace, with the member's keys, invitations and sign-in codes for the workspace. If
    /// `id` is the id of an invitation, withdraws the invitation.
    pub async fn remove_member(&self, workspace: &WorkspaceRecord, id: &str) -> Result<()> {
        let _turn = self.change_locks.lock(&workspace.id).await;
        let removal = self.control.delete_member(&workspace.id, id, self.clock.now_ms());
        if let Some(keys) = self.forgetting(removal).await?.map_err(refused)? {
            self.held.end_above(&workspace.id, id, None);
            // These keys, and the keys derived from these keys, may also have granted access to other workspaces.
            self.end_keys(&keys).await;
            return Ok(());
        }
        match self.control.delete_invitation(&workspace.id, id).await? {
            true => Ok(()),
            false => Err(Error::not_found("member", id)),
        }
    }
}

impl Member {
    /// Returns the id of the user or of the invitation.
    pub fn id(&self) -> &str {
        match self {
            Member::Joined(member, _) => &member.user_id,
            Member::Invited(invitation) => &invitation.id,
        }
    }
}
