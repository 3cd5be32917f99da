//! Members of workspaces in the control database, and the keys and memberships that grant access.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use surrealdb::types::Value as Record;

use super::departures::{REMOVE_MEMBER, REVOKE_KEYS, removed_id};
use crate::model::access::{Membership, Role, UserRecord};
use crate::store::record::{FieldValue, StoredRecord, field_value, stored_record};
use crate::store::{Database, Error, Result, convert};

stored_record!(Membership as "membership" [] { workspace_id, user_id, role, joined_at });
field_value!(
    Role,
    |record, field| {
        let role = convert::text_field(record, field)?;
        Role::parse(role).ok_or_else(|| Error::corrupt(format!("'{role}' is not a role")))
    },
    |role| convert::text(role.name())
);

/// A key or a membership on which long-lasting access to a workspace depends.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum GrantBasis {
    Key(Arc<str>),
    /// The membership of a user: the id of the workspace, the id of the user, and the minimum role that the access
    /// requires.
    Member(Arc<str>, Arc<str>, Role),
}

/// The statement that deletes the invitations to `$workspace` that `$user` made with a key, a session or a token. If
/// the maker of an invitation to the workspace is not known, the statement also deletes the invitation, unless a key
/// created it.
const END_INVITATIONS: &str = "DELETE invitation WHERE workspace_id = $workspace
    AND (made_by = $user OR (made_by = NONE AND (derived_from ?? ':') CONTAINS ':')) RETURN NONE";

/// The reason why a change of a member was refused, or why a key, a sign-in code or an invitation cannot be created.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AccessFault {
    /// The key or one of its ancestors was revoked, the user has left the workspace, the maker of an invitation is no
    /// longer an owner, or the sign-in code no longer exists.
    Gone,
    /// The new key, or a key that would be derived from it, would have more than the maximum number of ancestors.
    TooDeep,
    /// The user has the maximum number of keys.
    TooManyKeys,
    /// The workspace has the maximum number of invitations.
    TooManyInvitations,
    /// The change would leave the workspace without its owner.
    OwnerStays,
}

/// A result, or the reason why the store rejected the change.
pub type AccessResult<T> = std::result::Result<T, AccessFault>;

/// The statement that fails if the user `$user` is the owner of the workspace `$about`.
const OWNER_STAYS: &str = "IF (SELECT VALUE owner_id FROM ONLY $about) = $user
        { THROW 'the owner of the workspace cannot be removed or given another role' }";

impl Database {
    /// Returns the members of a workspace, in the order in which they joined.
    pub async fn read_members(&self, workspace_id: &str) -> Result<Vec<(Membership, UserRecord)>> {
        let statements =
            "LET $members = (SELECT * FROM member WHERE workspace_id = $workspace ORDER BY joined_at, user_id);
            RETURN $members;
            SELECT *, record::id(id) AS key FROM $members.map(|$member| type::record('user', $member.user_id));";
        let found = self.query(statements, [("workspace", convert::text(workspace_id))]).await?;
        let [_, members, users] = found.as_slice() else { return Ok(Vec::new()) };
        let users: Vec<UserRecord> = convert::list(Some(users))?.map(UserRecord::read).collect::<Result<_>>()?;
        let users: HashMap<&str, &UserRecord> = users.iter().map(|user| (&*user.id, user)).collect();
        let with_user = |member: &Record| {
            let member = Membership::read(member)?;
            let user = users.get(&*member.user_id).copied().cloned();
            let user = user.ok_or_else(|| Error::corrupt(format!("the member '{}' has no user", member.user_id)))?;
            Ok((member, user))
        };
        convert::list(Some(members))?.map(with_user).collect()
    }

