//! The feeds of agents: an index of the events that concern each agent. With the index, an agent's events are found
//! without a search through the log.
//!
//! The key of an entry consists of the agent and the event's position. Entries are written together with their events.

use std::sync::Arc;

use surrealdb::types::{RecordIdKey, RecordIdKeyRange, Value as Record};

use super::graph::id_parts;
use super::log::EventRef;
use crate::model::event::Event;
use crate::store::{Database, DatabaseReader, Error, Result, convert};

/// The name of the checkpoint that contains the position after which all events have feed entries. Older versions of
/// the program wrote no entries.
const CHECKPOINT: &str = "feed";
/// The number of positions in the first searched range. The search uses growing ranges because the database reads a
/// range to its end, even if the query has a limit.
const FIRST_SPAN: u64 = 512;
/// The ratio between the length of a searched range and the length of the previous range.
const SPAN_GROWTH: u64 = 8;

/// The next events in an agent's feed.
#[derive(Debug, PartialEq, Eq)]
pub struct FeedSlice {
    /// The events in log order, without the times at which they occurred.
    pub events: Vec<EventRef>,
    /// The position up to which `events` is complete.
    pub position: u64,
}

impl DatabaseReader {
    /// Returns the position after which all events have feed entries.
    pub async fn feed_begin(&self) -> Result<u64> {
        self.checkpoint(CHECKPOINT).await
    }

    /// Returns the next events that concern an agent, with positions after `after` and up to `until`. The result may be
    /// incomplete. The result is empty only if no event between these positions concerns the agent.
    pub async fn read_feed(&self, agent: &str, after: u64, until: u64) -> Result<FeedSlice> {
        let (mut from, mut span) = (after.saturating_add(1), FIRST_SPAN);
        while from <= until {
            let last = from.saturating_add(span - 1).min(until);
            let events = self.feed_between(agent, from, last).await?;
            if !events.is_empty() {
                return Ok(FeedSlice { events, position: last });
            }
            (from, span) = (last + 1, span.saturating_mul(SPAN_GROWTH));
        }
        Ok(FeedSlice { events: Vec::new(), position: until.max(after) })
    }

    /// Considers only the events of an agent's feed with positions after `first` and up to `end`. Returns the position
    /// before the last `count` of these events. If there are fewer than `count` events, returns `first`.
    pub async fn feed_part_before(&self, agent: &str, first: u64, end: u64, count: usize) -> Result<u64> {
        let (mut until, mut span, mut found) = (end, FIRST_SPAN, 0);
        while until > first {
            let from = until.saturating_sub(span).max(first) + 1;
            let events = self.feed_between(agent, from, until).await?;
            found += events.len();
            if found >= count {
                // The last range may contain more events than needed.
                return Ok(events.get(found - count).map_or(from - 1, |event| event.position - 1));
            }
            (until, span) = (from - 1, span.saturating_mul(SPAN_GROWTH));
        }
        Ok(first)
    }

    /// Returns the events of an agent's feed with positions in `first..=last`.
    async fn feed_between(&self, agent: &str, first: u64, last: u64) -> Result<Vec<EventRef>> {
        let range = RecordIdKeyRange::from(entry_key(agent, first)..=entry_key(agent, last));
        self.read_all("SELECT * FROM $range", [("range", convert::record_id("feed", range))], event_ref).await
    }
}

impl Database {
    /// Removes the feed entries up to a position, as if an older version of the program had written the events.
    #[cfg(test)]
    pub async fn forget_feed(&self, position: u64) -> Result<()> {
        let statement = "DELETE feed WHERE id[1] <= $position; UPSERT checkpoint:feed SET position = $position";
        self.query(statement, [("position", convert::integer(position))]).await.map(drop)
    }
}

