//! Adapts the number of events per read to the sizes of the events, so that each read is close to a target size.

use crate::model::event::Event;

/// The number of events to read next. The size of an event is known only after the event is read. Therefore the number
/// starts small and at most doubles with each read. After a read of large events, the number is so small that a read of
/// equally large events stays within [`Stride::BYTES`], or the number is 1.
#[derive(Debug, Clone, Copy)]
pub struct Stride {
    events: usize,
    largest: usize,
}

impl Stride {
    /// The number of events in the first read.
    pub const FIRST: usize = 16;
    /// The maximum number of events in one read. The limit is small because large events may follow any number of small
    /// events.
    pub const MAX: usize = 64;
    /// The target size of one read, in bytes.
    pub const BYTES: usize = 4 << 20;

    /// Creates a stride for a reader that requests up to `limit` events.
    pub fn new(limit: usize) -> Stride {
        Stride { events: Stride::FIRST.min(limit).max(1), largest: 1 }
    }

    /// Returns the number of events to read next.
    pub fn events(&self) -> usize {
        self.events
    }

    /// Sets the number of events to read next, based on the sizes of the events that were just read.
    pub fn adapt<'e>(&mut self, read: impl IntoIterator<Item = &'e Event>) {
        // A large event is likely to be followed by others. The influence of a large event halves with each read of
        // small events.
        self.largest = read.into_iter().map(Event::size_bytes).fold(self.largest / 2, usize::max);
        let fitting = (Stride::BYTES / self.largest.max(1)).clamp(1, Stride::MAX);
        self.events = fitting.min(self.events * 2);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::model::value::Value;

    fn event(bytes: usize) -> Event {
        let payload = [("text", Value::from("x".repeat(bytes)))].into_iter().collect();
        Event { payload: Arc::new(payload), ..Event::sample("a", "note.created", 1) }
    }

    #[test]
    fn the_number_of_events_per_read_grows_after_small_events_and_shrinks_after_a_large_event() {
        let mut stride = Stride::new(1_000);
        let mut strides = Vec::new();
        for bytes in [1, 1, 1, 1 << 20, 1, 1] {
            stride.adapt(&[event(bytes)]);
            strides.push(stride.events());
        }
        assert_eq!(strides, [32, 64, 64, 3, 6, 12]);
        assert_eq!(Stride::new(1).events(), 1);
    }
}
