//! Writes the node records: for each aggregate a snapshot of its folded state and of the version that it includes.

use std::sync::Arc;

use super::follow::Stepped;
use crate::core::State;
use crate::error::Result;
use crate::model::aggregate::Aggregate;

/// Limits on one transaction, in records and in bytes.
const NODES: usize = 1_024;
const BYTES: usize = 4 << 20;

/// Writes the snapshots of the aggregates that have waited longest. Returns the position up to which snapshots include
/// every event.
///
/// A snapshot holds the current state, including events appended meanwhile. It names its version, so replaying some of
/// these events over it changes nothing.
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
    // Read before the states: a state that is folded again meanwhile may be labelled with an older revision, never with
    // a newer one.
    let definitions = state.types.all();
    let now_ms = state.clock.now_ms();
    let mut nodes: Vec<(Arc<Aggregate>, u64)> = Vec::with_capacity(ids.len());
    let mut bytes = 0;
    for aggregate in ids.iter().filter_map(|id| state.folded.get(id)) {
        let revision = definitions.get(&aggregate.aggregate_type).map_or(0, |definition| definition.revision);
        bytes += aggregate.state.size_bytes();
        // Before the write, so that a change during the write waits for the next snapshot.
        state.folded.rest_dirty(&aggregate, now_ms);
        nodes.push((aggregate, revision));
        if bytes >= BYTES {
            // Large states get their own transactions; the checkpoint moves with the last one.
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
