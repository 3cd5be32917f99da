//! Reads one stream in pages whose lengths adapt to the sizes of the events.

use std::ops::RangeInclusive;

use super::State;
use super::stride::Stride;
use crate::error::Result;
use crate::model::aggregate::Aggregate;
use crate::model::event::Event;
use crate::model::id::AggregateId;
use crate::store::{self, DatabaseReader};

/// The pages of a range of versions of one stream, in ascending order.
pub struct StreamPages {
    id: AggregateId,
    versions: RangeInclusive<u64>,
    stride: Stride,
}

impl StreamPages {
    pub fn new(id: AggregateId, versions: RangeInclusive<u64>) -> StreamPages {
        StreamPages { id, versions, stride: Stride::new(Stride::FIRST) }
    }

    /// Returns the next page, or `None` after the last version of the range. If the stream ends before the page, the
    /// page is empty.
    pub async fn next(&mut self, log: &DatabaseReader) -> store::Result<Option<Vec<Event>>> {
        let (first, end) = (*self.versions.start(), *self.versions.end());
        if first > end {
            return Ok(None);
        }
        let last = end.min(first.saturating_add(self.stride.events() as u64 - 1));
        let events = log.read_stream(&self.id, first, last).await?;
        self.versions = last + 1..=end;
        self.stride.adapt(&events);
        Ok(Some(events))
    }
}

impl State {
    /// Returns the version that an aggregate had at a position of the log, or 0 if the position is before the
    /// aggregate's first event. A binary search over the stream reads one event per iteration.
    pub async fn version_at(&self, aggregate: &Aggregate, position: u64) -> Result<u64> {
        if aggregate.first_position > position {
            return Ok(0);
        }
        if aggregate.position <= position {
            return Ok(aggregate.version);
        }
        // The event with version `lower` is at or before the position. The event with version `upper` is after the
        // position.
        let (mut lower, mut upper) = (1, aggregate.version);
        while upper - lower > 1 {
            let middle = lower + (upper - lower) / 2;
            let event = self.db.read_stream(&aggregate.id, middle, middle).await?.pop();
            match event.is_some_and(|event| event.position <= position) {
                true => lower = middle,
                false => upper = middle,
            }
        }
        Ok(lower)
    }
}
