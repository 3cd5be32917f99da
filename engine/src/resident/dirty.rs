//! The aggregates that changed since their last snapshots were written, sorted by the first change after the snapshot.
//!
//! Each snapshot contains a whole state. After a snapshot is written, no further snapshot of the same aggregate is
//! written for a time proportional to the size of the state. This pause limits the bytes written per aggregate and
//! hour. Each start of the program folds the events after the last snapshots again. A pause therefore ends early when
//! the number or the total size of these events reaches a limit.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use parking_lot::Mutex;
use rustc_hash::FxHashMap;

use crate::model::event::Event;
use crate::model::id::AggregateId;

/// The size in bytes for which a snapshot causes a pause of one second. A snapshot of twice this size causes a pause of
/// two seconds, and so on. The length of a pause is at most [`MAX_REST_MS`].
const BYTES_PER_SECOND: usize = 8 << 10;
/// The minimum length of a pause, in milliseconds. A shorter pause is skipped.
const MIN_REST_MS: i64 = 1_000;
/// The maximum length of a pause after a snapshot, in milliseconds. A longer pause is cut to this length.
const MAX_REST_MS: i64 = 300_000;
/// The number of events that end an aggregate's pause early. All events in the log after the first unsaved event of the
/// paused aggregate count, including the events of other aggregates.
const MAX_EVENTS_BEHIND: u64 = 16_384;
/// The total size of events, in bytes, that ends an aggregate's pause early. All events that were marked since the
/// aggregate was added to `Inner::resting` count, including the events of other aggregates.
const MAX_BYTES_BEHIND: u64 = 16 << 20;
/// The minimum number of stored pauses at which finished pauses are removed.
const MIN_RESTS_FOR_CLEANUP: usize = 64;

/// The aggregates that wait for their next snapshots. The memory used depends on the number of aggregates and not on
/// the number of events.
#[derive(Default)]
pub struct DirtyAggregates {
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    /// Aggregates whose snapshots may be written now.
    waiting: BTreeMap<QueuePlace, AggregateId>,
    /// The changed aggregates whose snapshots are paused.
    resting: BTreeMap<QueuePlace, RestingAggregate>,
    /// The end of the pause of each aggregate in `resting`, in milliseconds since the epoch.
    ends: BTreeSet<(i64, QueuePlace)>,
    /// The place of each aggregate in `waiting` or `resting`.
    places: FxHashMap<AggregateId, QueuePlace>,
    /// The time until which the snapshots of each aggregate are paused, in milliseconds since the epoch. Changes of the
    /// aggregate do not extend the pause.
    rests: FxHashMap<AggregateId, i64>,
    /// If `rests` has at least this number of entries, the pauses that have ended are removed from `rests`.
    cleanup_at: usize,
    /// The position up to which all events have been marked.
    marked: u64,
    /// The total size of all events that have been marked, in bytes.
    bytes: u64,
    entries: u64,
    /// Whether pauses are disabled.
    skips_pauses: bool,
}

/// The place of a changed aggregate in the order of the aggregates that wait for their next snapshots.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct QueuePlace {
    /// The position of the aggregate's first event that is in no snapshot.
    first: u64,
    /// A running number that distinguishes aggregates that have the same value of `first`.
    entry: u64,
}

struct RestingAggregate {
    id: AggregateId,
    until_ms: i64,
    /// The total size of the events that had been marked when the aggregate was added to [`Inner::resting`], in bytes.
    bytes: u64,
}

/// The aggregates returned by one call of [`DirtyAggregates::pop`].
pub struct DirtyBatch {
    /// The aggregates, each with the position of its first event that is in no snapshot.
    pub aggregates: Vec<(AggregateId, u64)>,
    /// A position of the log. Once the snapshots of `aggregates` are written, all events up to this position are in
    /// snapshots.
    pub reached: u64,
    /// The time at which the first pause ends, in milliseconds since the epoch. `None` if no aggregate is paused, or if
    /// the call reached its limit and the next call can return more aggregates immediately.
    pub rest_until: Option<i64>,
}