/// Returns the feed entry for an event that concerns an agent.
pub(super) fn feed_record(agent: &str, event: &Event) -> Record {
    convert::object([
        ("id", convert::record_id("feed", entry_key(agent, event.position))),
        ("aggregate_id", convert::text(event.aggregate_id.as_str())),
        ("version", convert::integer(event.version)),
    ])
}

fn entry_key(agent: &str, position: u64) -> RecordIdKey {
    convert::key([convert::text(agent), convert::integer(position)])
}

fn event_ref(record: &Record) -> Result<EventRef> {
    let corrupt = || Error::corrupt("the id of a feed entry is not `[agent, position]`");
    let key = id_parts(record).map_err(|_| corrupt())?;
    let aggregate_id = Arc::from(convert::text_field(record, "aggregate_id")?);
    let version = convert::unsigned_field(record, "version")?;
    let position = convert::int(key.get(1).ok_or_else(corrupt)?)?.max(0) as u64;
    Ok(EventRef::new(aggregate_id, version, position))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::workspace::append::EventWrite;
    use crate::store::{Store, WORKSPACE_MIGRATIONS};

    fn event(version: u64, position: u64) -> Arc<Event> {
        Arc::new(Event { version, ..Event::sample("task-1", "task.created", position) })
    }

    /// Sets the head of the log, because in a shared store appends are only possible at the head.
    async fn set_head(log: &Database, position: u64) {
        let values = [("position", convert::integer(position))];
        log.query("UPSERT head:log SET position = $position", values).await.expect("a head");
    }

    #[tokio::test]
    async fn events_of_an_agent_are_found_across_large_gaps_between_positions() {
        let alone = Store::connect("mem://").await.expect("memory");
        for (store, first) in [(&alone, 1), (&alone.share(), 100_001)] {
            let log = store.workspace("0-1").await.expect("a database");
            assert_eq!(log.feed_begin().await.expect("a position"), 0);
            // The gap between the positions of the two batches represents events that other writers have appended.
            let (near, far) = ([event(first, first), event(first + 1, first + 1)], [event(first + 2, first + 90_000)]);
            let concerning = |event: &Arc<Event>, agents: &[&str]| EventWrite {
                agents: agents.iter().map(|agent| Arc::from(*agent)).collect(),
                ..EventWrite::from(event.clone())
            };
            let writes = [concerning(&near[0], &["a", "b"]), concerning(&near[1], &["a"])];
            set_head(&log, near[0].position - 1).await;
            log.append_events(&writes).await.expect("appended");
            set_head(&log, far[0].position - 1).await;
            log.append_events(&[concerning(&far[0], &["a"])]).await.expect("appended");

            let read = async |agent, after, until| log.read_feed(agent, after, until).await.expect("events");
            let positions = |found: &FeedSlice| found.events.iter().map(|event| event.position).collect::<Vec<_>>();
            let found = read("a", first - 1, first + 90_000).await;
            assert_eq!(positions(&found), [first, first + 1]);
            assert_eq!((found.events[1].version, &*found.events[1].aggregate_id), (first + 1, "task-1"));
            assert!(found.position < first + 90_000);
            assert_eq!(positions(&read("a", found.position, first + 90_000).await), [first + 90_000]);
            assert_eq!(positions(&read("b", first - 1, first + 90_000).await), [first]);
            let none = FeedSlice { events: Vec::new(), position: first + 80_000 };
            assert_eq!(read("b", first, first + 80_000).await, none);
            assert_eq!(read("b", first + 5, first + 5).await.position, first + 5);
        }
    }

    #[tokio::test]
    async fn the_feed_begins_after_events_of_older_programs() {
        let store = Store::connect("mem://").await.expect("memory");
        let old = store.database("ws_01", &WORKSPACE_MIGRATIONS[..8]).await.expect("a database");
        old.append_events(&[event(1, 1).into(), event(2, 2).into()]).await.expect("appended");
        assert_eq!(store.workspace("0-1").await.expect("a database").feed_begin().await.expect("a position"), 2);
    }
}
