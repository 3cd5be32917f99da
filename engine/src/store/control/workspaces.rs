//! Reads all workspaces and all users of the store in pages, and deletes workspaces.
//!
//! The deletion of a workspace has its own record, so that due deletions are found without reading the records of
//! workspaces. After the workspace was removed, the record of the deletion stays for some time. While this record
//! exists, other servers close the workspace, and no server creates the workspace again before its data is deleted.

use std::ops::Bound;
use std::sync::Arc;

use surrealdb::types::{RecordIdKey, RecordIdKeyRange, Value as Record};

use super::sign_up::FoundUser;
use crate::model::access::{Membership, Role, UserRecord, WorkspaceRecord};
use crate::store::record::{StoredRecord, stored_record};
use crate::store::{Database, Error, Result, Store, convert, database_name, retry};

/// The deletion of a workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkspaceDeletion {
    pub workspace_id: Arc<str>,
    /// The time at which the deletion is due, in milliseconds since the epoch. `None` after the deletion was canceled.
    pub delete_at: Option<i64>,
    /// The value of `delete_at` at the last notification of the owners. `None` if the owners have not been notified
    /// yet.
    pub told: Option<i64>,
    /// The time at which the workspace was removed from the control database, in milliseconds since the epoch. The
    /// deletion of the workspace's data begins at this time.
    pub removed_at: Option<i64>,
    /// The time at which the data was deleted for the last time, in milliseconds since the epoch. The data is deleted
    /// repeatedly until every server has closed the workspace. `None` until then.
    pub cleared_at: Option<i64>,
}

stored_record!(WorkspaceDeletion as "deletion of a workspace" [workspace_id] {
    delete_at, told, removed_at, cleared_at
});

/// A workspace and its state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedWorkspace {
    pub record: WorkspaceRecord,
    /// The time at which the workspace is due for deletion, in milliseconds since the epoch. `None` if no deletion is
    /// planned.
    pub delete_at: Option<i64>,
}

/// The keys and members that had access to a removed workspace.
#[derive(Debug, Default)]
pub struct RemovedAccess {
    pub keys: Vec<Arc<str>>,
    pub members: Vec<Arc<str>>,
}

/// The statement that fails while the data of the workspace is being deleted. `$deletion` is the record of the
/// deletion.
pub(super) const NOT_BEING_DELETED: &str =
    "IF record::exists($deletion) AND $deletion.removed_at != NONE { THROW 'stale head' };";

/// The transaction that removes a workspace and all access to the workspace, if the deletion is due and the workspace
/// has not been removed yet.
const REMOVE: &str = "
BEGIN;
LET $found = (SELECT * FROM ONLY $deletion);
LET $due = $found != NONE AND $found.removed_at = NONE AND $found.delete_at != NONE AND $found.delete_at <= $now;
LET $keys = IF $due { (SELECT VALUE record::id(id) FROM key WHERE workspace_id = $name) } ELSE { [] };
LET $members = IF $due { (SELECT VALUE user_id FROM member WHERE workspace_id = $name) } ELSE { [] };
IF $due {
    UPDATE $deletion SET removed_at = $now RETURN NONE;
    DELETE key WHERE workspace_id = $name RETURN NONE;
    DELETE member WHERE workspace_id = $name RETURN NONE;
    DELETE sign_in_code WHERE workspace_id = $name RETURN NONE;
    DELETE invitation WHERE workspace_id = $name OR derived_from IN $keys RETURN NONE;
    DELETE $workspace RETURN NONE
};
RETURN {due: $due, keys: $keys, members: $members};
COMMIT;";

impl Store {
    /// Deletes the database of a workspace. Succeeds if the database does not exist.
    pub async fn remove_workspace(&self, workspace_id: &str) -> Result<()> {
        // The check of a deadline needs a database.
        let control = self.existing_database(crate::store::CONTROL).await?;
        // The name cannot inject statements, because it consists of ASCII letters, digits and underscores. The
        // statement runs in a transaction with a deadline, because a workspace with this id may be created again later.
        let statements = format!("BEGIN; REMOVE DATABASE IF EXISTS {}; COMMIT;", database_name(workspace_id)?);
        retry::after_conflicts(|| control.query(&statements, [])).await.map(drop)
    }
}