impl DirtyAggregates {
    /// Marks the aggregates of events. The states after the events must already be visible.
    pub fn mark(&self, events: &[Arc<Event>]) {
        let mut inner = self.inner.lock();
        for event in events {
            inner.enter(&event.aggregate_id, event.position);
            inner.marked = inner.marked.max(event.position);
            inner.bytes += event.size_bytes() as u64;
        }
    }

    /// Marks aggregates whose states were refolded under a new definition.
    pub fn touch<'a>(&self, ids: impl IntoIterator<Item = &'a AggregateId>) {
        let mut inner = self.inner.lock();
        // The existing snapshots contain all marked events. Only the definition under which the states were folded is
        // outdated.
        let next = inner.marked + 1;
        ids.into_iter().for_each(|id| inner.enter(id, next));
    }

    /// Sets the position up to which all events are in snapshots.
    pub fn begin_at(&self, position: u64) {
        self.inner.lock().marked = position;
    }

    /// Removes and returns at most `limit` aggregates whose snapshots are not paused, the aggregates that have waited
    /// longest first. A later change marks the aggregates again.
    pub fn pop(&self, limit: usize, now_ms: i64) -> DirtyBatch {
        let mut inner = self.inner.lock();
        inner.end_rests(now_ms);
        let mut aggregates = Vec::new();
        while aggregates.len() < limit
            && let Some((place, id)) = inner.waiting.pop_first()
        {
            inner.places.remove(&id);
            aggregates.push((id, place.first));
        }
        let firsts = inner.waiting.keys().next().into_iter().chain(inner.resting.keys().next());
        let reached = firsts.map(|place| place.first - 1).min().unwrap_or(inner.marked);
        let rest_until = inner.ends.first().map(|(until_ms, _)| *until_ms).filter(|_| inner.waiting.is_empty());
        DirtyBatch { aggregates, reached, rest_until }
    }

    /// Pauses the snapshots of an aggregate whose snapshot is being written. `bytes` is the size of the aggregate's
    /// state. A small state causes no pause.
    pub fn rest(&self, id: &AggregateId, bytes: usize, now_ms: i64) {
        let rest_ms = i64::try_from(bytes.saturating_mul(1_000) / BYTES_PER_SECOND).unwrap_or(MAX_REST_MS);
        if rest_ms < MIN_REST_MS {
            return;
        }
        let until_ms = now_ms.saturating_add(rest_ms.min(MAX_REST_MS));
        let mut inner = self.inner.lock();
        if inner.rests.len() >= inner.cleanup_at {
            inner.rests.retain(|_, until_ms| *until_ms > now_ms);
            inner.cleanup_at = MIN_RESTS_FOR_CLEANUP.max(2 * inner.rests.len());
        }
        inner.rests.insert(id.clone(), until_ms);
        // The aggregate may have been marked again after `pop` returned the aggregate.
        if let Some(place) = inner.places.get(id).copied()
            && inner.waiting.remove(&place).is_some()
        {
            inner.begin_rest(id.clone(), place, until_ms);
        }
    }

    /// Ends the pauses between the snapshots of each aggregate, and disables further pauses. Called before the
    /// workspace closes, because no snapshots can be written after the workspace has closed.
    pub fn skip_pauses(&self) {
        self.inner.lock().skips_pauses = true;
    }

    /// Puts the aggregates of a batch back into `waiting`, because their snapshots could not be written.
    pub fn put_back(&self, taken: DirtyBatch) {
        let mut inner = self.inner.lock();
        for (id, first) in taken.aggregates {
            if let Some(place) = inner.places.remove(&id) {
                inner.waiting.remove(&place);
                inner.leave_rest(place);
            }
            let place = inner.place(first);
            inner.places.insert(id.clone(), place);
            inner.waiting.insert(place, id);
        }
    }
}

impl Inner {
    fn place(&mut self, first: u64) -> QueuePlace {
        self.entries += 1;
        QueuePlace { first, entry: self.entries }
    }

    /// Adds an aggregate to `waiting`, or to `resting` if its snapshots are paused. Does nothing if the aggregate
    /// already has a place.
    fn enter(&mut self, id: &AggregateId, first: u64) {
        if self.places.contains_key(id) {
            return;
        }
        let place = self.place(first);
        self.places.insert(id.clone(), place);
        match self.rests.get(id).copied().filter(|_| !self.skips_pauses) {
            Some(until_ms) => self.begin_rest(id.clone(), place, until_ms),
            None => drop(self.waiting.insert(place, id.clone())),
        }
    }

