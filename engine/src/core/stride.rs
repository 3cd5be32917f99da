//! How many events are read from the store at a time, so that what is read fits a number of bytes.

use crate::model::event::Event;

/// The number of events of the next read. The sizes of events are known only once they were read: so reads begin small,
/// grow at most twofold, and shrink by the largest event among the last ones.
#[derive(Debug, Clone, Copy)]
pub struct Stride {
    events: usize,
    largest: usize,
}

impl Stride {
    /// Events of the first read.
    pub const FIRST: usize = 16;
    /// The largest number of events of one read: so many large ones may stand after any number of small ones.
    pub const MOST: usize = 64;
    /// Bytes that one read is meant to have.
    pub const BYTES: usize = 4 << 20;

    /// The stride of a reader that wants so many events.
    pub fn new(wanted: usize) -> Stride {
        Stride { events: Stride::FIRST.min(wanted).max(1), largest: 1 }
    }

    /// Events to read next.
    pub fn events(&self) -> usize {
        self.events
    }

    /// Learns from the events that were read.
    pub fn learn<'e>(&mut self, read: impl IntoIterator<Item = &'e Event>) {
        // Where one was large, so may be those after it; after some small ones it is forgotten.
        self.largest = read.into_iter().map(Event::size_bytes).fold(self.largest / 2, usize::max);
        let fitting = (Stride::BYTES / self.largest.max(1)).clamp(1, Stride::MOST);
        self.events = fitting.min(self.events * 2);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::model::id::AggregateId;
    use crate::model::value::Value;

    fn event(bytes: usize) -> Event {
        Event {
            event_id: "e".into(),
            aggregate_id: AggregateId::from(Arc::from("a")),
            aggregate_type: "note".into(),
            event_type: "note.created".into(),
            project_id: None,
            version: 1,
            position: 1,
            payload: Arc::new([("text", Value::from("x".repeat(bytes)))].into_iter().collect()),
            metadata: Arc::default(),
            actor: "system".into(),
            occurred_at: 1,
            recorded_at: 2,
            sent: Default::default(),
        }
    }

    #[test]
    fn reads_grow_while_events_are_small_and_stay_small_after_a_large_one() {
        let mut stride = Stride::new(1_000);
        let mut strides = Vec::new();
        for bytes in [1, 1, 1, 1 << 20, 1, 1] {
            stride.learn(&[event(bytes)]);
            strides.push(stride.events());
        }
        assert_eq!(strides, [32, 64, 64, 3, 6, 12]);
        assert_eq!(Stride::new(1).events(), 1);
    }
}