impl Database {
    /// Returns at most `limit` workspaces after the given id, in the order of their ids.
    pub async fn workspace_page(&self, after: Option<&str>, limit: usize) -> Result<Vec<ListedWorkspace>> {
        let statements = "LET $found = (SELECT *, record::id(id) AS key FROM $range LIMIT $limit);
            RETURN $found;
            SELECT *, record::id(id) AS key FROM $found.map(|$one| type::record('deletion', $one.key));";
        let found = self.query(statements, page("workspace", after, limit)).await?;
        let [_, workspaces, deletions] = found.as_slice() else { return Ok(Vec::new()) };
        let deletions: Vec<WorkspaceDeletion> =
            convert::list(Some(deletions))?.map(WorkspaceDeletion::read).collect::<Result<_>>()?;
        let with_deletion = |record: &Record| {
            let record = WorkspaceRecord::read(record)?;
            let deletion = deletions.iter().find(|deletion| deletion.workspace_id == record.id);
            Ok(ListedWorkspace { delete_at: deletion.and_then(|deletion| deletion.delete_at), record })
        };
        convert::list(Some(workspaces))?.map(with_deletion).collect()
    }

    /// Returns at most `limit` users after the given id, in the order of their ids, with their memberships.
    pub async fn user_page(&self, after: Option<&str>, limit: usize) -> Result<Vec<FoundUser>> {
        let statements = "LET $found = (SELECT *, record::id(id) AS key FROM $range LIMIT $limit);
            RETURN $found;
            SELECT * FROM member WHERE user_id IN $found.map(|$one| $one.key) ORDER BY joined_at, workspace_id;";
        let found = self.query(statements, page("user", after, limit)).await?;
        let [_, users, members] = found.as_slice() else { return Ok(Vec::new()) };
        let members = convert::list(Some(members))?.map(Membership::read).collect::<Result<Vec<_>>>()?;
        let with_memberships = |record: &Record| {
            let user = UserRecord::read(record)?;
            let memberships = members.iter().filter(|member| member.user_id == user.id).cloned().collect();
            Ok(FoundUser { user, memberships })
        };
        convert::list(Some(users))?.map(with_memberships).collect()
    }

    /// Changes the name of a workspace. Returns the workspace, or `None` if it does not exist.
    pub async fn rename_workspace(&self, id: &str, name: &str) -> Result<Option<WorkspaceRecord>> {
        let statements = "BEGIN;
            IF record::exists($id) { UPDATE $id SET name = $name RETURN NONE };
            RETURN (SELECT *, record::id(id) AS key FROM $id);
            COMMIT;";
        let values = [("id", convert::record_id("workspace", id.to_owned())), ("name", convert::text(name))];
        let found = self.query_again(statements, values).await?;
        convert::find_with(&found, "slug").map(WorkspaceRecord::read).transpose()
    }

    /// Records the time of the deletion of a workspace, unless a time is already recorded. Returns whether the
    /// workspace exists.
    pub async fn begin_deletion(&self, id: &str, delete_at: i64) -> Result<bool> {
        let statements = "BEGIN;
            LET $exists = record::exists($workspace);
            IF $exists AND $deletion.delete_at = NONE { UPSERT $deletion SET delete_at = $at RETURN NONE };
            RETURN $exists;
            COMMIT;";
        let [workspace, deletion] = ids(id);
        let values = [workspace, deletion, ("at", convert::integer(delete_at))];
        Ok(self.query_again(statements, values).await?.contains(&Record::Bool(true)))
    }

    /// Cancels the deletion of a workspace, if a deletion is recorded. Returns whether the workspace exists.
    pub async fn cancel_deletion(&self, id: &str) -> Result<bool> {
        let statements = "BEGIN;
            LET $exists = record::exists($workspace);
            IF $exists AND record::exists($deletion) { UPDATE $deletion SET delete_at = NONE RETURN NONE };
            RETURN $exists;
            COMMIT;";
        Ok(self.query_again(statements, ids(id)).await?.contains(&Record::Bool(true)))
    }

    /// Returns the deletion of a workspace.
    pub async fn read_deletion(&self, id: &str) -> Result<Option<WorkspaceDeletion>> {
        self.read_record("deletion", id).await
    }

