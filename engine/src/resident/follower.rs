//! The states at the position of the log's follower, for aggregates that have changed since.
//!
//! The follower must see each event with the state right after it, while the resident states run ahead.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustc_hash::FxHashMap;

use super::Resident;
use crate::model::aggregate::Aggregate;
use crate::model::id::AggregateId;

/// States at the follower's position. An aggregate without an entry has its resident state there.
#[derive(Default)]
pub struct FollowerStates {
    /// `None` if the aggregate does not exist yet at the follower's position.
    states: Mutex<FxHashMap<AggregateId, Option<Arc<Aggregate>>>>,
}

impl FollowerStates {
    /// Publishes states that the follower has not reached, and keeps the states that they replace.
    pub fn publish(&self, resident: &Resident, aggregates: Vec<Arc<Aggregate>>, position: u64) {
        let mut states = self.lock();
        for aggregate in &aggregates {
            states.entry(aggregate.id.clone()).or_insert_with(|| resident.get(aggregate.id.as_str()));
        }
        resident.publish(aggregates, position);
    }

    /// Sets the state of an aggregate at the follower's position. Replaces any earlier entry.
    pub fn set(&self, id: AggregateId, state: Option<Arc<Aggregate>>) {
        self.lock().insert(id, state);
    }

    /// Returns the state of an aggregate at the follower's position.
    pub fn state(&self, resident: &Resident, id: &str) -> Option<Arc<Aggregate>> {
        match self.lock().get(id) {
            Some(state) => state.clone(),
            None => resident.get(id),
        }
    }

    /// Advances the follower past some events. `aggregates` are the states after these events.
    pub fn pass(&self, resident: &Resident, aggregates: impl IntoIterator<Item = Arc<Aggregate>>) {
        let mut states = self.lock();
        for aggregate in aggregates {
            let caught_up = resident.get(aggregate.id.as_str()).is_none_or(|now| now.version <= aggregate.version);
            if caught_up {
                states.remove(&aggregate.id);
            } else {
                states.insert(aggregate.id.clone(), Some(aggregate));
            }
        }
    }

    /// Removes all entries: the follower has reached the log's end.
    pub fn clear(&self) {
        self.lock().clear();
    }

    fn lock(&self) -> MutexGuard<'_, FxHashMap<AggregateId, Option<Arc<Aggregate>>>> {
        self.states.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
