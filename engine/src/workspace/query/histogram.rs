//! Counts the events of the log by time.
//!
//! Times of recording grow with the positions of events. A binary search therefore finds the position at which each
//! bucket begins, and reads only a few events. Times of occurrence are listed in commits, so they are read without the
//! events, except for old commits that do not list them. A filter by event type or actor reads all events in the range
//! of positions, without their payloads.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use strum::{EnumString, IntoStaticStr, VariantArray};

use super::events::{EventSelection, Pages};
use super::places::EventPlaces;
use super::reader::{QueryReader, StreamScan};
use crate::error::{Error, Result};
use crate::model::closed_set::closed_set;
use crate::model::event::Event;
use crate::pipeline::StreamFilter;
use crate::workspace::events::LogFilter;
use crate::workspace::rights::Reader;

/// The default number of buckets.
pub const DEFAULT_BUCKETS: usize = 60;
/// The maximum number of buckets.
pub const MAX_BUCKETS: usize = 500;

closed_set!(CountedBy);

/// The time by which an event is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, EnumString, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "lowercase")]
pub enum CountedBy {
    /// The time at which the event occurred, as stated in the event.
    Occurred,
    /// The time at which the event was appended.
    #[default]
    Recorded,
}

/// The events to count, and the time range to count in. The range includes `from` and `to`, in milliseconds since the
/// epoch. Without `from`, the range begins at the earliest time of an event. Without `to`, the range ends at the latest
/// time of an event. If `by` is `Occurred`, only events that match the filter determine the earliest and the latest
/// time. If `by` is `Recorded`, all events of the log determine these times. If there are no such events, a missing
/// bound equals the other bound, or the current time if both bounds are missing. If only `from` is given and is
/// later than the latest time, the range consists only of `from`. If only `to` is given and is earlier than the
/// earliest time, the range consists only of `to` if `by` is `Occurred`, and only of the earliest time if `by` is
/// `Recorded`.
#[derive(Debug, Clone)]
pub struct HistogramQuery {
    pub buckets: usize,
    pub by: CountedBy,
    pub from: Option<i64>,
    pub to: Option<i64>,
    pub filter: LogFilter,
}

/// The numbers of events in the buckets of a time range. Each bucket has the length `bucket_ms`, but the last bucket
/// ends at `to` and may be shorter. The range includes `from` and `to`, in milliseconds since the epoch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Histogram {
    pub from: i64,
    pub to: i64,
    pub bucket_ms: i64,
    pub counts: Vec<u64>,
}

impl Reader {
    /// Counts the events of the log by time, within the limits of a query.
    pub async fn histogram(&self, counting: HistogramQuery) -> Result<Histogram> {
        if !(1..=MAX_BUCKETS).contains(&counting.buckets) {
            let message = format!("`buckets` is {}; expected 1 to {MAX_BUCKETS}", counting.buckets);
            return Err(Error::invalid(message));
        }
        if counting.from.zip(counting.to).is_some_and(|(from, to)| from > to) {
            return Err(Error::invalid("`from` is later than `to`; expected a time at or before `to`"));
        }
        self.read_offloaded(move |reader| Counter::new(reader, &counting).run()).await
    }
}

impl Histogram {
    fn new(from: i64, to: i64, buckets: usize) -> Histogram {
        let to = to.max(from);
        let length = to.saturating_sub(from).saturating_add(1);
        let most = i64::try_from(buckets).unwrap_or(i64::MAX).max(1);
        let bucket_ms = length.div_euclid(most).saturating_add(i64::from(length.rem_euclid(most) > 0)).max(1);
        let count = length.div_euclid(bucket_ms) + i64::from(length.rem_euclid(bucket_ms) > 0);
        Histogram { from, to, bucket_ms, counts: vec![0; usize::try_from(count).unwrap_or(1)] }
    }

