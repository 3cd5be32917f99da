//! Reads the log of a workspace: events by stream and version, and commits by position.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use rustc_hash::FxHashSet;
use serde::Deserialize;
use surrealdb::types::{RecordId, RecordIdKey, RecordIdKeyRange, Value as Record};

use super::body::{self, Fields};
use super::graph::id_parts;
use super::responses::EventRun;
use crate::model::event::Event;
use crate::model::id::{AggregateId, position_hint};
use crate::store::record::{StoredRecord, stored_record};
use crate::store::{DatabaseReader, Error, Result, convert};

stored_record!(Ends [] { position, types_changed = "types", epoch, graph_writes = "writes" });

/// A reference to an event by its stream, version and position. Only a reference that was read from a commit has the
/// time and the size of the event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventRef {
    pub aggregate_id: Arc<str>,
    pub version: u64,
    pub position: u64,
    /// The time at which the event occurred, in milliseconds since the epoch. `None` if the reference was not read from
    /// a commit, or if an older program wrote the commit.
    pub occurred_at: Option<i64>,
    /// The approximate size of the event in memory, in bytes. `None` if the reference was not read from a commit, or if
    /// an older program wrote the commit.
    pub size_bytes: Option<usize>,
    /// Whether the event is the last event of its commit. Always `false` if the reference was not read from a commit.
    pub ends_commit: bool,
}

impl EventRef {
    /// Returns a reference that was not read from a commit.
    pub fn new(aggregate_id: Arc<str>, version: u64, position: u64) -> EventRef {
        EventRef { aggregate_id, version, position, occurred_at: None, size_bytes: None, ends_commit: false }
    }
}

/// The values by which a server detects writes of other servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Ends {
    /// The position of the last event. Only maintained if several servers write.
    pub position: u64,
    pub types_changed: u64,
    /// The epoch of the leader.
    pub epoch: u64,
    /// The number of writes to the graph.
    pub graph_writes: u64,
}

/// The minimum number of positions in a range that is searched for the next commit.
const MIN_COMMIT_SPAN: usize = 64;

/// The maximum number of events that one query reads to compare their ids.
const PART_EVENTS: usize = 64;
/// The maximum total size of the events that one query reads to compare their ids, in bytes.
const PART_BYTES: usize = 4 << 20;
/// The assumed size of an event whose commit does not list the size, in bytes.
const ASSUMED_EVENT_BYTES: usize = 128 << 10;

const ENDS: &str = "
SELECT position ?? 0 AS position, types ?? 0 AS types, (SELECT VALUE epoch FROM ONLY leader:consumer) ?? 0 AS epoch,
    (SELECT VALUE writes FROM ONLY checkpoint:graph) ?? 0 AS writes FROM ONLY head:log";

impl DatabaseReader {
    /// Returns the values by which a server detects writes of other servers.
    pub async fn ends(&self) -> Result<Ends> {
        Ok(self.read_first(ENDS, [], Ends::read).await?.unwrap_or_default())
    }

    /// Returns how often definitions have been changed.
    pub async fn types_changed(&self) -> Result<u64> {
        Ok(self.ends().await?.types_changed)
    }

    /// Returns events after a position, in log order. The result has at least `limit` events, unless fewer events
    /// follow the position.
    pub async fn read_after(&self, position: u64, limit: usize) -> Result<Vec<Event>> {
        let refs = self.event_refs_after(position, limit).await?;
        self.read_event_refs(&refs, None).await
    }

