//! Records of restores, in the control database.

use std::sync::Arc;

use strum::{EnumString, IntoStaticStr, VariantArray};
use surrealdb::types::Value as Record;

use super::servers::ALIVE_MS;
use super::workspaces::deletion_id;
use crate::model::closed_set::named;
use crate::store::record::{StoredRecord, field_value, stored_record};
use crate::store::{Database, DatabaseReader, Error, Result, convert};

stored_record!(RestoreRecord as "restore" [id] {
    source_id, workspace_id, name, status, position, end, message, started_at, ended_at, server
});
field_value!(
    RestoreStatus,
    |record, field| {
        let status = convert::text_field(record, field)?;
        status.parse().map_err(|_| Error::corrupt(format!("'{status}' is not the status of a restore")))
    },
    |status| convert::text(status.name())
);

/// The maximum number of restores in a list.
const LISTED: usize = 100;

/// The status of a restore.
#[derive(Debug, Clone, Copy, PartialEq, Eq, EnumString, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum RestoreStatus {
    Running,
    Done,
    Failed,
}

named!(RestoreStatus);

/// A restore of a workspace into a new workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RestoreRecord {
    pub id: Arc<str>,
    /// The id of the archived workspace.
    pub source_id: Arc<str>,
    /// The id of the new workspace.
    pub workspace_id: Arc<str>,
    pub name: String,
    pub status: RestoreStatus,
    /// The position up to which the log has been restored. While the restore runs, only the server that runs the
    /// restore knows this position, and other servers return 0. Also 0 after a failure.
    pub position: u64,
    /// On the server that runs the restore: the position up to which the archive has been read so far. After success:
    /// the same as `position`. `None` in all other cases.
    pub end: Option<u64>,
    /// The reason for a failure, or a note that the archive does not have the bytes of some file versions.
    pub message: Option<String>,
    pub started_at: i64,
    pub ended_at: Option<i64>,
    /// The id of the server that runs the restore. `None` if only one server can use the store.
    pub server: Option<Arc<str>>,
}

impl DatabaseReader {
    /// Returns the most recent restores, the newest first.
    pub async fn read_restores(&self) -> Result<Vec<RestoreRecord>> {
        let statement = "SELECT *, record::id(id) AS key FROM restore ORDER BY started_at DESC, key DESC LIMIT $limit";
        self.read_all(statement, [("limit", convert::integer(LISTED))], RestoreRecord::read).await
    }

    /// Returns all restores that have not ended, in no particular order.
    pub async fn read_running_restores(&self) -> Result<Vec<RestoreRecord>> {
        let statement = "SELECT *, record::id(id) AS key FROM restore WHERE status = $status";
        let values = [("status", convert::text(RestoreStatus::Running.name()))];
        self.read_all(statement, values, RestoreRecord::read).await
    }

    /// Returns the restore with this id.
    pub async fn read_restore(&self, id: &str) -> Result<Option<RestoreRecord>> {
        self.read_record("restore", id).await
    }
}

impl Database {
    /// Writes the record of a restore that begins, unless the store has a restore with the same id. Returns the record
    /// in the store.
    pub async fn begin_restore(&self, restore: &RestoreRecord) -> Result<RestoreRecord> {
        let statements = "IF !record::exists($id) { CREATE $id CONTENT $content RETURN NONE };
            SELECT *, record::id(id) AS key FROM $id";
        let content = Record::Object(restore.fields());
        let values = [("id", convert::record_id("restore", &*restore.id)), ("content", content)];
        let begun = self.query_again(statements, values).await?;
        let begun = convert::list(begun.last())?.next().map(RestoreRecord::read).transpose()?;
        begun.ok_or_else(|| Error::corrupt(format!("the restore '{}' is missing after its write", restore.id)))
    }