    /// Returns the membership of a user in a workspace.
    pub async fn read_membership(&self, workspace_id: &str, user_id: &str) -> Result<Option<Membership>> {
        self.read_first("SELECT * FROM $id", [("id", member_id(workspace_id, user_id))], Membership::read).await
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
            ("content", Record::Object(member.fields())),
            ("user", convert::record_id("user", user.id.to_string())),
            ("email", convert::optional_text(user.email.as_deref())),
            ("verified", Record::Bool(user.email_verified)),
            ("name", convert::optional_text(user.name.as_deref())),
        ];
        let answers = self.query_again(statements, values).await?;
        Ok(answers.contains(&Record::Bool(true)))
    }

    /// Changes the role of a member. If the member loses the role `owner`, deletes the invitations and sign-in codes
    /// that the member made for the workspace. Also deletes invitations to the workspace whose maker is not known,
    /// unless a key created them. Returns whether the member exists.
    ///
    /// Several members may have the role `owner`, but only one of these members is the owner of the workspace. Fails
    /// with [`AccessFault::OwnerStays`] if the member is the owner of the workspace and `role` is not `owner`.
    pub async fn write_role(&self, workspace_id: &str, user_id: &str, role: Role) -> Result<AccessResult<bool>> {
        let values = [
            ("id", member_id(workspace_id, user_id)),
            ("role", convert::text(role.name())),
            ("workspace", convert::text(workspace_id)),
            ("user", convert::text(user_id)),
            ("about", convert::record_id("workspace", workspace_id)),
        ];
        let statements = format!(
            "BEGIN;
            IF $role != 'owner' {{ {OWNER_STAYS} }};
            LET $was = (SELECT VALUE role FROM ONLY $id);
            UPDATE $id SET role = $role RETURN NONE;
            IF $was = 'owner' AND $role != 'owner' {{
                {END_INVITATIONS};
                DELETE sign_in_code WHERE workspace_id = $workspace AND user_id = $user RETURN NONE
            }};
            RETURN {{ was_member: $was != NONE }};
            COMMIT;"
        );
        let was_member = |found: Vec<Record>| change_of(&found).map(|change| convert::bool_field(change, "was_member"));
        refused(self.query_again(&statements, values).await.and_then(was_member))
    }

    /// Makes a member the owner of the workspace, and gives the member the role `owner`. Returns whether the member
    /// exists.
    pub async fn write_owner(&self, workspace_id: &str, user_id: &str) -> Result<bool> {
        let values = [
            ("id", member_id(workspace_id, user_id)),
            ("user", convert::text(user_id)),
            ("about", convert::record_id("workspace", workspace_id)),
        ];
        // Always changes the membership, so that a concurrent removal or change of the role conflicts.
        let statements = "BEGIN;
            LET $was_member = record::exists($id);
            IF $was_member {
                UPDATE $id SET role = 'owner', keys_made = (keys_made ?? 0) + 1 RETURN NONE;
                UPDATE $about SET owner_id = $user RETURN NONE
            };
            RETURN { was_member: $was_member };
            COMMIT;";
        let found = self.query_again(statements, values).await?;
        Ok(convert::bool_field(change_of(&found)?, "was_member"))
    }

    /// Removes a user from a workspace. Deletes the user's keys and sign-in codes for the workspace, and the
    /// invitations that the user or these keys created. Also deletes invitations to the workspace whose maker is not
    /// known, unless a key created them. Records the removal and the revocation of the keys. Returns the ids of the
    /// deleted keys, or `None` if the user was not a member. Fails with [`AccessFault::OwnerStays`] if the user is the
    /// owner of the workspace.
    pub async fn delete_member(
        &self,
        workspace_id: &str,
        user_id: &str,
        now: i64,
    ) -> Result<AccessResult<Option<Vec<Arc<str>>>>> {
        let values = [
            ("id", member_id(workspace_id, user_id)),
            ("workspace", convert::text(workspace_id)),
            ("user", convert::text(user_id)),
            ("about", convert::record_id("workspace", workspace_id)),
            ("removed", removed_id(workspace_id, user_id)),
            ("now", convert::integer(now)),
        ];
        let statements = format!(
            "BEGIN;
            {OWNER_STAYS};
            LET $was_member = record::exists($id);
            DELETE $id RETURN NONE;
            LET $keys = (SELECT VALUE record::id(id) FROM key WHERE workspace_id = $workspace AND user_id = $user);
            {REVOKE_KEYS}
            DELETE key WHERE workspace_id = $workspace AND user_id = $user RETURN NONE;
            DELETE sign_in_code WHERE workspace_id = $workspace AND user_id = $user RETURN NONE;
            DELETE invitation WHERE derived_from IN $keys RETURN NONE;
            IF $was_member {{ {REMOVE_MEMBER} {END_INVITATIONS} }};
            RETURN {{ was_member: $was_member, keys: $keys }};
            COMMIT;"
        );
        let id = |id: &Record| convert::text_of(id).ok_or_else(|| Error::corrupt("the id of a key is not a string"));
        let deleted_keys = |found: Vec<Record>| -> Result<Option<Vec<Arc<str>>>> {
            let response = change_of(&found)?;
            if !convert::bool_field(response, "was_member") {
                return Ok(None);
            }
            convert::list(convert::field(response, "keys").ok())?.map(id).collect::<Result<_>>().map(Some)
        };
        refused(self.query_again(&statements, values).await.and_then(deleted_keys))
    }

    /// Returns the given keys and memberships that still exist. Leaves out memberships whose role is below the required
    /// minimum role, keys that have expired, and keys with an ancestor that no longer exists.
    pub async fn existing_bases(&self, bases: &[GrantBasis], now: i64) -> Result<HashSet<GrantBasis>> {
        let ids = convert::array(bases.iter().map(|basis| basis.stored().0));
        let statements = "LET $found = (SELECT id, role, expires_at, ancestors ?? [] AS ancestors FROM $ids);
            RETURN $found;
            SELECT VALUE record::id(id) FROM $found.map(|$one| $one.ancestors).flatten()
                .map(|$one| type::record('key', $one));";
        let found = self.query(statements, [("ids", ids)]).await?;
        let [_, found, above] = found.as_slice() else { return Ok(HashSet::new()) };
        let above: Vec<&Record> = convert::list(Some(above))?.collect();
        let mut existing = Vec::new();
        for record in convert::list(Some(found))? {
            let Record::Object(fields) = record else { continue };
            if convert::optional_int_field(record, "expires_at").is_some_and(|expires_at| expires_at <= now) {
                continue;
            }
            if convert::list(fields.get("ancestors"))?.any(|ancestor| !above.contains(&ancestor)) {
                continue;
            }
            let role =
                if let Some(Record::String(_)) = fields.get("role") { Some(Role::read(record, "role")?) } else { None };
            existing.push((fields.get("id").cloned().unwrap_or(Record::None), role));
        }
        let is_held = |basis: &&GrantBasis| {
            let (id, least) = basis.stored();
            existing.iter().any(|(found, role)| *found == id && *role >= least)
        };
        Ok(bases.iter().filter(is_held).cloned().collect())
    }
}