    /// Returns the time at which a bucket begins.
    pub fn begin(&self, bucket: usize) -> i64 {
        let before = i64::try_from(bucket).unwrap_or(i64::MAX).saturating_mul(self.bucket_ms);
        self.from.saturating_add(before)
    }

    fn add(&mut self, time: i64) {
        if (self.from..=self.to).contains(&time) {
            let bucket = time.saturating_sub(self.from).div_euclid(self.bucket_ms);
            if let Some(count) = usize::try_from(bucket).ok().and_then(|bucket| self.counts.get_mut(bucket)) {
                *count += 1;
            }
        }
    }
}

struct Counter<'c> {
    reader: &'c QueryReader<'c>,
    counting: &'c HistogramQuery,
    filter: StreamFilter,
    /// The recording times that the binary searches have read, by the position of the event.
    times: HashMap<u64, i64>,
}

impl<'c> Counter<'c> {
    fn new(reader: &'c QueryReader<'c>, counting: &'c HistogramQuery) -> Counter<'c> {
        let one = |name: &str| vec![Arc::from(name)];
        let filter = StreamFilter {
            aggregate_types: counting.filter.aggregate_type.as_deref().map(one),
            project_ids: counting.filter.project_id.as_deref().map(one),
            ..StreamFilter::default()
        };
        Counter { reader, counting, filter, times: HashMap::new() }
    }

    fn run(mut self) -> Result<Histogram> {
        match self.counting.by {
            CountedBy::Recorded => self.by_recorded(),
            CountedBy::Occurred => self.by_occurred(),
        }
    }

    /// Returns whether the filter can only be applied by reading the events.
    fn reads_events(&self) -> bool {
        !self.counting.filter.event_types.is_empty() || self.counting.filter.actor.is_some()
    }

    fn by_recorded(&mut self) -> Result<Histogram> {
        let (HistogramQuery { from, to, buckets, .. }, head) = (self.counting, self.reader.position);
        if head == 0 {
            let from = from.or(*to).unwrap_or(self.reader.context.now_ms);
            return Ok(Histogram::new(from, to.unwrap_or(from), *buckets));
        }
        let from = from.map_or_else(|| self.recorded(1), Ok)?;
        let to = to.map_or_else(|| self.recorded(head), Ok)?;
        let mut found = Histogram::new(from, to, *buckets);
        // The position of the first event of each bucket, and of the first event after the last bucket.
        let mut begins = Vec::with_capacity(found.counts.len() + 1);
        let mut first = 1;
        for bucket in 0..found.counts.len() {
            first = self.first_from(first, found.begin(bucket))?;
            begins.push(first);
        }
        begins.push(self.first_from(first, to.saturating_add(1))?);
        let (Some(&first), Some(&end)) = (begins.first(), begins.last()) else { return Ok(found) };
        if !self.reads_events() && self.filter.is_empty() {
            for (count, pair) in found.counts.iter_mut().zip(begins.windows(2)) {
                *count = pair.iter().copied().reduce(|begin, end| end.saturating_sub(begin)).unwrap_or(0);
            }
            return Ok(found);
        }
        self.visit(first.saturating_sub(1), end.saturating_sub(1), &mut |position, _| {
            let bucket = begins.partition_point(|begin| *begin <= position);
            if let Some(count) = bucket.checked_sub(1).and_then(|bucket| found.counts.get_mut(bucket)) {
                *count += 1;
            }
            Ok(())
        })?;
        Ok(found)
    }

    fn by_occurred(&mut self) -> Result<Histogram> {
        let (head, buckets) = (self.reader.position, self.counting.buckets);
        if let (Some(from), Some(to)) = (self.counting.from, self.counting.to) {
            let mut found = Histogram::new(from, to, buckets);
            self.visit(0, head, &mut |_, occurred_at| {
                found.add(occurred_at);
                Ok(())
            })?;
            return Ok(found);
        }
        // The range is known only after all times are read.
        let mut times: Vec<i64> = Vec::new();
        let context = self.reader.context;
        self.visit(0, head, &mut |_, occurred_at| {
            context.charge(2 * size_of::<i64>())?;
            times.push(occurred_at);
            Ok(())
        })?;
        let now = context.now_ms;
        let first = times.iter().copied().min().or(self.counting.to).unwrap_or(now);
        let from = self.counting.from.unwrap_or(first);
        let last = times.iter().copied().max().unwrap_or(from);
        let to = self.counting.to.unwrap_or(last);
        let mut found = Histogram::new(from.min(self.counting.to.unwrap_or(from)), to, buckets);
        times.into_iter().for_each(|time| found.add(time));
        Ok(found)
    }

    /// Calls `visit` for each event that the filter admits, after the position `after` and up to `position`. The
    /// arguments are the event's position and its time of occurrence.
    fn visit(&self, after: u64, position: u64, visit: &mut dyn FnMut(u64, i64) -> Result<()>) -> Result<()> {
        let streams = StreamScan::new(&self.filter);
        let fields = Some(Arc::<BTreeSet<Arc<str>>>::default());
        let selection = EventSelection { version: None, at: None, after, position, fields };
        if self.reads_events() {
            for event in Pages::new(self.reader, &streams, selection, usize::MAX) {
                self.reader.context.tick()?;
                if self.counting.filter.admits(&event) {
                    visit(event.position, event.occurred_at)?;
                }
            }
            return Ok(());
        }
        let mut places = EventPlaces::new(self.reader, &streams, &selection)?;
        while let Some(listed) = places.list(self.reader, &streams, &selection)? {
            self.reader.context.check_time()?;
            for event_ref in listed {
                let occurred_at = match event_ref.occurred_at {
                    Some(occurred_at) => occurred_at,
                    // An older program wrote the commit without the times of its events.
                    None => self.event(event_ref.position)?.occurred_at,
                };
                visit(event_ref.position, occurred_at)?;
            }
        }
        Ok(())
    }

    /// Returns the position of the first event that is at or after the position `least` and was recorded at or after
    /// `time`. If there is no such event, returns the position after the last event.
    fn first_from(&mut self, least: u64, time: i64) -> Result<u64> {
        let (mut low, mut high) = (least, self.reader.position + 1);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.recorded(middle)? >= time { high = middle } else { low = middle + 1 }
        }
        Ok(low)
    }