    /// Returns references to the events after a position, in log order. The result has at least `limit` references,
    /// unless fewer events follow the position.
    pub async fn event_refs_after(&self, position: u64, limit: usize) -> Result<Vec<EventRef>> {
        let mut next = i64::try_from(position).unwrap_or(i64::MAX).saturating_add(1);
        let mut found: Vec<EventRef> = Vec::new();
        // The database reads a range to its end, even if the query has a limit. Each range is therefore only as long as
        // needed to find enough events in most cases. If the range is empty, the next commit is either longer than the
        // range or does not exist.
        let mut longest = MIN_COMMIT_SPAN;
        while found.len() < limit {
            let span = longest.max(limit - found.len());
            let range = commit_range(next, next.checked_add_unsigned(span as u64));
            let rows = self.query("SELECT id, events FROM $range", [("range", range)]).await?;
            let mut commits = convert::list(rows.first())?.peekable();
            if commits.peek().is_none() {
                let Some(last) = self.first_commit(next).await? else { break };
                longest = positions(next, last);
            }
            for commit in commits {
                let last = event_refs_of(commit, position, &mut found)?;
                longest = MIN_COMMIT_SPAN.max(positions(next, last));
                next = last.saturating_add(1);
                if found.len() >= limit {
                    break;
                }
            }
        }
        Ok(found)
    }

    /// Returns the id of the first commit that ends at or after a position.
    async fn first_commit(&self, from: i64) -> Result<Option<i64>> {
        // The database reads a range to its end, even if the query has a limit. The search therefore starts with a
        // short range, which grows only while it is empty.
        for span in [Some(MIN_COMMIT_SPAN as u64), Some(4_096), Some(1 << 18), None] {
            let end = span.and_then(|span| from.checked_add_unsigned(span));
            let range = commit_range(from, end);
            let found = self.query("SELECT VALUE id FROM $range LIMIT 1", [("range", range)]).await?;
            if let Some(id) = convert::list(found.first())?.next() {
                return commit_id(id).map(Some);
            }
        }
        Ok(None)
    }

    /// Returns the events at the positions of a run.
    pub async fn read_run(&self, run: EventRun) -> Result<Vec<Event>> {
        let mut refs = self.event_refs_after(run.first.saturating_sub(1), run.count as usize).await?;
        refs.truncate(run.count as usize);
        self.read_event_refs(&refs, None).await
    }

    /// Returns the referenced events, the oldest first, with only the given fields of their payloads.
    pub async fn read_event_refs(&self, refs: &[EventRef], fields: Fields<'_>) -> Result<Vec<Event>> {
        if refs.is_empty() {
            return Ok(Vec::new());
        }
        let key = |event: &EventRef| event_key(&event.aggregate_id, event.version);
        let ids = convert::array(refs.iter().map(|event| convert::record_id("event", key(event))));
        let read = |record: &Record| read_event(record, fields);
        let mut events = self.read_all("SELECT * FROM $ids", [("ids", ids)], read).await?;
        events.sort_unstable_by_key(|event| event.position);
        self.count_read(&events);
        Ok(events)
    }

    /// Returns the events of a stream whose versions are in `first..=last`, the oldest first.
    pub async fn read_stream(&self, id: &AggregateId, first: u64, last: u64) -> Result<Vec<Event>> {
        if first > last {
            return Ok(Vec::new());
        }
        let values = [("range", stream_range(id, first, last))];
        let events = self.read_all("SELECT * FROM $range", values, |record| read_event(record, None)).await?;
        self.count_read(&events);
        Ok(events)
    }

    /// Returns the events with the given ids, by id. `head` is the end of the log.
    pub async fn find_events(&self, event_ids: &[Arc<str>], head: u64) -> Result<HashMap<Arc<str>, Event>> {
        let mut events = self.find_chosen(event_ids).await?;
        events.extend(self.find_generated(event_ids, head).await?);
        Ok(events)
    }

    /// Returns the events with the given ids, by id. Finds only events whose ids clients chose.
    pub async fn find_chosen(&self, event_ids: &[Arc<str>]) -> Result<HashMap<Arc<str>, Event>> {
        let keys = convert::array(event_ids.iter().map(|id| convert::record_id("event_key", id.to_string())));
        let statement = "SELECT * FROM (SELECT VALUE event FROM $keys)";
        let events = self.read_all(statement, [("keys", keys)], |record| read_event(record, None)).await?;
        Ok(events.into_iter().map(|event| (event.event_id.clone(), event)).collect())
    }