/// Returns the object with the field `was_member` from the results of statements that change a member.
fn change_of(found: &[Record]) -> Result<&Record> {
    let missing = || Error::corrupt("the statements that change a member returned no field 'was_member'");
    convert::find_with(found, "was_member").ok_or_else(missing)
}

/// Converts an error to an [`AccessFault`] if a check in the statements has thrown the error. Returns all other errors
/// unchanged.
pub(super) fn refused<T>(result: Result<T>) -> Result<AccessResult<T>> {
    match result {
        Ok(value) => Ok(Ok(value)),
        Err(Error::Database(error)) if error.to_string().contains("origin gone") => Ok(Err(AccessFault::Gone)),
        Err(Error::Database(error)) if error.to_string().contains("origin too deep") => Ok(Err(AccessFault::TooDeep)),
        Err(Error::Database(error)) if error.to_string().contains("too many keys") => Ok(Err(AccessFault::TooManyKeys)),
        Err(Error::Database(error)) if error.to_string().contains("too many invitations") => {
            Ok(Err(AccessFault::TooManyInvitations))
        }
        Err(Error::Database(error))
            if error.to_string().contains("the owner of the workspace cannot be removed or given another role") =>
        {
            Ok(Err(AccessFault::OwnerStays))
        }
        Err(error) => Err(error),
    }
}

impl GrantBasis {
    /// Returns the id of the record of the key or the membership, and the minimum role.
    fn stored(&self) -> (Record, Option<Role>) {
        match self {
            GrantBasis::Key(id) => (convert::record_id("key", id.to_string()), None),
            GrantBasis::Member(workspace, user, least) => (member_id(workspace, user), Some(*least)),
        }
    }
}

pub(in crate::store) fn member_id(workspace_id: &str, user_id: &str) -> Record {
    convert::record_id("member", convert::key([convert::text(user_id), convert::text(workspace_id)]))
}
