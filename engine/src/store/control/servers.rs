//! The servers of a store, and the progress of workspaces. The servers report this progress to each other through the
//! control database.

use std::sync::Arc;

use surrealdb::types::Value as Record;

use crate::store::record::{StoredRecord, stored_record};
use crate::store::workspace::leader::Leader;
use crate::store::{CONTROL_MIGRATIONS, Database, Error, Result, WORKSPACE_MIGRATIONS, convert};

stored_record!(WorkspaceProgress [] { position, types, writes, consumed });

/// The time for which a server counts as alive after its last report, in milliseconds.
pub const ALIVE_MS: i64 = 10_000;
/// The time after a server's last report at which the row of the server is deleted, in milliseconds.
const FORGOTTEN_MS: i64 = 60_000;
/// The number of migrations that this program contains. A newer program may contain more migrations.
pub const SCHEMA: u64 = (CONTROL_MIGRATIONS.len() + WORKSPACE_MIGRATIONS.len()) as u64;

/// The statements of [`Database::beat`]. If `$reports` is set, the statements record that the server is alive, and
/// delete the rows of servers that stopped reporting. The statements return the servers that are alive, and the
/// progress that was reported after `$since`. All times come from the clock of the store.
const BEAT: &str = "
LET $now = time::millis(time::now());
IF $reports { UPSERT $server SET seen = $now, schema = $schema RETURN NONE };
IF $reports { DELETE server WHERE seen < $now - $forgotten RETURN NONE };
LET $servers = (SELECT record::id(id) AS server, schema ?? 0 AS schema FROM server WHERE seen > $now - $alive);
LET $changed = (SELECT record::id(id) AS workspace, position, types, writes, consumed FROM progress
    WHERE changed > $since);
RETURN {now: $now, servers: $servers, changed: $changed};";

/// The statement that reports progress. A value that is lower than the stored value has no effect.
const REPORT: &str = "
LET $now = time::millis(time::now());
FOR $row IN $rows {
    UPSERT $row.id SET position = math::max([position ?? 0, $row.position]), types = math::max([types ?? 0, $row.types]),
        writes = math::max([writes ?? 0, $row.writes]), consumed = math::max([consumed ?? 0, $row.consumed]),
        changed = $now RETURN NONE
};";

/// The statement that records the leaders of workspaces. An earlier epoch never replaces a later epoch.
const NOTE_LEADERS: &str = "
FOR $row IN $rows {
    UPSERT $row.id SET leader = IF $row.epoch >= (epoch ?? 0) { $row.server } ELSE { leader },
        epoch = math::max([epoch ?? 0, $row.epoch]), position = position ?? 0, types = types ?? 0,
        writes = writes ?? 0, consumed = consumed ?? 0, changed = changed ?? 0 RETURN NONE
};";

/// The statement that returns workspaces whose leader is no longer alive.
const LEFT: &str = "
SELECT VALUE record::id(id) FROM progress WHERE leader != NONE AND leader NOT IN $alive LIMIT $most";

/// The progress of a workspace, as reported by one server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WorkspaceProgress {
    /// The position of the log's last event.
    pub position: u64,
    /// The number of changes of definitions.
    pub types: u64,
    /// The number of writes to the graph.
    pub writes: u64,
    /// The position up to which plugins have been called. After `writes` writes, the graph contains the results of
    /// these calls.
    pub consumed: u64,
}

impl WorkspaceProgress {
    /// Merges two reports. Each field of the result has the greater of the two values.
    pub fn merged(self, other: WorkspaceProgress) -> WorkspaceProgress {
        WorkspaceProgress {
            position: self.position.max(other.position),
            types: self.types.max(other.types),
            writes: self.writes.max(other.writes),
            consumed: self.consumed.max(other.consumed),
        }
    }
}

/// The result of [`Database::beat`].
#[derive(Debug, Default)]
pub struct Beat {
    /// The store's time, in milliseconds since the epoch.
    pub now_ms: i64,
    /// The ids of the servers that are alive.
    pub servers: Vec<Arc<str>>,
    /// The highest number of migrations that the program of any server in `servers` contains.
    pub schema: u64,
    /// The workspaces whose progress has changed, with their progress.
    pub changed: Vec<(Arc<str>, WorkspaceProgress)>,
}

impl Database {
    /// Returns the servers that are alive, and the progress of workspaces that was reported since `since`. `since` is
    /// the store's time at the previous beat. Also returns progress from some time before `since`, because this
    /// progress may have been committed after the previous beat. If `reports` is set, also reports that the server
    /// `server` is alive.
    pub async fn beat(&self, server: &str, reports: bool, since: i64) -> Result<Beat> {
        let values = [
            ("server", convert::record_id("server", server.to_owned())),
            ("reports", Record::Bool(reports)),
            ("since", convert::integer(self.with_overlap(since))),
            ("alive", convert::integer(ALIVE_MS)),
            ("forgotten", convert::integer(FORGOTTEN_MS)),
            ("schema", convert::integer(SCHEMA)),
        ];
        // Without a report, the statements only read, so they need no deadline.
        let found = if reports { self.query_again(BEAT, values).await? } else { self.query(BEAT, values).await? };
        let Some(Record::Object(found)) = found.last() else {
            return Err(Error::corrupt("the result of the query for the progress of workspaces is not an object"));
        };
        let mut workspaces = Vec::new();
        for record in convert::list(found.get("changed"))? {
            let progress = WorkspaceProgress::read(record)?;
            workspaces.push((Arc::from(convert::text_field(record, "workspace")?), progress));
        }
        let (mut alive, mut schema) = (Vec::new(), 0);
        for record in convert::list(found.get("servers"))? {
            alive.push(convert::text_field(record, "server")?.into());
            schema = schema.max(convert::unsigned_field(record, "schema")?);
        }
        let now_ms = found.get("now").map(convert::int).transpose()?;
        let missing = "the result of the query for the progress of workspaces lacks the store's time `now`";
        let now_ms = now_ms.ok_or_else(|| Error::corrupt(missing))?;
        Ok(Beat { now_ms, servers: alive, schema, changed: workspaces })
    }

