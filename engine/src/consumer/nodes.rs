//! Writes the node records. Each record is a snapshot: an aggregate's folded state, and the version of the last event
//! that the state includes.

use std::sync::Arc;

use crate::consumer::follow::StepOutcome;
use crate::error::{Error, Result};
use crate::model::aggregate::Aggregate;
use crate::state::State;
use crate::state::leadership::Lead;
use crate::store::{self, Database};

/// The maximum number of records in one transaction.
const NODES: usize = 1_024;
/// The size of the states, in bytes, at which a transaction takes no further records. The last record may exceed this
/// size.
const BYTES: usize = 4 << 20;

/// Writes snapshots of the aggregates that have waited longest for a snapshot. Returns the position up to which
/// snapshots include every event.
///
/// A snapshot contains the aggregate's current state, which may include events after the returned position. The
/// snapshot also contains the version of the state, so replaying these events over the snapshot changes nothing.
pub async fn step(state: &State, db: &Database, lead: Lead) -> Result<StepOutcome> {
    let taken = state.folded.dirty.pop(NODES, state.clock.now_ms());
    let reached = taken.reached;
    let stepped = match taken.rest_until {
        Some(until_ms) => StepOutcome::Resting { reached, until_ms },
        None => StepOutcome::Reached(reached),
    };
    if taken.aggregates.is_empty() {
        state.nodes_progress.set(reached);
        return Ok(stepped);
    }
    let ids: Vec<&str> = taken.aggregates.iter().map(|(id, _)| id.as_str()).collect();
    let result = write(state, db, &ids, reached, lead.epoch).await;
    match result {
        Ok(()) => state.nodes_progress.set(reached),
        Err(_) => state.folded.dirty.put_back(taken),
    }
    match result {
        Err(Error::Unavailable(store::Error::Conflict)) if lead.epoch.is_some() => {
            // Another server may have taken over.
            state.leadership.forget();
            Ok(StepOutcome::Interrupted)
        }
        result => result.map(|()| stepped),
    }
}

async fn write(state: &State, db: &Database, ids: &[&str], reached: u64, epoch: Option<u64>) -> Result<()> {
    // Reads the definitions before the states. If a state is refolded in between, its snapshot gets an older revision,
    // never a newer revision.
    let definitions = state.types.all();
    let now_ms = state.clock.now_ms();
    let mut nodes: Vec<(Arc<Aggregate>, u64)> = Vec::with_capacity(ids.len());
    let mut bytes = 0;
    for aggregate in ids.iter().filter_map(|id| state.folded.get(id)) {
        let revision = definitions.get(&aggregate.aggregate_type).map_or(0, |definition| definition.revision);
        bytes += aggregate.state.size_bytes();
        // Recorded before the write, so that a change during the write causes another snapshot.
        state.folded.dirty.rest(&aggregate.id, aggregate.state.size_bytes(), now_ms);
        nodes.push((aggregate, revision));
        if bytes >= BYTES {
            // States of more than `BYTES` in total are written in several transactions. The checkpoint advances with
            // the last transaction.
            db.write_nodes(&nodes, None, None, epoch).await?;
            nodes.clear();
            bytes = 0;
        }
    }
    let observed = state.folded.observed.take_changed();
    let result = db.write_nodes(&nodes, observed.as_ref(), Some((crate::state::NODES, reached)), epoch).await;
    if result.is_err() && observed.is_some() {
        state.folded.observed.put_back();
    }
    Ok(result?)
}
