//! Reports the progress of the followers of the workspace's log, returns the workspace's leader, and rebuilds the
//! graph.

use super::call_context::Operation;
use super::rights::{Reader, Writer};
use crate::consumer::graph::rebuild;
use crate::error::Result;
use crate::state::{GRAPH, NODES};

pub use crate::consumer::graph::rebuild::RebuildOutcome;
pub use crate::state::leadership::LeaderStatus;

/// A follower of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FollowerStatus {
    pub name: &'static str,
    /// A description of the data that the follower maintains.
    pub keeps: &'static str,
    /// The position of the last event that the follower has processed.
    pub position: u64,
    /// The number of events that the follower has yet to process.
    pub lag: u64,
    /// The number of parked steps of enabled plugins.
    pub parked: u64,
    /// The number of aggregates that wait for an update of their edges. An update is necessary after a change of the
    /// type definitions or of the enabled plugins.
    pub unsettled: u64,
}

impl Reader {
    /// Returns the followers of the log.
    pub async fn followers(&self) -> Result<Vec<FollowerStatus>> {
        let state = self.context.state();
        self.context.refresh().await?;
        let head = state.folded.position();
        let parked = state.db.count_parked().await?.into_iter();
        let parked = parked.filter(|(plugin, _)| state.plugins.find(plugin).is_some()).map(|(_, steps)| steps).sum();
        // After a start, the follower reports no position before it has read its checkpoint, so the stored checkpoint
        // counts, too.
        let worked = state.db.read_graph_checkpoint().await?.position.max(state.graph_progress.position());
        let checkpoint = state.db.checkpoint(NODES).await?;
        let unsettled = state.settled.remaining.position();
        let follower = |name, keeps, position: u64, parked, unsettled| FollowerStatus {
            name,
            keeps,
            position: position.min(head),
            lag: head.saturating_sub(position),
            parked,
            unsettled,
        };
        Ok(vec![
            follower(GRAPH, "facts, edges, derived events and tasks", worked, parked, unsettled),
            follower(NODES, "stored snapshots of folded states", checkpoint, 0, 0),
        ])
    }

    /// Returns the server that runs the plugins and timers of the workspace. Returns `None` if the store cannot be
    /// shared by several servers.
    pub async fn leader(&self) -> Result<Option<LeaderStatus>> {
        self.context.state().leadership.read().await
    }
}

impl Writer {
    /// Rebuilds the graph from the first event of the log. The old graph stays in use until the new graph is complete.
    pub async fn rebuild_graph(&self) -> Result<RebuildOutcome> {
        Operation::perform(self, |operation| async move {
            rebuild::rebuild(operation.state(), operation.appender(), operation.worker_slot()).await
        })
        .await
    }
}