    /// Records the end of a running restore. If the restore has failed, also marks its workspace for deletion without a
    /// grace period. Returns `false` and changes nothing if a different end of the restore is already recorded, or if
    /// `server` is given and this server is still alive.
    pub async fn end_restore(&self, restore: &RestoreRecord, server: Option<&str>) -> Result<bool> {
        let statements = "BEGIN;
            LET $is_alive = $server != NONE AND ($server.seen ?? 0) > time::millis(time::now()) - $alive;
            LET $runs = $id.status = $running AND !$is_alive;
            IF $runs { UPSERT $id CONTENT $content RETURN NONE };
            IF $runs AND $content.status = $failed AND record::exists($workspace) AND $deletion.delete_at = NONE {
                UPSERT $deletion SET delete_at = $content.ended_at RETURN NONE
            };
            RETURN $runs OR ($id.status = $content.status AND $id.ended_at = $content.ended_at);
            COMMIT;";
        let values = [
            ("id", convert::record_id("restore", &*restore.id)),
            ("content", Record::Object(restore.fields())),
            ("running", convert::text(RestoreStatus::Running.name())),
            ("failed", convert::text(RestoreStatus::Failed.name())),
            ("workspace", convert::record_id("workspace", restore.workspace_id.to_string())),
            ("deletion", deletion_id(&restore.workspace_id)),
            ("server", server.map_or(Record::None, |server| convert::record_id("server", server.to_owned()))),
            ("alive", convert::integer(ALIVE_MS)),
        ];
        Ok(self.query_again(statements, values).await?.contains(&Record::Bool(true)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::access::WorkspaceRecord;

    fn restore(id: &str, started_at: i64, status: RestoreStatus) -> RestoreRecord {
        RestoreRecord {
            id: id.into(),
            source_id: "a".into(),
            workspace_id: "b".into(),
            name: "n".into(),
            status,
            position: 7,
            end: Some(9),
            message: None,
            started_at,
            ended_at: None,
            server: Some("s".into()),
        }
    }

    #[tokio::test]
    async fn the_first_restore_with_an_id_is_kept_and_read_back_unchanged() {
        let control = Database::control_in_memory().await;
        let (first, second) = (restore("1", 1, RestoreStatus::Running), restore("2", 2, RestoreStatus::Failed));
        for written in [&first, &second] {
            assert_eq!(control.begin_restore(written).await.expect("written"), *written);
        }
        let repeated = RestoreRecord { workspace_id: "c".into(), ..first.clone() };
        assert_eq!(control.begin_restore(&repeated).await.expect("the first"), first);
        assert_eq!(control.read_restores().await.expect("read"), [second.clone(), first.clone()]);
        assert_eq!(control.read_restore("1").await.expect("read"), Some(first));
        assert_eq!(control.read_restore("3").await.expect("read"), None);
    }

    #[tokio::test]
    async fn a_running_restore_is_found_although_many_restores_are_newer() {
        let control = Database::control_in_memory().await;
        let running = restore("first", 0, RestoreStatus::Running);
        control.begin_restore(&running).await.expect("written");
        for number in 1..=LISTED {
            let ended = restore(&number.to_string(), number as i64, RestoreStatus::Done);
            control.begin_restore(&ended).await.expect("written");
        }
        assert!(!control.read_restores().await.expect("read").contains(&running));
        assert_eq!(control.read_running_restores().await.expect("read"), [running]);
    }

    #[tokio::test]
    async fn only_the_first_end_of_a_restore_is_recorded() {
        let control = Database::control_in_memory().await;
        let running = restore("1", 1, RestoreStatus::Running);
        control.begin_restore(&running).await.expect("written");
        let end = |status, ended_at| RestoreRecord { status, ended_at: Some(ended_at), ..running.clone() };
        let (done, failed) = (end(RestoreStatus::Done, 20), end(RestoreStatus::Failed, 30));
        let workspace = WorkspaceRecord {
            id: running.workspace_id.clone(),
            name: "n".into(),
            slug: "n".into(),
            owner_id: "o".into(),
            created_at: 0,
        };
        control.restore_workspace(&workspace).await.expect("written");
        assert!(control.end_restore(&done, None).await.expect("a response"));
        // The response to the first attempt may have been lost.
        assert!(control.end_restore(&done, None).await.expect("a response"));
        assert!(!control.end_restore(&failed, None).await.expect("a response"));
        assert_eq!(control.read_restore("1").await.expect("read"), Some(done.clone()));
        assert_eq!(control.read_deletion("b").await.expect("read"), None);

        let second = |restore: &RestoreRecord| RestoreRecord { id: "2".into(), ..restore.clone() };
        let (running, done, failed) = (second(&running), second(&done), second(&failed));
        control.begin_restore(&running).await.expect("written");
        control.beat("s", true, 0).await.expect("a beat");
        assert!(!control.end_restore(&failed, Some("s")).await.expect("a response"));
        assert!(control.end_restore(&failed, Some("another")).await.expect("a response"));
        assert!(!control.end_restore(&done, None).await.expect("a response"));
        assert_eq!(control.read_restore("2").await.expect("read"), Some(failed));
        let deletion = control.read_deletion("b").await.expect("read").expect("a deletion");
        assert_eq!(deletion.delete_at, Some(30));
    }
}