    fn recorded(&mut self, position: u64) -> Result<i64> {
        if let Some(time) = self.times.get(&position) {
            return Ok(*time);
        }
        self.reader.context.check_time()?;
        let time = self.event(position)?.recorded_at;
        self.times.insert(position, time);
        Ok(time)
    }

    fn event(&self, position: u64) -> Result<Arc<Event>> {
        let state = self.reader.state;
        if let Some(event) = state.folded.last_events(position - 1, 1).and_then(|mut events| events.pop()) {
            return Ok(event);
        }
        let found = self.reader.handle.block_on(state.db.event_at(position))?;
        found.map(Arc::new).ok_or_else(|| Error::not_found("event", &position.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(from: i64, to: i64, buckets: usize, times: &[i64]) -> (i64, Vec<u64>) {
        let mut found = Histogram::new(from, to, buckets);
        times.iter().for_each(|time| found.add(*time));
        (found.bucket_ms, found.counts)
    }

    #[test]
    fn buckets_cover_the_range_including_both_ends() {
        assert_eq!(counted(0, 99, 10, &[0, 9, 10, 99, 100, -1]), (10, vec![2, 1, 0, 0, 0, 0, 0, 0, 0, 1]));
        assert_eq!(counted(0, 100, 10, &[100]), (11, vec![0, 0, 0, 0, 0, 0, 0, 0, 0, 1]));
        assert_eq!(counted(5, 5, 60, &[5]), (1, vec![1]));
        assert_eq!(counted(5, 7, 60, &[7]), (1, vec![0, 0, 1]));
        assert_eq!(counted(i64::MIN, i64::MAX, 2, &[i64::MAX]).1.len(), 2);
    }
}