    fn begin_rest(&mut self, id: AggregateId, place: QueuePlace, until_ms: i64) {
        self.ends.insert((until_ms, place));
        self.resting.insert(place, RestingAggregate { id, until_ms, bytes: self.bytes });
    }

    fn leave_rest(&mut self, place: QueuePlace) -> Option<AggregateId> {
        let RestingAggregate { id, until_ms, .. } = self.resting.remove(&place)?;
        self.ends.remove(&(until_ms, place));
        Some(id)
    }

    /// Moves each aggregate whose pause has ended or must end early from `resting` to `waiting`.
    fn end_rests(&mut self, now_ms: i64) {
        while let Some(place) = self.far_behind().or_else(|| self.rested(now_ms)) {
            let Some(id) = self.leave_rest(place) else { break };
            self.waiting.insert(place, id);
        }
    }

    /// Returns the paused aggregate with the oldest unsaved event if the pause must end early. A pause ends early at
    /// the limits [`MAX_EVENTS_BEHIND`] and [`MAX_BYTES_BEHIND`], or if pauses are disabled.
    fn far_behind(&self) -> Option<QueuePlace> {
        let (place, resting) = self.resting.first_key_value()?;
        let is_far = self.marked.saturating_sub(place.first) >= MAX_EVENTS_BEHIND
            || self.bytes.saturating_sub(resting.bytes) >= MAX_BYTES_BEHIND;
        (is_far || self.skips_pauses).then_some(*place)
    }

