//! Keeps the node records: for each aggregate its folded snapshot and the position it stands for.

use std::sync::Arc;

use super::follow::Stepped;
use crate::core::State;
use crate::error::Result;
use crate::model::aggregate::Aggregate;

/// The most that one transaction writes.
const NODES: usize = 1_024;
const BYTES: usize = 4 << 20;

/// Writes the snapshots of the aggregates that have waited longest. Tells the position that snapshots now stand for.
///
/// A snapshot is written as the aggregate is now, for all the events that it got meanwhile. It tells the version it
/// stands for, so that replaying some of them over it changes nothing.
pub async fn step(state: &State) -> Result<Stepped> {
    let taken = state.folded.take_dirty(NODES, state.clock.now_ms());
    let reached = taken.reached;
    let stepped = match taken.rest_until {
        Some(until_ms) => Stepped::Resting { reached, until_ms },
        None => Stepped::To(reached),
    };
    if taken.aggregates.is_empty() {
        return Ok(stepped);
    }
    let result = write(state, &taken.aggregates.iter().map(|(id, _)| id.as_str()).collect::<Vec<_>>(), reached).await;
    if result.is_err() {
        state.folded.put_back_dirty(taken);
    }
    result.map(|()| stepped)
}

async fn write(state: &State, ids: &[&str], reached: u64) -> Result<()> {
    // Before the states: one that is folded anew meanwhile may be told to be older than it is, and never newer.
    let definitions = state.types.all();
    let now_ms = state.clock.now_ms();
    let mut nodes: Vec<(Arc<Aggregate>, u64)> = Vec::with_capacity(ids.len());
    let mut bytes = 0;
    for aggregate in ids.iter().filter_map(|id| state.folded.get(id)) {
        let revision = definitions.get(&aggregate.aggregate_type).map_or(0, |definition| definition.revision);
        bytes += aggregate.state.size_bytes();
        // Before the write: what changes while it goes on waits for the next one.
        state.folded.rest_dirty(&aggregate, now_ms);
        nodes.push((aggregate, revision));
        if bytes >= BYTES {
            // Large states go in transactions of their own; the checkpoint moves with the last of them.
            state.log.write_nodes(&nodes, None, None).await?;
            nodes.clear();
            bytes = 0;
        }
    }
    let observed = state.folded.observed().take_changed();
    let written = state.log.write_nodes(&nodes, observed.as_ref(), Some((crate::core::NODES, reached))).await;
    if written.is_err() && observed.is_some() {
        state.folded.observed().put_back();
    }
    Ok(written?)
}