    /// Returns all deletions.
    pub async fn read_deletions(&self) -> Result<Vec<WorkspaceDeletion>> {
        self.read_all("SELECT *, record::id(id) AS key FROM deletion", [], WorkspaceDeletion::read).await
    }

    /// Returns the ids of the owners of a workspace, in the order in which they joined.
    pub async fn read_owners(&self, id: &str) -> Result<Vec<Arc<str>>> {
        let statement = "SELECT VALUE user_id FROM member WHERE workspace_id = $name AND role = $role
            ORDER BY joined_at, user_id";
        let values = [("name", convert::text(id)), ("role", convert::text(Role::Owner.name()))];
        texts(self.query(statement, values).await?.first())
    }

    /// Records that the owners of a workspace were notified about the time in `deletion`. If `deletion` is canceled,
    /// deletes the record of the deletion instead. Does nothing if the stored time differs from the time in `deletion`,
    /// or if the workspace was removed.
    pub async fn settle_deletion(&self, deletion: &WorkspaceDeletion) -> Result<()> {
        let statements = "BEGIN;
            IF record::exists($deletion) AND $deletion.delete_at = $at AND $deletion.removed_at = NONE {
                IF $at = NONE { DELETE $deletion RETURN NONE } ELSE { UPDATE $deletion SET told = $at RETURN NONE }
            };
            COMMIT;";
        let [_, id] = ids(&deletion.workspace_id);
        let at = deletion.delete_at.map_or(Record::None, convert::integer);
        self.query_again(statements, [id, ("at", at)]).await.map(drop)
    }

    /// Removes a workspace with its members, keys, sign-in codes and invitations, if its deletion is due and the
    /// workspace has not been removed yet. Returns the keys and members that had access, or `None` if nothing was
    /// removed.
    pub async fn remove_due_workspace(&self, id: &str, now: i64) -> Result<Option<RemovedAccess>> {
        let [workspace, deletion] = ids(id);
        let values = [workspace, deletion, ("name", convert::text(id)), ("now", convert::integer(now))];
        let found = self.query_again(REMOVE, values).await?;
        let response = convert::find_with(&found, "due");
        let response = response.ok_or_else(|| {
            Error::corrupt(format!("the statements that remove the workspace '{id}' returned no field 'due'"))
        })?;
        if !convert::bool_field(response, "due") {
            return Ok(None);
        }
        let named = |list: &str| texts(convert::field(response, list).ok());
        Ok(Some(RemovedAccess { keys: named("keys")?, members: named("members")? }))
    }

    /// Records that the data of a removed workspace was deleted.
    pub async fn clear_deletion(&self, id: &str, now: i64) -> Result<()> {
        let [_, deletion] = ids(id);
        let statement = "UPDATE $deletion SET cleared_at = $now WHERE removed_at != NONE RETURN NONE";
        self.query_again(statement, [deletion, ("now", convert::integer(now))]).await.map(drop)
    }

    /// Deletes the deletion record of a removed workspace.
    pub async fn forget_deletion(&self, id: &str) -> Result<()> {
        let [_, deletion] = ids(id);
        self.query_again("DELETE $deletion WHERE removed_at != NONE RETURN NONE", [deletion]).await.map(drop)
    }
}

