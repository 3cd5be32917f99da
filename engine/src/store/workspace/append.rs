//! Appends to the log of a workspace: a batch of events with the records that belong to the events, in one commit.

use std::sync::Arc;

use surrealdb::types::Value as Record;

use super::body;
use super::feed::feed_record;
use super::log::{commit_id, event_key};
use super::published::{PUBLISHED, published_record};
use super::responses::{StoredResponse, response_records};
use super::uploads::{freed_record, upload_id};
use crate::model::aggregate::Aggregate;
use crate::model::event::Event;
use crate::store::{Database, Error, Result, convert, variables};

/// The transaction that appends a batch if other processes may write: the events, the event ids that clients chose, the
/// responses, the entries in the feeds of agents, and the commit record, which is needed to read the log in order. The
/// transaction fails if another writer has appended events or changed definitions since the batch was checked.
const APPEND: &str = "
BEGIN;
IF ((SELECT VALUE position FROM ONLY head:log) ?? 0) != $head
    OR ((SELECT VALUE types FROM ONLY head:log) ?? 0) != $types { THROW 'stale head' };
INSERT INTO event $events RETURN NONE;
IF array::len($keys) > 0 { INSERT INTO event_key $keys RETURN NONE };
IF array::len($answers) > 0 { INSERT INTO answer $answers RETURN NONE; INSERT INTO answered $answered RETURN NONE };
IF array::len($feed) > 0 { INSERT INTO feed $feed RETURN NONE };
INSERT INTO commit $commit RETURN NONE;
UPSERT head:log SET position = $position RETURN NONE;
";

/// The statement that appends a batch if no other process writes, or if the batch has no events. A single statement
/// costs half as much as the transaction [`APPEND`]. The record ids of events and commits still prevent a second event
/// with the same version and a second commit at the same position.
const APPEND_ALONE: &str = "INSERT $records RETURN NONE;";

/// The statement that is added to the transaction if the batch has an epoch. The statement fails if the leader has
/// another epoch.
const LED: &str = "IF ((SELECT VALUE epoch FROM ONLY leader:consumer) ?? 0) != $epoch { THROW 'stale head' };";

/// The statements that are added to the transaction if the batch contains files. The statements fail if an upload that
/// the files refer to is not in progress. If all of these uploads are in progress, the statements delete their records.
/// The statements also record the uploads that files no longer refer to, so that the bytes of these uploads are removed
/// later.
const FILES: &str = "
IF array::len($taken) > 0 {
    LET $under_way = (DELETE $taken WHERE state = 'writing' RETURN BEFORE);
    IF array::len($under_way) != array::len($taken) { THROW 'stale upload' };
};
IF array::len($freed) > 0 { INSERT INTO upload $freed RETURN NONE };
";

/// An event to append, and the records that belong to the event.
pub struct EventWrite {
    pub event: Arc<Event>,
    /// Whether a client chose the event's id.
    pub id_chosen: bool,
    /// The id of the upload that a file refers to after the event. The upload must be in progress.
    pub taken: Option<Arc<str>>,
    /// The id of the upload that a file no longer refers to, with the upload's size in bytes.
    pub freed: Option<(Arc<str>, u64)>,
    /// The ids of the agents that the event concerns.
    pub agents: Vec<Arc<str>>,
    /// The article that the event publishes, with the revision of its type's definition.
    pub published: Option<(Arc<Aggregate>, u64)>,
}

impl From<Arc<Event>> for EventWrite {
    /// Returns a value that writes only the event, without other records.
    fn from(event: Arc<Event>) -> EventWrite {
        EventWrite { event, id_chosen: false, taken: None, freed: None, agents: Vec::new(), published: None }
    }
}

/// Events to commit together.
#[derive(Default)]
pub struct AppendBatch<'a> {
    pub events: &'a [EventWrite],
    /// The responses to store with the events, by idempotency key. If a response is already stored for one of these
    /// keys, the write fails.
    pub responses: &'a [(Arc<str>, StoredResponse)],
    /// The value of the definitions' change counter when the events were checked.
    pub types_changed: u64,
    /// The epoch of the leader, if the batch may be written only while this server leads.
    pub epoch: Option<u64>,
}

