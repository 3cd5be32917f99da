//! What follows the log of this workspace: how far it has come, and building it anew.

use super::entered::Operation;
use super::rights::{Reader, Writer};
use crate::consumer::rebuild;
use crate::core::{GRAPH, NODES};
use crate::error::Result;

pub use crate::consumer::rebuild::Rebuilt;

/// A follower of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Follower {
    pub name: &'static str,
    /// What it keeps.
    pub keeps: &'static str,
    /// The last event that it took in.
    pub position: u64,
    /// Events that it has not taken in yet.
    pub lag: u64,
    /// Steps that are put aside.
    pub parked: u64,
}

impl Reader {
    /// The followers of the log.
    pub async fn followers(&self) -> Result<Vec<Follower>> {
        let state = self.entered.state();
        state.refresh().await?;
        let head = state.folded.position();
        let parked = state.log.count_parked().await?.into_iter().map(|(_, steps)| steps).sum();
        // At a start the follower says nothing before it has read where it stood.
        let worked = state.log.read_graph_checkpoint().await?.position.max(state.graph_progress.position());
        let written = state.log.checkpoint(NODES).await?;
        let follower = |name, keeps, position: u64, parked| Follower {
            name,
            keeps,
            position: position.min(head),
            lag: head.saturating_sub(position),
            parked,
        };
        Ok(vec![
            follower(GRAPH, "facts, edges, derived events and tasks", worked, parked),
            follower(NODES, "stored snapshots of folded states", written, 0),
        ])
    }
}

impl Writer {
    /// Builds the graph anew from the log's first event. The old one serves meanwhile.
    pub async fn rebuild_graph(&self) -> Result<Rebuilt> {
        Operation::perform(self, |operation| async move {
            rebuild::rebuild(operation.state(), operation.appender(), operation.working()).await
        })
        .await
    }
}
