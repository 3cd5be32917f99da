//! Reads the log in batches. The number and the total size of a batch's events are limited.

use std::ops::Range;
use std::sync::Arc;

use super::State;
use crate::error::Result;
use crate::model::event::Event;
use crate::store::workspace::log::{EventRef, fitting};

/// The limits of a batch. A batch from memory ends at the limit that is reached first, but contains at least one event.
/// A batch from the store always ends at the end of a commit, so the batch may exceed the limits.
#[derive(Debug, Clone, Copy)]
pub struct BatchLimit {
    pub events: usize,
    pub bytes: usize,
}

/// The batch limit for followers of the log.
pub const BATCH: BatchLimit = BatchLimit { events: 512, bytes: 4 << 20 };

/// The size of the events that the store reads with one query, in bytes. A query ends with the commit that reaches this
/// size.
const QUERY_BYTES: usize = 4 << 20;
/// The assumed size, in bytes, of an event whose commit does not record the event's size.
const UNKNOWN_BYTES: usize = 128 << 10;

impl State {
    /// Returns the next events after a position. Reads the events from memory, or from the store if memory no longer
    /// contains them.
    pub async fn batch_after(&self, position: u64, limit: BatchLimit) -> Result<Vec<Arc<Event>>> {
        if let Some(mut events) = self.folded.last_events(position, limit.events) {
            events.truncate(fitting(events.iter().map(|event| event.size_bytes()), limit.bytes));
            return Ok(events);
        }
        Ok(self.stored_after(position, limit).await?.into_iter().map(Arc::new).collect())
    }

    /// Reads the next events from the store, beginning after a position. The batch ends at the end of a commit, so that
    /// events appended together are applied together.
    pub(super) async fn stored_after(&self, position: u64, limit: BatchLimit) -> Result<Vec<Event>> {
        let refs = self.db.event_refs_after(position, limit.events).await?;
        let (mut events, mut bytes) = (Vec::new(), 0);
        for range in queries(&refs) {
            let read = self.db.read_event_refs(refs.get(range).unwrap_or_default(), None).await?;
            bytes += read.iter().map(Event::size_bytes).sum::<usize>();
            events.extend(read);
            if bytes >= limit.bytes {
                break;
            }
        }
        Ok(events)
    }
}

/// Splits references into ranges of whole commits. The store reads each range with one query.
fn queries(refs: &[EventRef]) -> Vec<Range<usize>> {
    let (mut parts, mut first, mut bytes) = (Vec::new(), 0, 0);
    for (index, event_ref) in refs.iter().enumerate() {
        bytes += event_ref.size_bytes.unwrap_or(UNKNOWN_BYTES);
        if (event_ref.ends_commit && bytes >= QUERY_BYTES) || index + 1 == refs.len() {
            parts.push(first..index + 1);
            (first, bytes) = (index + 1, 0);
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::value::{Object, Value};

    fn event(position: u64, bytes: usize) -> Arc<Event> {
        let payload = Object::from_iter([("text", Value::from("x".repeat(bytes)))]);
        Arc::new(Event { payload: Arc::new(payload), ..Event::sample("a", "note.changed", position) })
    }

    #[test]
    fn a_batch_ends_at_its_byte_limit_but_contains_at_least_one_event() {
        let fitting = |events: &[Arc<Event>], bytes| fitting(events.iter().map(|event| event.size_bytes()), bytes);
        let large: Vec<_> = (1..=500).map(|position| event(position, 900_000)).collect();
        assert_eq!(fitting(&large, BATCH.bytes), 4);
        assert_eq!((fitting(&large, 1), fitting(&[], 1)), (1, 0));
        let small: Vec<_> = (1..=500).map(|position| event(position, 10)).collect();
        assert_eq!(fitting(&small, BATCH.bytes), 500);
    }

    #[test]
    fn a_query_reads_only_whole_commits() {
        let event_ref = |position: u64, ends_commit| EventRef {
            aggregate_id: "a".into(),
            version: position,
            position,
            occurred_at: None,
            size_bytes: None,
            ends_commit,
        };
        let most = QUERY_BYTES / UNKNOWN_BYTES;
        let alone: Vec<_> = (1..=100).map(|position| event_ref(position, true)).collect();
        assert_eq!(queries(&alone)[..2], [0..most, most..2 * most]);
        assert_eq!(queries(&alone).last(), Some(&(3 * most..100)));
        let together: Vec<_> = (1..=100).map(|position| event_ref(position, position % 50 == 0)).collect();
        assert_eq!(queries(&together), [0..50, 50..100]);
        let sized: Vec<_> =
            alone.iter().map(|known| EventRef { size_bytes: Some(QUERY_BYTES / 50), ..known.clone() }).collect();
        assert_eq!(queries(&sized), [0..51, 51..100]);
        assert!(queries(&[]).is_empty());
    }
}
