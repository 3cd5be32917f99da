//! The states that whoever follows the log stands at, of the aggregates that have changed since.
//!
//! What follows the log must see each event with the state right after it, while the resident states run ahead.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustc_hash::FxHashMap;

use super::Resident;
use crate::model::aggregate::Aggregate;
use crate::model::id::AggregateId;

/// States at the follower's position. Whatever is not here is there as it is resident.
#[derive(Default)]
pub struct FollowerStates {
    /// `None` for an aggregate that does not exist yet at that position.
    states: Mutex<FxHashMap<AggregateId, Option<Arc<Aggregate>>>>,
}

impl FollowerStates {
    /// Makes states resident that the follower has not come to, and keeps those that they replace.
    pub fn publish(&self, resident: &Resident, aggregates: Vec<Arc<Aggregate>>, position: u64) {
        let mut states = self.lock();
        for aggregate in &aggregates {
            states.entry(aggregate.id.clone()).or_insert_with(|| resident.get(aggregate.id.as_str()));
        }
        resident.publish(aggregates, position);
    }

    /// Says how an aggregate was at the follower's position, whatever was thought of it.
    pub fn set(&self, id: AggregateId, state: Option<Arc<Aggregate>>) {
        self.lock().insert(id, state);
    }

    /// The aggregate at the follower's position.
    pub fn state(&self, resident: &Resident, id: &str) -> Option<Arc<Aggregate>> {
        match self.lock().get(id) {
            Some(state) => state.clone(),
            None => resident.get(id),
        }
    }

    /// Moves the follower: these are the aggregates as they are after the events that it has passed.
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

    /// Forgets everything: the follower stands at the log's end.
    pub fn clear(&self) {
        self.lock().clear();
    }

    fn lock(&self) -> MutexGuard<'_, FxHashMap<AggregateId, Option<Arc<Aggregate>>>> {
        self.states.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
