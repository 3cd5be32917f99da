//! Sign-in of users: finds known users, and writes new users together with their own workspaces.

use surrealdb::types::Value as Record;

use super::catalog::owner_of;
use super::members::member_id;
use super::workspaces::{NOT_BEING_DELETED, deletion_id};
use crate::model::access::{Membership, UserRecord, WorkspaceRecord};
use crate::store::record::StoredRecord;
use crate::store::{Database, Result, convert, variables};

/// A user and the user's memberships, the oldest first.
pub struct FoundUser {
    pub user: UserRecord,
    pub memberships: Vec<Membership>,
}

impl Database {
    /// Returns the user with this id.
    pub async fn find_user(&self, id: &str) -> Result<Option<FoundUser>> {
        let values = [("id", convert::record_id("user", id.to_owned())), ("name", convert::text(id))];
        let statements = "SELECT *, record::id(id) AS key FROM $id;
            SELECT * FROM member WHERE user_id = $name ORDER BY joined_at, workspace_id;";
        let answers = self.query(statements, values).await?;
        let [user, members] = answers.as_slice() else { return Ok(None) };
        let Some(user) = convert::list(Some(user))?.next().map(UserRecord::read).transpose()? else { return Ok(None) };
        let memberships = convert::list(Some(members))?.map(Membership::read).collect::<Result<_>>()?;
        Ok(Some(FoundUser { user, memberships }))
    }

    /// Writes a new user, and the user's own workspace if `own` is given. Fails with
    /// [`Error::Conflict`](crate::store::Error::Conflict) if the user already exists, or if `own` has the id of a
    /// removed workspace whose data is still being deleted.
    pub async fn write_user(&self, user: &UserRecord, own: Option<&WorkspaceRecord>) -> Result<()> {
        let about = [("id", convert::record_id("user", user.id.to_string())), ("about", Record::Object(user.fields()))];
        let values = variables(about.into_iter().chain(own.into_iter().flat_map(owned)));
        let own = if own.is_some() { [NOT_BEING_DELETED, OWN_WORKSPACE].concat() } else { String::new() };
        let statements = format!("BEGIN; CREATE $id CONTENT $about RETURN NONE; {own} COMMIT;");
        self.query_bound(&statements, values).await.map(drop)
    }

    /// Writes an existing user's own workspace, and the user's membership in this workspace. Does not change existing
    /// records. Fails with [`Error::Conflict`](crate::store::Error::Conflict) while the data of a removed workspace
    /// with the same id is being deleted.
    pub async fn write_own_workspace(&self, own: &WorkspaceRecord) -> Result<()> {
        self.query_again(&format!("BEGIN; {NOT_BEING_DELETED} {OWN_WORKSPACE} COMMIT;"), owned(own)).await.map(drop)
    }
}

const OWN_WORKSPACE: &str = "
IF !record::exists($workspace) { CREATE $workspace CONTENT $own RETURN NONE };
IF !record::exists($member) { CREATE $member CONTENT $membership RETURN NONE };";

fn owned(own: &WorkspaceRecord) -> [(&'static str, Record); 5] {
    let owner = owner_of(own);
    [
        ("workspace", convert::record_id("workspace", own.id.to_string())),
        ("deletion", deletion_id(&own.id)),
        ("own", Record::Object(own.fields())),
        ("member", member_id(&owner.workspace_id, &owner.user_id)),
        ("membership", Record::Object(owner.fields())),
    ]
}