impl Database {
    /// Writes a batch atomically. Fails with [`Error::Conflict`] if another writer has appended events or changed
    /// definitions first, if the epoch of the leader differs from the epoch of the batch, if an idempotency key or an
    /// event id that a client chose is already stored, or if an upload of the batch is not in progress. Fails with
    /// [`Error::Closing`] if this process is the only writer and has opened the log again.
    ///
    /// If this process is the only writer, the definitions and the epoch are not checked. For a batch without events,
    /// only the idempotency keys and the append right are checked.
    ///
    /// The future must not be dropped before it completes, except when the process ends. The transaction of a dropped
    /// future may continue after the append right was released.
    pub async fn append(&self, batch: AppendBatch<'_>) -> Result<()> {
        let _appending = match &self.append_right {
            Some(right) => Some(right.begin().await?),
            None => None,
        };
        let (mut responses, answered) = response_records(batch.responses)?;
        let events = || batch.events.iter().map(|write| &write.event);
        let (Some(first), Some(last)) = (events().next(), events().next_back()) else {
            if responses.is_empty() {
                return Ok(());
            }
            responses.extend(answered);
            let records = variables([("records", Record::Array(responses.into()))]);
            return self.write_bound(APPEND_ALONE, records).await.map(drop);
        };
        let mut records = Vec::with_capacity(batch.events.len());
        let (mut keys, mut feed, mut taken, mut freed) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let mut published = Vec::new();
        for write in batch.events {
            records.push(event_record(&write.event)?);
            keys.extend(write.id_chosen.then(|| key_record(&write.event)));
            feed.extend(write.agents.iter().map(|agent| feed_record(agent, &write.event)));
            taken.extend(write.taken.as_deref().map(upload_id));
            freed.extend(write.freed.as_ref().map(|(id, bytes)| freed_record(id, *bytes)));
            if let Some((article, revision)) = &write.published {
                published.push(published_record(article, *revision)?);
            }
        }
        let commit = convert::object([
            ("id", convert::record_id("commit", last.position as i64)),
            ("events", Record::String(serialized_refs(events())?)),
        ]);
        let has_files = !taken.is_empty() || !freed.is_empty();
        let files = [("taken", Record::Array(taken.into())), ("freed", Record::Array(freed.into()))];
        let files = files.into_iter().filter(|_| has_files);
        let published = (!published.is_empty()).then(|| ("published", Record::Array(published.into())));
        let statements =
            [if has_files { FILES } else { "" }, if published.is_some() { PUBLISHED } else { "" }].concat();
        let beside = files.chain(published);
        if self.exclusive {
            records.extend(keys);
            records.extend(feed);
            records.extend(responses);
            records.extend(answered);
            records.push(commit);
            let records = [("records", Record::Array(records.into()))];
            let statement = match statements.as_str() {
                "" => APPEND_ALONE.into(),
                statements => ["BEGIN;", APPEND_ALONE, statements, "COMMIT;"].concat(),
            };
            return self.query_bound(&statement, variables(records.into_iter().chain(beside))).await.map(drop);
        }
        let led = if batch.epoch.is_some() { LED } else { "" };
        let values: [_; 10] = [
            ("epoch", batch.epoch.map_or(Record::None, convert::integer)),
            ("types", convert::integer(batch.types_changed)),
            ("head", convert::integer(first.position - 1)),
            ("events", Record::Array(records.into())),
            ("keys", Record::Array(keys.into())),
            ("answers", Record::Array(responses.into())),
            ("answered", answered.unwrap_or(Record::None)),
            ("feed", Record::Array(feed.into())),
            ("commit", commit),
            ("position", convert::integer(last.position)),
        ];
        let statement = [APPEND, led, &statements, "COMMIT;"].concat();
        self.query_bound(&statement, variables(values.into_iter().chain(beside))).await.map(drop)
    }

    /// Appends events that were checked before any definition changed.
    #[cfg(test)]
    pub async fn append_events(&self, events: &[EventWrite]) -> Result<()> {
        self.append(AppendBatch { events, ..AppendBatch::default() }).await
    }

    /// Moves the head to the end of the log. Several writers need the head to detect each other's appends, but a single
    /// writer does not maintain the head.
    pub(in crate::store) async fn restore_head(&self) -> Result<()> {
        let found = self.query("SELECT VALUE id FROM commit ORDER BY id DESC LIMIT 1", []).await?;
        let Some(last) = convert::list(found.first())?.next().map(commit_id).transpose()? else { return Ok(()) };
        let statement = "UPSERT head:log SET position = math::max([position ?? 0, $position]) RETURN NONE";
        self.query_again(statement, [("position", convert::integer(last))]).await.map(drop)
    }
}

/// Serializes the references to a commit's events as text. Stored as database values, the references would cost as much
/// as the events.
fn serialized_refs<'a>(events: impl Iterator<Item = &'a Arc<Event>>) -> Result<String> {
    let refs: Vec<(&str, u64, i64, usize)> = events
        .map(|event| (event.aggregate_id.as_str(), event.version, event.occurred_at, event.size_bytes()))
        .collect();
    serde_json::to_string(&refs).map_err(|error| Error::corrupt(error.to_string()))
}

fn record_id(event: &Event) -> Record {
    convert::record_id("event", event_key(event.aggregate_id.as_str(), event.version))
}

fn key_record(event: &Arc<Event>) -> Record {
    convert::object([("id", convert::record_id("event_key", event.event_id.to_string())), ("event", record_id(event))])
}

fn event_record(event: &Arc<Event>) -> Result<Record> {
    Ok(convert::object([
        ("id", record_id(event)),
        ("position", convert::integer(event.position)),
        ("body", Record::String(body::write(event)?)),
    ]))
}