    /// Returns an aggregate whose pause has ended. A pause that ends more than [`MAX_REST_MS`] from now also counts as
    /// ended, because the clock has been set back since that pause began.
    fn rested(&self, now_ms: i64) -> Option<QueuePlace> {
        let first = self.ends.first().filter(|(until_ms, _)| *until_ms <= now_ms);
        let last = || self.ends.last().filter(|(until_ms, _)| *until_ms > now_ms.saturating_add(MAX_REST_MS));
        first.or_else(last).map(|(_, place)| *place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::value::{Object, Value};

    fn event_of(id: &str, position: u64, bytes: usize) -> Arc<Event> {
        let payload = match bytes {
            0 => Object::default(),
            _ => Object::from_iter([("text", Value::from("x".repeat(bytes)))]),
        };
        Arc::new(Event { version: 1, payload: Arc::new(payload), ..Event::sample(id, "note.changed", position) })
    }

    fn event(id: &str, position: u64) -> Arc<Event> {
        event_of(id, position, 0)
    }

    fn ids(taken: &DirtyBatch) -> Vec<&str> {
        taken.aggregates.iter().map(|(id, _)| id.as_str()).collect()
    }

    #[test]
    fn the_reached_position_never_passes_an_unwritten_event() {
        let dirty = DirtyAggregates::default();
        dirty.mark(&[event("a", 1), event("b", 2), event("a", 3), event("c", 4)]);
        let taken = dirty.pop(1, 0);
        assert_eq!((ids(&taken), taken.reached), (vec!["a"], 1));
        dirty.mark(&[event("a", 5)]);
        dirty.put_back(taken);
        assert_eq!(dirty.pop(1, 0).reached, 1);
        assert_eq!(dirty.pop(9, 0).reached, 5);
    }

    /// Takes the waiting aggregates and treats them as written. Returns the ids and the state sizes of these
    /// aggregates, and the position up to which snapshots contain all events.
    fn write(
        dirty: &DirtyAggregates,
        sizes: &[(&'static str, usize)],
        now_ms: i64,
    ) -> (Vec<(&'static str, usize)>, u64) {
        let taken = dirty.pop(usize::MAX, now_ms);
        let written = sizes.iter().filter(|(id, _)| ids(&taken).contains(id));
        let written: Vec<_> = written.copied().collect();
        for (id, bytes) in &written {
            dirty.rest(&AggregateId::parse(id).expect("a valid id"), *bytes, now_ms);
        }
        (written, taken.reached)
    }

    #[test]
    fn snapshots_of_a_busy_aggregate_are_limited_in_bytes_per_second_and_do_not_delay_other_snapshots() {
        const STEPS: u64 = 12_000;
        const STEP_MS: i64 = 300;
        let sizes = [("large", 800_000), ("middle", 20_000), ("small", 1_000)];
        let dirty = DirtyAggregates::default();
        let mut bytes = std::collections::HashMap::new();
        for step in 0..STEPS {
            let events = sizes.iter().zip(1..).map(|((id, _), number)| event(id, 3 * step + number));
            dirty.mark(&events.collect::<Vec<_>>());
            let (written, reached) = write(&dirty, &sizes, step as i64 * STEP_MS);
            assert!(written.contains(&sizes[2]), "the small aggregate is written at each step");
            assert!(3 * (step + 1) - reached <= MAX_EVENTS_BEHIND);
            written.iter().for_each(|(id, size)| *bytes.entry(*id).or_insert(0) += size);
        }
        let seconds = STEPS as usize * STEP_MS as usize / 1_000;
        for (id, size) in &sizes[..2] {
            let written = bytes[id];
            assert!(written <= seconds * BYTES_PER_SECOND + size, "{id}: {written} bytes in {seconds} seconds");
            assert!(written * 2 >= seconds * BYTES_PER_SECOND, "{id}: only {written} bytes in {seconds} seconds");
        }
    }

    #[test]
    fn a_delayed_snapshot_is_written_when_a_limit_is_reached() {
        let sizes = [("large", 64 << 20)];
        let resting_large = || {
            let dirty = DirtyAggregates::default();
            dirty.mark(&[event("large", 1)]);
            assert_eq!(write(&dirty, &sizes, 0), (sizes.to_vec(), 1));
            dirty.mark(&[event("large", 2)]);
            assert_eq!(write(&dirty, &sizes, 1), (Vec::new(), 1));
            dirty
        };
        let dirty = resting_large();
        dirty.mark(&[event("small", MAX_EVENTS_BEHIND + 1)]);
        assert_eq!(write(&dirty, &sizes, 1).0, []);
        dirty.mark(&[event("small", MAX_EVENTS_BEHIND + 2)]);
        assert_eq!(write(&dirty, &sizes, 1), (sizes.to_vec(), MAX_EVENTS_BEHIND + 2));

        let dirty = resting_large();
        dirty.mark(&[event_of("small", 3, MAX_BYTES_BEHIND as usize / 2)]);
        assert_eq!(write(&dirty, &sizes, 1).0, []);
        dirty.mark(&[event_of("small", 4, MAX_BYTES_BEHIND as usize / 2)]);
        assert_eq!(write(&dirty, &sizes, 1), (sizes.to_vec(), 4));

        let dirty = resting_large();
        assert_eq!(dirty.pop(9, 2).rest_until, Some(MAX_REST_MS));
        assert_eq!(write(&dirty, &sizes, MAX_REST_MS), (sizes.to_vec(), 2));

        let dirty = resting_large();
        dirty.skip_pauses();
        assert_eq!(write(&dirty, &sizes, 1), (sizes.to_vec(), 2));

        // The clock was set back by more than the longest pause.
        assert_eq!(write(&resting_large(), &sizes, -1_000_000), (sizes.to_vec(), 2));
    }

    #[test]
    fn changes_during_a_write_are_delayed_unless_the_write_fails() {
        let sizes = [("large", 1 << 20)];
        let large = AggregateId::parse("large").expect("a valid id");
        let dirty = DirtyAggregates::default();
        dirty.mark(&[event("large", 1)]);
        let taken = dirty.pop(9, 0);
        dirty.mark(&[event("large", 2)]);
        dirty.rest(&large, 1 << 20, 0);
        assert_eq!(write(&dirty, &sizes, 1), (Vec::new(), 1));
        dirty.put_back(taken);
        assert_eq!(dirty.pop(0, 1).reached, 0);
        assert_eq!(write(&dirty, &sizes, 1), (sizes.to_vec(), 2));
        assert_eq!(dirty.pop(9, 1).rest_until, None);
    }
}
