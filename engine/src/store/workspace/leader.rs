//! The leader of a workspace: the one server that runs the workspace's plugins and timers. Only used if several servers
//! share the store.
//!
//! A record names the leader and its epoch. The transactions in which the leader writes the graph, the snapshots and
//! the events of plugins check the epoch. If another server takes over while the leader is suspended, these
//! transactions of the former leader therefore fail.

use std::sync::Arc;

use surrealdb::types::Value as Record;

use crate::store::record::{StoredRecord, stored_record};
use crate::store::{Database, DatabaseReader, Error, Result, convert};

stored_record!(Leader as "leader" [] { server, epoch });

/// The statement that makes a server the leader if the workspace has no leader, if the leader is not among the servers
/// that are alive, or if `$force` is set. A server that is already the leader keeps its epoch.
const LEAD: &str = "
BEGIN;
LET $held = (SELECT server, epoch FROM ONLY leader:consumer);
IF $held.server != $server AND ($force OR $held.server = NONE OR $held.server NOT IN $alive) {
    UPSERT leader:consumer SET server = $server, epoch = ($held.epoch ?? 0) + 1 RETURN NONE
};
SELECT server, epoch FROM ONLY leader:consumer;
COMMIT;";

/// The statement that ends a leadership, unless another server has taken over.
const RELEASE: &str = "UPDATE leader:consumer SET server = NONE WHERE server = $server AND epoch = $epoch RETURN NONE";

/// A leader of a workspace.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Leader {
    /// The id of the server. `None` if the last leader has released the leadership.
    pub server: Option<Arc<str>>,
    /// A number that grows with each change of the leader.
    pub epoch: u64,
}

impl DatabaseReader {
    /// Returns the current or last leader of the workspace, or `None` if the workspace never had a leader.
    pub async fn read_leader(&self) -> Result<Option<Leader>> {
        self.read_first("SELECT server, epoch FROM ONLY leader:consumer", [], Leader::read).await
    }
}

impl Database {
    /// Makes a server the leader if none of the servers in `alive` is the leader, or if `force` is set. Returns the
    /// leader after the call.
    pub async fn lead(&self, server: &str, alive: &[Arc<str>], force: bool) -> Result<Leader> {
        let values =
            [("server", convert::text(server)), ("alive", convert::texts(alive)), ("force", Record::Bool(force))];
        let found = self.query_again(LEAD, values).await?;
        let record = found.iter().rev().find(|record| matches!(record, Record::Object(_)));
        Leader::read(record.ok_or_else(|| Error::corrupt("the record of the leader is missing after its write"))?)
    }

    /// Ends the leadership of a server that closes the workspace. Does nothing if another server has taken over.
    pub async fn release_leadership(&self, server: &str, epoch: u64) -> Result<()> {
        let values = [("server", convert::text(server)), ("epoch", convert::integer(epoch))];
        self.query_again(RELEASE, values).await.map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_leader_that_is_alive_is_replaced_only_by_force_or_after_its_release() {
        let log = Database::shared_log_in_memory().await;
        let lead = async |server: &str, alive: &[&str], force| {
            let alive: Vec<Arc<str>> = alive.iter().map(|server| Arc::from(*server)).collect();
            let leader = log.lead(server, &alive, force).await.expect("a leader");
            (leader.server.map(|server| server.to_string()).unwrap_or_default(), leader.epoch)
        };
        assert_eq!(log.read_leader().await.expect("read"), None);
        assert_eq!(lead("a", &[], false).await, ("a".into(), 1));
        assert_eq!(lead("b", &["a", "b"], false).await, ("a".into(), 1));
        assert_eq!(lead("a", &["b"], false).await, ("a".into(), 1));
        assert_eq!(lead("b", &["b"], false).await, ("b".into(), 2));
        assert_eq!(lead("a", &["a", "b"], true).await, ("a".into(), 3));
        log.release_leadership("b", 2).await.expect("no effect");
        assert_eq!(lead("b", &["a", "b"], false).await, ("a".into(), 3));
        log.release_leadership("a", 3).await.expect("released");
        assert_eq!(lead("b", &["a", "b"], false).await, ("b".into(), 4));
    }
}