    /// Returns the events with the given ids, by id. Finds only events whose ids a server generated.
    ///
    /// There is no index of generated ids, because each generated id contains the position of its event. A client can
    /// invent such ids, so the cost is limited: each position is looked up only once, and only the event at that
    /// position is read.
    pub async fn find_generated(&self, event_ids: &[Arc<str>], head: u64) -> Result<HashMap<Arc<str>, Event>> {
        let hints = event_ids.iter().filter_map(|id| position_hint(id));
        let positions: BTreeSet<u64> = hints.filter(|position| (1..=head).contains(position)).collect();
        let mut refs: Vec<EventRef> = Vec::with_capacity(positions.len());
        let mut commit: Vec<EventRef> = Vec::new();
        for position in positions {
            // Adjacent positions are usually in the same commit.
            if !commit.iter().any(|event_ref| event_ref.position == position) {
                commit = self.commit_of(position).await?;
            }
            refs.extend(commit.iter().find(|event_ref| event_ref.position == position).cloned());
        }
        let requested: FxHashSet<&str> = event_ids.iter().map(|id| &**id).collect();
        let mut found = HashMap::new();
        let mut refs = VecDeque::from(refs);
        // Events at the positions of invented ids are read and discarded. Reading the events in parts limits the
        // memory.
        while !refs.is_empty() {
            let part = take_part(&mut refs, PART_EVENTS, PART_BYTES);
            let events = self.read_event_refs(&part, None).await?.into_iter();
            let matching = events.filter(|event| requested.contains(&*event.event_id));
            found.extend(matching.map(|event| (event.event_id.clone(), event)));
        }
        Ok(found)
    }

    /// Returns references to the events of a stream with the versions `first..=last`.
    pub async fn stream_refs(&self, id: &AggregateId, first: u64, last: u64) -> Result<Vec<EventRef>> {
        let place = |record: &Record| {
            let (aggregate_id, version) = key_of(record)?;
            Ok(EventRef::new(aggregate_id.into(), version, convert::unsigned_field(record, "position")?))
        };
        self.read_all("SELECT id, position FROM $range", [("range", stream_range(id, first, last))], place).await
    }

    /// Returns the event at a position, if the log has this position.
    pub async fn event_at(&self, position: u64) -> Result<Option<Event>> {
        let mut refs = self.commit_of(position).await?;
        refs.retain(|event_ref| event_ref.position == position);
        Ok(self.read_event_refs(&refs, None).await?.pop())
    }

    /// Returns references to the events of the commit that contains a position.
    async fn commit_of(&self, position: u64) -> Result<Vec<EventRef>> {
        let from = i64::try_from(position).unwrap_or(i64::MAX);
        let Some(last) = self.first_commit(from).await? else { return Ok(Vec::new()) };
        let id = convert::record_id("commit", last);
        let rows = self.query("SELECT id, events FROM $id", [("id", id)]).await?;
        let mut found = Vec::new();
        for commit in convert::list(rows.first())? {
            event_refs_of(commit, 0, &mut found)?;
        }
        Ok(found)
    }
}

/// Removes and returns the first references: at most `max_events`. The total size of the referenced events is at most
/// `max_bytes`. Returns at least one reference unless `refs` is empty, even if the referenced event is larger. An event
/// of unknown size counts as [`ASSUMED_EVENT_BYTES`].
pub fn take_part(refs: &mut VecDeque<EventRef>, max_events: usize, max_bytes: usize) -> Vec<EventRef> {
    let some = refs.iter().take(max_events.max(1));
    let count = fitting(some.map(|event_ref| event_ref.size_bytes.unwrap_or(ASSUMED_EVENT_BYTES)), max_bytes);
    refs.drain(..count).collect()
}

