//! Members of workspaces in the control database, and the keys and memberships that grant access.

use std::collections::HashSet;
use std::sync::Arc;

use surrealdb::types::{Array, RecordIdKey, Value as Record};

use super::users::read_user;
use super::{Database, Error, Result, convert};
use crate::model::access::{Membership, Role, UserRecord};

/// A key or a membership on which long-lasting access to a workspace depends.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum GrantBasis {
    Key(Arc<str>),
    /// The membership of a user: the id of the workspace, the id of the user, and the minimum role that the access
    /// requires.
    Member(Arc<str>, Arc<str>, Role),
}

impl Database {
    /// Returns the members of a workspace, in the order in which they joined.
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
            let user = user.ok_or_else(|| Error::Corrupt("the user of a member is missing".into()))?;
            Ok((member, user))
        };
        convert::list(Some(members))?.map(with_user).collect()
    }

    /// Returns the membership of a user in a workspace.
    pub async fn read_membership(&self, workspace_id: &str, user_id: &str) -> Result<Option<Membership>> {
        let found = self.query("SELECT * FROM $id", [("id", member_id(workspace_id, user_id))]).await?;
        convert::list(found.first())?.next().map(read_member).transpose()
    }

    /// Writes a membership and its user. Does not change existing records. Returns whether the membership is new.
    pub async fn restore_member(&self, member: &Membership, user: &UserRecord) -> Result<bool> {
        let statements = "BEGIN;
            IF !record::exists($user) {
                CREATE $user SET email = $email, email_verified = $verified, name = $name RETURN NONE
            };
            LET $is_new = !record::exists($id);
            IF $is_new { CREATE $id CONTENT $content RETURN NONE };
            RETURN $is_new;
            COMMIT;";
        let values = [
            ("id", member_id(&member.workspace_id, &member.user_id)),
            ("content", member_content(member)),
            ("user", convert::record_id("user", user.id.to_string())),
            ("email", convert::optional_text(user.email.as_deref())),
            ("verified", Record::Bool(user.email_verified)),
            ("name", convert::optional_text(user.name.as_deref())),
        ];
        let answers = self.query_again(statements, values).await?;
        Ok(answers.contains(&Record::Bool(true)))
    }

    /// Changes the role of a member. Returns whether the member exists.
    pub async fn write_role(&self, workspace_id: &str, user_id: &str, role: Role) -> Result<bool> {
        let values = [("id", member_id(workspace_id, user_id)), ("role", convert::text(role.name()))];
        let found = self.query_again("UPDATE $id SET role = $role RETURN AFTER", values).await?;
        Ok(convert::list(found.first())?.next().is_some())
    }

    /// Removes a user from a workspace. Deletes the user's keys and sign-in codes for the workspace, and the
    /// invitations that these keys created. Returns the ids of the deleted keys, or `None` if the user was not a
    /// member.
    pub async fn delete_member(&self, workspace_id: &str, user_id: &str) -> Result<Option<Vec<Arc<str>>>> {
        let values = [
            ("id", member_id(workspace_id, user_id)),
            ("workspace", convert::text(workspace_id)),
            ("user", convert::text(user_id)),
        ];
        let statements = "BEGIN;
            LET $was_member = record::exists($id);
            DELETE $id RETURN NONE;
            LET $keys = (SELECT VALUE record::id(id) FROM key WHERE workspace_id = $workspace AND user_id = $user);
            DELETE key WHERE workspace_id = $workspace AND user_id = $user RETURN NONE;
            DELETE sign_in_code WHERE workspace_id = $workspace AND user_id = $user RETURN NONE;
            DELETE invitation WHERE derived_from IN $keys RETURN NONE;
            RETURN {was_member: $was_member, keys: $keys};
            COMMIT;";
        let found = self.query_again(statements, values).await?;
        let response = found.iter().find_map(|result| match result {
            Record::Object(object) if object.contains_key("was_member") => Some(object),
            _ => None,
        });
        let response = response.ok_or_else(|| Error::Corrupt("deleting a member returned no result".into()))?;
        if response.get("was_member") != Some(&Record::Bool(true)) {
            return Ok(None);
        }
        let id = |id: &Record| match id {
            Record::String(id) => Ok(Arc::from(id.as_str())),
            _ => Err(Error::Corrupt("the id of a key is not a string".into())),
        };
        convert::list(response.get("keys"))?.map(id).collect::<Result<_>>().map(Some)
    }

    /// Returns the given keys and memberships that still exist. A membership with a role below its minimum role is left
    /// out.
    pub async fn existing_grounds(&self, bases: &[GrantBasis]) -> Result<HashSet<GrantBasis>> {
        let ids: Vec<Record> = bases.iter().map(ground_id).collect();
        let found = self.query("SELECT id, role FROM $ids", [("ids", Record::Array(ids.into()))]).await?;
        let mut existing = Vec::new();
        for record in convert::list(found.first())? {
            let Record::Object(fields) = record else { continue };
            let role = if let Some(Record::String(_)) = fields.get("role") { Some(read_role(record)?) } else { None };
            existing.push((fields.get("id").cloned().unwrap_or(Record::None), role));
        }
        let is_held = |basis: &&GrantBasis| {
            let (id, least) = (ground_id(basis), basis.least_role());
            existing.iter().any(|(found, role)| *found == id && *role >= least)
        };
        Ok(bases.iter().filter(is_held).cloned().collect())
    }
}

impl GrantBasis {
    fn least_role(&self) -> Option<Role> {
        match self {
            GrantBasis::Key(_) => None,
            GrantBasis::Member(_, _, least) => Some(*least),
        }
    }
}

fn ground_id(basis: &GrantBasis) -> Record {
    match basis {
        GrantBasis::Key(id) => convert::record_id("key", id.to_string()),
        GrantBasis::Member(workspace_id, user_id, _) => member_id(workspace_id, user_id),
    }
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

pub(super) fn read_role(record: &Record) -> Result<Role> {
    Role::parse(convert::text_field(record, "role")?).ok_or_else(|| Error::Corrupt("unknown role".into()))
}
