//! The states at the position of the log's follower. Only aggregates that changed after this position have an entry.
//!
//! The follower must see each event together with the state directly after the event. The resident states usually
//! include later events.

use std::sync::Arc;

use parking_lot::Mutex;
use rustc_hash::FxHashMap;

use super::ResidentStates;
use crate::model::aggregate::Aggregate;
use crate::model::id::AggregateId;

/// The states at the follower's position. For an aggregate without an entry, the resident state is also the state at
/// that position.
#[derive(Default)]
pub struct FollowerStates {
    /// The state of each aggregate, or `None` if the aggregate does not exist yet at the follower's position.
    states: Mutex<FxHashMap<AggregateId, Option<Arc<Aggregate>>>>,
}

impl FollowerStates {
    /// Publishes states that are later than the follower's position. If an aggregate has no entry yet, the replaced
    /// state becomes the entry.
    pub fn publish(&self, resident: &ResidentStates, aggregates: Vec<Arc<Aggregate>>, position: u64) {
        let mut states = self.states.lock();
        for aggregate in &aggregates {
            states.entry(aggregate.id.clone()).or_insert_with(|| resident.get(aggregate.id.as_str()));
        }
        resident.publish(aggregates, position);
    }

    /// Sets the state of an aggregate at the follower's position. Replaces the previous entry.
    pub fn set(&self, id: AggregateId, state: Option<Arc<Aggregate>>) {
        self.states.lock().insert(id, state);
    }

    /// Returns the state of an aggregate at the follower's position.
    pub fn state(&self, resident: &ResidentStates, id: &str) -> Option<Arc<Aggregate>> {
        match self.states.lock().get(id) {
            Some(state) => state.clone(),
            None => resident.get(id),
        }
    }

    /// Updates the states after the follower has advanced. `aggregates` are the changed aggregates as they were at the
    /// follower's new position.
    pub fn pass(&self, resident: &ResidentStates, aggregates: impl IntoIterator<Item = Arc<Aggregate>>) {
        let mut states = self.states.lock();
        for aggregate in aggregates {
            let caught_up = resident.get(aggregate.id.as_str()).is_none_or(|now| now.version <= aggregate.version);
            if caught_up {
                states.remove(&aggregate.id);
            } else {
                states.insert(aggregate.id.clone(), Some(aggregate));
            }
        }
    }

    /// Removes all entries. Called before the entries are restored again, when the follower skips to the end of the
    /// log, and while another server follows the log.
    pub fn clear(&self) {
        self.states.lock().clear();
    }
}
