//! The last events of the log, kept in memory for readers close to the end of the log.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::model::event::Event;

/// The maximum total size of the events in memory, in bytes. Earlier events are read from the store.
const MAX_BYTES: usize = 16 << 20;
/// The maximum number of events in memory.
const MAX_EVENTS: usize = 20_000;

/// Returns the size of an event in memory, in bytes, including the serialized text for subscribers.
fn size_bytes(event: &Event) -> usize {
    2 * event.size_bytes()
}

/// A window of events at the end of the log.
#[derive(Default)]
pub struct Tail {
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    events: VecDeque<Arc<Event>>,
    bytes: usize,
    /// The position of the last added event. Before the first event is added, the position that [`Tail::begin_at`] set.
    /// An empty window begins after this position.
    end: u64,
}

impl Tail {
    /// Sets the position of the last event of the log. Called before any event is added.
    pub fn begin_at(&self, position: u64) {
        self.inner.lock().end = position;
    }

    /// Adds the next events of the log to the window. If events are missing between the window and `events`, first
    /// clears the window. Removes the oldest events if the window exceeds its limits.
    pub fn extend(&self, events: &[Arc<Event>]) {
        let mut inner = self.inner.lock();
        for event in events {
            let follows = inner.events.back().is_none_or(|last| last.position + 1 == event.position);
            if !follows {
                inner.events.clear();
                inner.bytes = 0;
            }
            inner.bytes += size_bytes(event);
            inner.end = event.position;
            inner.events.push_back(event.clone());
        }
        while inner.bytes > MAX_BYTES || inner.events.len() > MAX_EVENTS {
            let Some(oldest) = inner.events.pop_front() else { break };
            inner.bytes = inner.bytes.saturating_sub(size_bytes(&oldest));
        }
    }

    /// Returns the size of the events in the window, in bytes.
    pub fn size_bytes(&self) -> usize {
        self.inner.lock().bytes
    }

    /// Returns up to `limit` events after a position. Returns `None` if the window lacks one of these events whose
    /// position is at most `visible`. The window lacks old events, because its size is limited. The window can also
    /// lack the newest events, because an event is added only shortly after its state becomes visible.
    pub fn visible_after(&self, position: u64, limit: usize, visible: u64) -> Option<Vec<Arc<Event>>> {
        let (events, end) = self.after_with_end(position, limit)?;
        (events.len() >= limit || end >= visible).then_some(events)
    }

    /// Returns up to `limit` events after a position. Ignores events that are not yet in the window. Returns `None` if
    /// the window begins after the first of the requested events.
    pub fn after(&self, position: u64, limit: usize) -> Option<Vec<Arc<Event>>> {
        self.after_with_end(position, limit).map(|(events, _)| events)
    }

    fn after_with_end(&self, position: u64, limit: usize) -> Option<(Vec<Arc<Event>>, u64)> {
        let inner = self.inner.lock();
        // An empty window begins after the log's end, so no later event is missing from the window.
        let first = inner.events.front().map_or(inner.end + 1, |first| first.position);
        let skip = usize::try_from((position + 1).checked_sub(first)?).ok()?;
        Some((inner.events.iter().skip(skip).take(limit).cloned().collect(), inner.end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(position: u64) -> Arc<Event> {
        Arc::new(Event::sample("a", "note.changed", position))
    }

    #[test]
    fn a_read_that_needs_events_outside_the_tail_returns_none() {
        let tail = Tail::default();
        tail.begin_at(7);
        tail.extend(&[event(8), event(9)]);
        let after = |position, limit, visible| tail.visible_after(position, limit, visible).map(|events| events.len());
        assert_eq!((after(7, 9, 9), after(9, 9, 9)), (Some(2), Some(0)));
        assert_eq!((after(7, 9, 10), after(9, 9, 10)), (None, None));
        assert_eq!((after(7, 2, 10), after(6, 1, 9)), (Some(2), None));
    }

    #[test]
    fn the_tail_covers_every_position_after_its_beginning() {
        let tail = Tail::default();
        let after = |position| tail.after(position, 9).map(|events| events.len());
        assert_eq!(after(0), Some(0));
        tail.begin_at(7);
        assert_eq!((after(6), after(7), after(8)), (None, Some(0), Some(0)));
        tail.extend(&[event(8), event(9)]);
        assert_eq!((after(6), after(7), after(8), after(9), after(10)), (None, Some(2), Some(1), Some(0), Some(0)));
    }
}
