//! Keeps the node records: for each aggregate its folded snapshot and the position it stands for.

use std::collections::HashSet;
use std::sync::Arc;

use crate::error::Result;
use crate::model::aggregate::Aggregate;
use crate::model::id::AggregateId;
use crate::workspace::state::Open;

/// Events looked at in one step, and the most that one transaction writes.
const EVENTS: usize = 4_096;
const NODES: usize = 512;
const BYTES: usize = 4 << 20;

/// Writes the nodes that the events after a position changed. Answers the position it has come to.
///
/// A node is written as it is now, which may be after later events too: replaying those over it changes nothing,
/// since a snapshot tells the version it stands for.
pub async fn step(open: &Open, position: u64) -> Result<u64> {
    let events = open.events_after(position, EVENTS).await?;
    let mut reached = position;
    let mut changed: HashSet<&AggregateId> = HashSet::new();
    let mut nodes: Vec<(Arc<Aggregate>, u64)> = Vec::new();
    let mut bytes = 0;
    for event in &events {
        if nodes.len() >= NODES || bytes >= BYTES {
            break;
        }
        reached = event.position;
        if !changed.insert(&event.aggregate_id) {
            continue;
        }
        // Within this step's events a later one may stand for the whole stream.
        if let Some(aggregate) = open.resident.get(event.aggregate_id.as_str()) {
            let revision = open.definition(&aggregate.aggregate_type).map_or(0, |definition| definition.revision);
            bytes += event.size_bytes();
            nodes.push((aggregate, revision));
        }
    }
    if reached > position {
        let seen = open.seen.take_changed();
        open.log.write_nodes(&nodes, seen.as_ref(), Some((super::NODES, reached))).await?;
    }
    Ok(reached)
}
