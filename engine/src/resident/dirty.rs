//! Which aggregates changed since their snapshots were written, in the order in which they began to.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use rustc_hash::FxHashSet;

use crate::model::event::Event;
use crate::model::id::AggregateId;

/// Aggregates that wait for their snapshots. Its size is bounded by their number, however many events they get.
#[derive(Default)]
pub struct DirtyAggregates {
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    /// With the position of the first event that no snapshot stands for.
    waiting: VecDeque<(AggregateId, u64)>,
    members: FxHashSet<AggregateId>,
    /// Every event up to here is marked.
    marked: u64,
}

/// Some of the aggregates that wait.
pub struct Taken {
    pub aggregates: Vec<(AggregateId, u64)>,
    /// Once their snapshots are written, snapshots stand for every event up to here.
    pub reached: u64,
}

impl DirtyAggregates {
    /// Marks the aggregates of events whose states are visible already.
    pub fn mark(&self, events: &[Arc<Event>]) {
        let mut inner = self.lock();
        for event in events {
            if inner.members.insert(event.aggregate_id.clone()) {
                inner.waiting.push_back((event.aggregate_id.clone(), event.position));
            }
            inner.marked = inner.marked.max(event.position);
        }
    }

    /// Marks aggregates that were folded anew from the same events.
    pub fn touch<'a>(&self, ids: impl IntoIterator<Item = &'a AggregateId>) {
        let mut inner = self.lock();
        // Their snapshots stand for every event that is marked; only how they are folded is older.
        let next = inner.marked + 1;
        for id in ids {
            if inner.members.insert(id.clone()) {
                inner.waiting.push_back((id.clone(), next));
            }
        }
    }

    /// Says that nothing up to a position waits.
    pub fn begin_at(&self, position: u64) {
        self.lock().marked = position;
    }

    /// Takes those that have waited longest. From now on a change marks them again.
    pub fn take(&self, most: usize) -> Taken {
        let mut inner = self.lock();
        let count = most.min(inner.waiting.len());
        let aggregates: Vec<_> = inner.waiting.drain(..count).collect();
        for (id, _) in &aggregates {
            inner.members.remove(id);
        }
        let reached = inner.waiting.front().map_or(inner.marked, |(_, first)| first - 1);
        Taken { aggregates, reached }
    }

    /// Takes back those whose snapshots could not be written.
    pub fn put_back(&self, taken: Taken) {
        let mut inner = self.lock();
        for (id, first) in taken.aggregates.into_iter().rev() {
            if !inner.members.insert(id.clone()) {
                inner.waiting.retain(|(waiting, _)| *waiting != id);
            }
            inner.waiting.push_front((id, first));
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(id: &str, position: u64) -> Arc<Event> {
        Arc::new(Event {
            event_id: position.to_string().into(),
            aggregate_id: AggregateId::parse(id).expect("a valid id"),
            aggregate_type: "note".into(),
            event_type: "note.changed".into(),
            project_id: None,
            version: 1,
            position,
            payload: Arc::default(),
            metadata: Arc::default(),
            actor: "system".into(),
            occurred_at: 0,
            recorded_at: 0,
            sent: Default::default(),
        })
    }

    #[test]
    fn what_is_reached_leaves_no_event_behind() {
        let dirty = DirtyAggregates::default();
        dirty.mark(&[event("a", 1), event("b", 2), event("a", 3), event("c", 4)]);
        let taken = dirty.take(1);
        assert_eq!(taken.aggregates.iter().map(|(id, _)| id.as_str()).collect::<Vec<_>>(), ["a"]);
        assert_eq!(taken.reached, 1);
        dirty.mark(&[event("a", 5)]);
        dirty.put_back(taken);
        assert_eq!(dirty.take(1).reached, 1);
        assert_eq!(dirty.take(9).reached, 5);
    }
}
