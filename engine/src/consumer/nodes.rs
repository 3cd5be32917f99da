//! Keeps the node records: for each aggregate its folded snapshot and the position it stands for.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::error::Result;
use crate::model::aggregate::Aggregate;
use crate::model::id::AggregateId;
use crate::workspace::state::Open;

/// Events looked at in one step, and the most that one transaction writes.
const EVENTS: usize = 4_096;
const NODES: usize = 1_024;
const BYTES: usize = 4 << 20;

/// The follower that writes nodes.
#[derive(Default)]
pub struct Nodes {
    /// Where it has come to; not known before the first step.
    position: Option<u64>,
    /// Positions of the snapshots written ahead of the checkpoint. An aggregate that changes often is written once
    /// for all of its events in the log, not once a step.
    ahead: FxHashMap<AggregateId, u64>,
}

impl Nodes {
    /// Writes the nodes that the next events changed. Answers the position it has come to.
    ///
    /// A node is written as it is now, which may be after later events too: replaying those over it changes nothing,
    /// since a snapshot tells the version it stands for.
    pub async fn step(&mut self, open: &Open) -> Result<u64> {
        let position = match self.position {
            Some(position) => position,
            None => open.log.checkpoint(super::NODES).await?,
        };
        self.position = Some(position);
        let events = open.events_after(position, EVENTS).await?;
        let mut reached = position;
        let mut nodes: Vec<(Arc<Aggregate>, u64)> = Vec::new();
        let mut written: FxHashMap<AggregateId, u64> = FxHashMap::default();
        let mut bytes = 0;
        for event in &events {
            if nodes.len() >= NODES || bytes >= BYTES {
                break;
            }
            reached = event.position;
            let id = &event.aggregate_id;
            if written.contains_key(id) || self.ahead.get(id).is_some_and(|ahead| *ahead >= event.position) {
                continue;
            }
            if let Some(aggregate) = open.resident.get(id.as_str()) {
                let revision = open.definition(&aggregate.aggregate_type).map_or(0, |definition| definition.revision);
                bytes += aggregate.state.size_bytes();
                written.insert(id.clone(), aggregate.position);
                nodes.push((aggregate, revision));
            }
        }
        if reached > position {
            let seen = open.seen.take_changed();
            open.log.write_nodes(&nodes, seen.as_ref(), Some((super::NODES, reached))).await?;
            self.position = Some(reached);
            self.ahead.extend(written);
            self.ahead.retain(|_, ahead| *ahead > reached);
        }
        Ok(reached)
    }
}
