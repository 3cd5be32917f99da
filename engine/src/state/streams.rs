//! Keeps the last events of followed aggregates in memory. Only events of the followed aggregate wake a reader.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::watch;

use super::follower_map::FollowerMap;
use crate::model::event::Event;
use crate::model::id::AggregateId;

/// The maximum number of events kept per aggregate. Readers that are further behind read the store.
const MAX_EVENTS: usize = 32;
/// The maximum size of the events kept per aggregate, in bytes.
const MAX_BYTES: usize = 64 << 10;

/// The followed aggregates and their last events.
#[derive(Default)]
pub struct FollowedStreams {
    followed: Mutex<FollowerMap<AggregateId, LastEvents>>,
}

/// The last events of one aggregate, with consecutive versions.
#[derive(Default)]
struct LastEvents {
    events: VecDeque<Arc<Event>>,
    bytes: usize,
}

impl FollowedStreams {
    /// Returns a receiver that changes when the aggregate has new events.
    pub fn follow(&self, id: &AggregateId) -> watch::Receiver<u64> {
        self.followed.lock().follow(id)
    }

    /// Adds events of followed aggregates, and wakes the followers. `events` must be in the order of the log.
    pub fn extend(&self, events: &[Arc<Event>]) {
        let mut followed = self.followed.lock();
        for event in events {
            followed.wake(&event.aggregate_id, event.position, |last| last.push(event));
        }
    }

    /// Returns the events of an aggregate after a version. Returns `None` if the events are not in memory and must be
    /// read from the store.
    pub fn after(&self, id: &AggregateId, version: u64) -> Option<Vec<Arc<Event>>> {
        let followed = self.followed.lock();
        let events = &followed.get(id)?.events;
        events.front().filter(|first| first.version <= version + 1)?;
        let first = events.partition_point(|event| event.version <= version);
        Some(events.range(first..).cloned().collect())
    }

    /// Returns the size of the events in memory, in bytes.
    pub fn size_bytes(&self) -> usize {
        self.followed.lock().kept().map(|last| last.bytes).sum()
    }
}

impl LastEvents {
    fn push(&mut self, event: &Arc<Event>) {
        if self.events.back().is_some_and(|last| last.version + 1 != event.version) {
            (self.events, self.bytes) = Default::default();
        }
        self.bytes += event.size_bytes();
        self.events.push_back(event.clone());
        while self.bytes > MAX_BYTES || self.events.len() > MAX_EVENTS {
            let Some(oldest) = self.events.pop_front() else { break };
            self.bytes = self.bytes.saturating_sub(oldest.size_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(id: &str) -> AggregateId {
        AggregateId::from(Arc::from(id))
    }

    fn event(of: &str, version: u64, bytes: usize) -> Arc<Event> {
        Arc::new(Event {
            event_id: "x".repeat(bytes).into(),
            version,
            payload: Arc::new([("text", "x".repeat(bytes))].into_iter().collect()),
            ..Event::sample(of, "note.created", 100 + version)
        })
    }

    fn versions(found: Option<Vec<Arc<Event>>>) -> Option<Vec<u64>> {
        found.map(|events| events.iter().map(|event| event.version).collect())
    }

    #[test]
    fn only_events_of_the_followed_aggregate_wake_a_follower() {
        let streams = FollowedStreams::default();
        streams.extend(&[event("a", 1, 1)]);
        assert!(streams.after(&id("a"), 0).is_none(), "the aggregate has no followers");
        let (mut of_a, of_b) = (streams.follow(&id("a")), streams.follow(&id("b")));
        assert!(streams.after(&id("a"), 0).is_none(), "earlier events are only in the store");
        streams.extend(&[event("a", 2, 1), event("c", 1, 1), event("a", 3, 1)]);
        let changed = [&of_a, &of_b].map(|receiver| receiver.has_changed().expect("a sender"));
        assert_eq!((changed, *of_a.borrow_and_update()), ([true, false], 103));
        assert_eq!(versions(streams.after(&id("a"), 0)), None);
        assert_eq!(versions(streams.after(&id("a"), 1)), Some(vec![2, 3]));
        assert_eq!(versions(streams.after(&id("a"), 3)), Some(vec![]));
        // Events after a gap replace the earlier events.
        streams.extend(&[event("a", 6, 1)]);
        assert_eq!(versions(streams.after(&id("a"), 3)), None);
        assert_eq!(versions(streams.after(&id("a"), 5)), Some(vec![6]));
        drop((of_a, of_b));
        streams.extend(&[event("a", 7, 1), event("b", 1, 1)]);
        assert_eq!((streams.size_bytes(), streams.followed.lock().kept().len()), (0, 0));
    }

    #[test]
    fn a_stream_keeps_a_limited_number_of_events_and_bytes_in_memory() {
        let streams = FollowedStreams::default();
        let _followers = [streams.follow(&id("a")), streams.follow(&id("b"))];
        for version in 1..=MAX_EVENTS as u64 + 3 {
            streams.extend(&[event("a", version, 1), event("b", version, MAX_BYTES / 4)]);
        }
        assert_eq!(versions(streams.after(&id("a"), 2)), None);
        assert_eq!(versions(streams.after(&id("a"), 3)).map(|versions| versions.len()), Some(MAX_EVENTS));
        assert_eq!(versions(streams.after(&id("b"), 30)), None);
        assert!(streams.size_bytes() <= 2 * MAX_BYTES);
        streams.extend(&[event("b", MAX_EVENTS as u64 + 4, 2 * MAX_BYTES)]);
        assert_eq!(versions(streams.after(&id("b"), MAX_EVENTS as u64 + 3)), None);
    }
}
