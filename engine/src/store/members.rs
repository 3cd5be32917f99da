//! Members of workspaces in the control database, and addresses that are invited.

use std::collections::HashSet;
use std::sync::Arc;

use surrealdb::types::{Array, RecordIdKey, Value as Record};

use super::users::read_user;
use super::{Database, Error, Result, convert};
use crate::model::access::{Invitation, Membership, Role, UserRecord};

/// By what somebody is in a workspace for longer: a key, or a membership.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Ground {
    Key(Arc<str>),
    /// The workspace and the user.
    Member(Arc<str>, Arc<str>),
}

impl Database {
    /// Everybody in a workspace, whoever joined first coming first.
    pub async fn read_members(&self, workspace_id: &str) -> Result<Vec<(Membership, UserRecord)>> {
        let statements =
            "LET $members = (SELECT * FROM member WHERE workspace_id = $workspace ORDER BY joined_at, user_id);
            RETURN $members;
            SELECT *, record::id(id) AS key FROM $members.map(|$member| type::record('user', $member.user_id));";
        let found = self.query(statements, [("workspace", convert::text(workspace_id))]).await?;
        let [_, members, users] = found.as_slice() else { return Ok(Vec::new()) };
        let users: Vec<UserRecord> = convert::list(Some(users))?.map(read_user).collect::<Result<_>>()?;
        let with_user = |member: &Record| {
            let member = read_member(member)?;
            let user = users.iter().find(|user| user.id == member.user_id).cloned();
            let user = user.ok_or_else(|| Error::Corrupt("a member is no user".into()))?;
            Ok((member, user))
        };
        convert::list(Some(members))?.map(with_user).collect()
    }

    /// What a user is in a workspace.
    pub async fn read_membership(&self, workspace_id: &str, user_id: &str) -> Result<Option<Membership>> {
        let found = self.query("SELECT * FROM $id", [("id", member_id(workspace_id, user_id))]).await?;
        convert::list(found.first())?.next().map(read_member).transpose()
    }

    /// Gives a member another role. Returns whether there is such a member.
    pub async fn write_role(&self, workspace_id: &str, user_id: &str, role: Role) -> Result<bool> {
        let values = [("id", member_id(workspace_id, user_id)), ("role", convert::text(role.name()))];
        let found = self.query_again("UPDATE $id SET role = $role RETURN AFTER", values).await?;
        Ok(convert::list(found.first())?.next().is_some())
    }

    /// Takes somebody out of a workspace, with all their keys and codes there. Returns whether they were in it.
    pub async fn delete_member(&self, workspace_id: &str, user_id: &str) -> Result<bool> {
        let values = [
            ("id", member_id(workspace_id, user_id)),
            ("workspace", convert::text(workspace_id)),
            ("user", convert::text(user_id)),
        ];
        let statements = "BEGIN;
            DELETE $id RETURN BEFORE;
            DELETE key WHERE workspace_id = $workspace AND user_id = $user RETURN NONE;
            DELETE sign_in_code WHERE workspace_id = $workspace AND user_id = $user RETURN NONE;
            COMMIT;";
        let found = self.query_again(statements, values).await?;
        Ok(found.iter().any(|result| convert::list(Some(result)).is_ok_and(|mut rows| rows.next().is_some())))
    }

    /// Those of some grounds that are still there.
    pub async fn existing_grounds(&self, grounds: &[Ground]) -> Result<HashSet<Ground>> {
        let ids: Vec<Record> = grounds.iter().map(ground_id).collect();
        let found = self.query("SELECT VALUE id FROM $ids", [("ids", Record::Array(ids.into()))]).await?;
        let found: Vec<&Record> = convert::list(found.first())?.collect();
        Ok(grounds.iter().filter(|ground| found.contains(&&ground_id(ground))).cloned().collect())
    }

    /// The open invitations of a workspace, the oldest first.
    pub async fn read_invitations(&self, workspace_id: &str) -> Result<Vec<Invitation>> {
        let statement =
            "SELECT *, record::id(id) AS key FROM invitation WHERE workspace_id = $workspace ORDER BY created_at, id";
        let found = self.query(statement, [("workspace", convert::text(workspace_id))]).await?;
        convert::list(found.first())?.map(read_invitation).collect()
    }

    /// The open invitations of an address, the oldest first.
    pub async fn invitations_of(&self, email: &str) -> Result<Vec<Invitation>> {
        let statement = "SELECT *, record::id(id) AS key FROM invitation WHERE email = $email ORDER BY created_at, id";
        let found = self.query(statement, [("email", convert::text(email))]).await?;
        convert::list(found.first())?.map(read_invitation).collect()
    }

    /// Writes an invitation, in the place of one of the same id.
    pub async fn write_invitation(&self, invitation: &Invitation) -> Result<()> {
        let content = convert::fields([
            ("workspace_id", convert::text(&invitation.workspace_id)),
            ("email", convert::text(&invitation.email)),
            ("role", convert::text(invitation.role.name())),
            ("created_at", convert::integer(invitation.created_at)),
        ]);
        let values = [("id", invitation_id(&invitation.id)), ("content", Record::Object(content))];
        self.query_again("UPSERT $id CONTENT $content RETURN NONE", values).await.map(drop)
    }

    /// Takes an invitation of a workspace back. Returns whether there was one.
    pub async fn delete_invitation(&self, workspace_id: &str, id: &str) -> Result<bool> {
        let values = [("id", invitation_id(id)), ("workspace", convert::text(workspace_id))];
        let found = self.query_again("DELETE $id WHERE workspace_id = $workspace RETURN BEFORE", values).await?;
        Ok(convert::list(found.first())?.next().is_some())
    }
}

fn ground_id(ground: &Ground) -> Record {
    match ground {
        Ground::Key(id) => convert::record_id("key", id.to_string()),
        Ground::Member(workspace_id, user_id) => member_id(workspace_id, user_id),
    }
}

pub(super) fn invitation_id(id: &str) -> Record {
    convert::record_id("invitation", id.to_owned())
}

pub(super) fn member_id(workspace_id: &str, user_id: &str) -> Record {
    let key = vec![convert::text(user_id), convert::text(workspace_id)];
    convert::record_id("member", RecordIdKey::Array(Array::from(key)))
}

pub(super) fn member_content(member: &Membership) -> Record {
    Record::Object(convert::fields([
        ("workspace_id", convert::text(&member.workspace_id)),
        ("user_id", convert::text(&member.user_id)),
        ("role", convert::text(member.role.name())),
        ("joined_at", convert::integer(member.joined_at)),
    ]))
}

pub(super) fn read_member(record: &Record) -> Result<Membership> {
    Ok(Membership {
        workspace_id: convert::text_field(record, "workspace_id")?.into(),
        user_id: convert::text_field(record, "user_id")?.into(),
        role: read_role(record)?,
        joined_at: convert::int_field(record, "joined_at")?,
    })
}

fn read_invitation(record: &Record) -> Result<Invitation> {
    Ok(Invitation {
        id: convert::text_field(record, "key")?.into(),
        workspace_id: convert::text_field(record, "workspace_id")?.into(),
        email: convert::text_field(record, "email")?.into(),
        role: read_role(record)?,
        created_at: convert::int_field(record, "created_at")?,
    })
}

fn read_role(record: &Record) -> Result<Role> {
    Role::parse(convert::text_field(record, "role")?).ok_or_else(|| Error::Corrupt("a role is not known".into()))
}