fn page(table: &str, after: Option<&str>, limit: usize) -> [(&'static str, Record); 2] {
    let start = after.map_or(Bound::Unbounded, |after| Bound::Excluded(RecordIdKey::String(after.to_owned())));
    let range = RecordIdKeyRange { start, end: Bound::Unbounded };
    [("range", convert::record_id(table, range)), ("limit", convert::integer(limit))]
}

fn ids(id: &str) -> [(&'static str, Record); 2] {
    [("workspace", convert::record_id("workspace", id.to_owned())), ("deletion", deletion_id(id))]
}

/// Returns the id of the record about the deletion of a workspace.
pub(super) fn deletion_id(id: &str) -> Record {
    convert::record_id("deletion", id.to_owned())
}

fn texts(record: Option<&Record>) -> Result<Vec<Arc<str>>> {
    let wrong = || Error::corrupt("a stored list of ids contains a value that is not a string");
    convert::list(record)?.map(|text| convert::text_of(text).ok_or_else(wrong)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn store() -> (Store, Database, Arc<str>) {
        let store = Store::connect("mem://").await.expect("memory");
        let control = store.control().await.expect("a database");
        let id: Arc<str> = "0192".into();
        let written = "CREATE workspace:⟨0192⟩ SET name = 'w', slug = 'w', owner_id = 'u', created_at = 7;
            CREATE user:u; CREATE member:['u', '0192'] SET user_id = 'u', workspace_id = '0192', role = 'owner', joined_at = 7;
            CREATE key:k SET workspace_id = '0192', user_id = 'u', name = 'k', scopes = [], display = '', hash = 'h',
                created_at = 7;";
        control.query(written, []).await.expect("written");
        (store, control, id)
    }

    #[tokio::test]
    async fn a_due_deletion_that_was_not_canceled_removes_the_workspace_once() {
        let (_store, control, id) = store().await;
        assert!(control.begin_deletion(&id, 100).await.expect("begun"));
        assert!(control.begin_deletion(&id, 200).await.expect("begun again"));
        assert!(!control.begin_deletion("another", 100).await.expect("a response"));
        let deletion = control.read_deletion(&id).await.expect("a response").expect("a deletion");
        assert_eq!((deletion.delete_at, deletion.told, deletion.removed_at), (Some(100), None, None));
        assert!(control.remove_due_workspace(&id, 99).await.expect("a response").is_none());
        control.settle_deletion(&deletion).await.expect("settled");
        assert_eq!(control.read_deletions().await.expect("deletions")[0].told, Some(100));
        // Settling a deletion that was read before the cancellation has no effect.
        assert!(control.cancel_deletion(&id).await.expect("canceled"));
        control.settle_deletion(&deletion).await.expect("settled");
        assert!(control.remove_due_workspace(&id, 1_000).await.expect("a response").is_none());
        let canceled = control.read_deletion(&id).await.expect("a response").expect("still to be told");
        assert_eq!((canceled.delete_at, canceled.told), (None, Some(100)));
        control.settle_deletion(&canceled).await.expect("settled");
        assert_eq!(control.read_deletions().await.expect("deletions"), []);

        control.begin_deletion(&id, 100).await.expect("begun");
        let removed = control.remove_due_workspace(&id, 100).await.expect("a response").expect("removed");
        assert_eq!((removed.keys, removed.members), (vec!["k".into()], vec!["u".into()]));
        assert!(control.remove_due_workspace(&id, 100).await.expect("a response").is_none());
        assert!(control.read_workspace(&id).await.expect("a response").is_none());
        assert!(control.find_key("h").await.expect("a response").is_none());
        assert!(!control.cancel_deletion(&id).await.expect("a response"), "the workspace was already removed");
    }

    #[tokio::test]
    async fn a_workspace_is_not_created_again_while_its_data_is_being_deleted() {
        let (_store, control, id) = store().await;
        let record = control.read_workspace(&id).await.expect("a response").expect("a workspace");
        control.begin_deletion(&id, 0).await.expect("begun");
        control.remove_due_workspace(&id, 0).await.expect("a response").expect("removed");
        assert!(matches!(control.write_own_workspace(&record).await, Err(Error::Conflict)));
        assert!(matches!(control.restore_workspace(&record).await, Err(Error::Conflict)));
        control.forget_deletion(&id).await.expect("forgotten");
        control.write_own_workspace(&record).await.expect("written");
        assert_eq!(control.read_owners(&id).await.expect("owners"), ["u".into()]);
    }

    #[tokio::test]
    async fn an_older_handle_cannot_write_to_a_removed_workspace() {
        let (store, _, id) = store().await;
        let older = store.share().workspace(&id).await.expect("a database");
        older.query("CREATE event:x SET body = 'x'", []).await.expect("written");
        for _ in 0..2 {
            store.remove_workspace(&id).await.expect("removed");
        }
        older.query("CREATE event:y SET body = 'y'", []).await.expect_err("the database is gone");
        let newer = store.workspace(&id).await.expect("a database");
        let left = newer.query("SELECT * FROM event", []).await.expect("a response");
        assert_eq!(convert::list(left.first()).expect("a list").count(), 0);
    }
}