    /// Records the leaders of workspaces, so that other servers detect when a leader stops. A leader without a server
    /// means that the workspace needs no leader, because the last leader has closed the workspace while nothing was
    /// left to do.
    pub async fn note_leaders(&self, notes: &[(Arc<str>, Leader)]) -> Result<()> {
        self.query_again(NOTE_LEADERS, [("rows", progress_rows(notes))]).await.map(drop)
    }

    /// Returns the ids of at most `most` workspaces whose recorded leader is not among the servers in `alive`.
    pub async fn workspaces_left(&self, alive: &[Arc<str>], most: usize) -> Result<Vec<Arc<str>>> {
        let values = [("alive", convert::texts(alive)), ("most", convert::integer(most))];
        let found = self.query(LEFT, values).await?;
        Ok(convert::list(found.first())?.filter_map(convert::text_of).collect())
    }

    /// Removes the record with the progress and the leader of a deleted workspace.
    pub async fn forget_progress(&self, workspace_id: &str) -> Result<()> {
        let id = convert::record_id("progress", workspace_id.to_owned());
        self.query_again("DELETE $id RETURN NONE", [("id", id)]).await.map(drop)
    }

    /// Reports the progress of workspaces to the other servers.
    pub async fn report_progress(&self, reports: &[(Arc<str>, WorkspaceProgress)]) -> Result<()> {
        self.query_again(REPORT, [("rows", progress_rows(reports))]).await.map(drop)
    }

    /// Removes a server that has stopped.
    pub async fn forget_server(&self, server: &str) -> Result<()> {
        let id = convert::record_id("server", server.to_owned());
        self.query_again("DELETE $id RETURN NONE", [("id", id)]).await.map(drop)
    }
}

/// Returns the rows of a statement that writes to the progress of workspaces.
fn progress_rows<T: StoredRecord>(reported: &[(Arc<str>, T)]) -> Record {
    let row = |(workspace, content): &(Arc<str>, T)| content.with_id(convert::record_id("progress", &**workspace));
    convert::array(reported.iter().map(row))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn servers_read_the_progress_that_other_servers_report() {
        let control = Database::control_in_memory().await;
        let first = control.beat("a", true, 0).await.expect("a beat");
        assert_eq!((&first.servers[..], first.changed.len()), (&[Arc::from("a")][..], 0));
        let report = async |position, consumed| {
            let progress = WorkspaceProgress { position, consumed, ..WorkspaceProgress::default() };
            control.report_progress(&[("w".into(), progress)]).await.expect("reported");
        };
        report(7, 5).await;
        report(6, 6).await;
        let read = control.beat("b", true, first.now_ms).await.expect("a beat");
        let known = WorkspaceProgress { position: 7, consumed: 6, ..WorkspaceProgress::default() };
        assert_eq!(read.changed, [(Arc::from("w"), known)]);
        assert!(read.now_ms >= first.now_ms && first.now_ms > 0, "{read:?}");
        assert_eq!(read.servers.len(), 2);
        control.forget_server("a").await.expect("removed");
        let last = control.beat("b", false, read.now_ms + 12_000).await.expect("a beat");
        assert_eq!((&last.servers[..], last.changed.len()), (&[Arc::from("b")][..], 0));
        assert_eq!(last.schema, SCHEMA);
        control.query("UPDATE server SET schema = 1000", []).await.expect("a newer server");
        assert_eq!(control.beat("a", false, 0).await.expect("a beat").schema, 1_000);
    }

    #[tokio::test]
    async fn workspaces_are_listed_while_their_leader_is_not_alive() {
        let control = Database::control_in_memory().await;
        let note = async |workspace: &str, server: Option<&str>, epoch| {
            let note = Leader { server: server.map(Arc::from), epoch };
            control.note_leaders(&[(workspace.into(), note)]).await.expect("noted");
        };
        let left = async |alive: &[&str]| {
            let alive: Vec<Arc<str>> = alive.iter().map(|server| Arc::from(*server)).collect();
            control.workspaces_left(&alive, 9).await.expect("read")
        };
        note("w", Some("a"), 3).await;
        assert!(left(&["a", "b"]).await.is_empty());
        assert_eq!(left(&["b"]).await, [Arc::from("w")]);
        note("w", Some("b"), 4).await;
        // A report of the earlier leader arrives late.
        note("w", None, 3).await;
        note("w", Some("a"), 3).await;
        assert!(left(&["b"]).await.is_empty());
        assert_eq!(left(&["a"]).await, [Arc::from("w")]);
        let rows = control.beat("a", false, i64::MIN).await.expect("a beat").changed;
        assert_eq!(rows, [(Arc::from("w"), WorkspaceProgress::default())]);
        note("w", None, 4).await;
        assert!(left(&[]).await.is_empty());
        control.forget_progress("w").await.expect("removed");
        assert!(control.beat("a", false, i64::MIN).await.expect("a beat").changed.is_empty());
    }
}