/// Returns the number of leading sizes whose sum is at most `max_bytes`. Returns at least 1 unless there are no sizes.
pub fn fitting(sizes: impl ExactSizeIterator<Item = usize>, max_bytes: usize) -> usize {
    let (count, mut bytes) = (sizes.len(), 0usize);
    let fits = sizes.take_while(|size| {
        bytes += *size;
        bytes <= max_bytes
    });
    fits.count().max(1).min(count)
}

fn stream_range(id: &AggregateId, first: u64, last: u64) -> Record {
    let range = event_key(id.as_str(), first)..=event_key(id.as_str(), last);
    convert::record_id("event", RecordIdKeyRange::from(range))
}

fn commit_range(from: i64, end: Option<i64>) -> Record {
    let range = match end {
        Some(end) => RecordIdKeyRange::from(from..end),
        None => RecordIdKeyRange::from(from..),
    };
    convert::record_id("commit", range)
}

/// Returns the key of an event's record.
pub(super) fn event_key(aggregate_id: &str, version: u64) -> RecordIdKey {
    convert::key([convert::text(aggregate_id), convert::integer(version)])
}

/// Returns the id of a commit, which is the position of its last event.
pub(super) fn commit_id(record: &Record) -> Result<i64> {
    match record {
        Record::RecordId(RecordId { key: RecordIdKey::Number(position), .. }) => Ok(*position),
        _ => Err(Error::corrupt("the id of a commit is not an integer")),
    }
}

/// An event as listed in a commit: the stream, the version, the time, and the size in bytes.
#[derive(Deserialize)]
struct ListedEvent(Arc<str>, u64, #[serde(default)] Option<i64>, #[serde(default)] Option<usize>);

/// Returns the number of positions from `from` to `to`, including both.
fn positions(from: i64, to: i64) -> usize {
    usize::try_from(to.saturating_sub(from).saturating_add(1)).unwrap_or(0)
}

/// Adds to `found` a reference to each event of the commit with a position above `after`. Returns the position of the
/// commit's last event.
fn event_refs_of(commit: &Record, after: u64, found: &mut Vec<EventRef>) -> Result<i64> {
    let Record::Object(commit) = commit else { return Err(Error::corrupt("a commit is not an object")) };
    let last = commit_id(commit.get("id").ok_or_else(|| Error::corrupt("a commit has no id"))?)?;
    let Some(Record::String(refs)) = commit.get("events") else {
        return Err(Error::corrupt(format!("the events of the commit {last} are not a string")));
    };
    let refs: Vec<ListedEvent> = serde_json::from_str(refs)
        .map_err(|error| Error::corrupt(format!("the events of the commit {last} cannot be read: {error}")))?;
    let first = (last.max(0) as u64 + 1).saturating_sub(refs.len() as u64);
    let refs =
        refs.into_iter().zip(first..).map(|(ListedEvent(aggregate_id, version, occurred_at, size_bytes), position)| {
            let ends_commit = position as i64 == last;
            EventRef { aggregate_id, version, position, occurred_at, size_bytes, ends_commit }
        });
    found.extend(refs.filter(|event_ref| event_ref.position > after));
    Ok(last)
}

/// Returns the stream id and the version in the key of an event's record.
fn key_of(record: &Record) -> Result<(&str, u64)> {
    let corrupt = || Error::corrupt("the id of an event's record is not `[aggregate id, version]`");
    let [Record::String(aggregate_id), version, ..] = id_parts(record).map_err(|_| corrupt())? else {
        return Err(corrupt());
    };
    Ok((aggregate_id, convert::int(version)?.max(0) as u64))
}

fn read_event(record: &Record, fields: Fields) -> Result<Event> {
    convert::named("event", record, || {
        let (id, version) = key_of(record)?;
        let (text, position) = (convert::text_field(record, "body")?, convert::unsigned_field(record, "position")?);
        body::read(text, fields, AggregateId::from(Arc::from(id)), version, position)
            .map_err(|error| Error::corrupt(error.to_string()))
    })
}

#[cfg(test)]
mod tests;
