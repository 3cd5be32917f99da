//! Stored responses to requests with an idempotency key. For an append, the store keeps references to the events. For
//! any other request, the store keeps the body of the response.

use std::collections::HashMap;
use std::sync::Arc;

use surrealdb::types::{RecordIdKeyRange, Value as Record};

use crate::store::{Database, DatabaseReader, Error, Result, convert};

/// The maximum number of responses or batches that one statement deletes. This number limits the size of the
/// transaction.
const DELETE_BATCH_SIZE: usize = 1_000;
/// The name of the checkpoint that contains the time up to which responses have been deleted.
const DELETION_CHECKPOINT: &str = "forgotten_answers";

/// A run of events at consecutive positions, as part of the result of an append.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventRun {
    pub first: u64,
    pub count: u64,
    /// Whether the events were already in the log before the append.
    pub repeated: bool,
}

/// The first response to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredResponse {
    /// The SHA-256 of the request, in hexadecimal.
    pub fingerprint: Arc<str>,
    /// The runs of events that an append returned, in the order of the response. The runs are stored in the transaction
    /// that appends the events.
    pub events: Option<Vec<EventRun>>,
    /// The body of the response, if the request was not an append. `None` while the request is in progress.
    pub body: Option<String>,
    pub location: Option<String>,
    /// The creation time, in milliseconds since the epoch.
    pub created_at: i64,
}

impl DatabaseReader {
    /// Returns the stored responses for the given idempotency keys, by key.
    pub async fn read_responses(&self, keys: &[Arc<str>]) -> Result<HashMap<Arc<str>, StoredResponse>> {
        let ids = convert::array(keys.iter().map(|key| response_id(key)));
        let statement = "SELECT *, record::id(id) AS key FROM $ids";
        let found = self.query(statement, [("ids", ids)]).await?;
        let keyed = |record| Ok((convert::text_field(record, "key")?.into(), read_response(record)?));
        convert::list(found.first())?.map(keyed).collect()
    }

    /// Returns the time up to which responses have been deleted. If no time is recorded yet, returns the time of the
    /// oldest response, or `None` if there are no responses.
    pub async fn responses_forgotten_until(&self) -> Result<Option<i64>> {
        let recorded = self.checkpoint(DELETION_CHECKPOINT).await?;
        if recorded > 0 {
            return Ok(i64::try_from(recorded).ok());
        }
        // This query reads all entries. The query is only needed until a time is recorded.
        let found = self.query("SELECT VALUE record::id(id)[0] FROM answered LIMIT 1", []).await?;
        convert::list(found.first())?.next().map(convert::int).transpose()
    }
}

impl Database {
    /// Stores the record of a response. A record without a body marks the request as in progress. If the key already
    /// has a record of the same request, adds only the body and the location that this record lacks. Does not change
    /// the record of another request. Returns the record that is stored after the call.
    pub async fn keep_response(&self, key: &str, response: &StoredResponse) -> Result<StoredResponse> {
        // The entry for the later deletion is written before the response, so that every response has such an entry.
        let statement =
            "INSERT IGNORE INTO answered $answered RETURN NONE; INSERT INTO answer $content ON DUPLICATE KEY UPDATE
            body = IF fingerprint = $input.fingerprint { body ?? $input.body } ELSE { body },
            location = IF fingerprint = $input.fingerprint { location ?? $input.location } ELSE { location }";
        let answered = answered(key, response.created_at, vec![convert::text(key)]);
        let kept =
            self.query_again(statement, [("content", response_record(key, response)?), ("answered", answered)]).await?;
        let kept = convert::list(kept.last())?.next().map(read_response).transpose()?;
        kept.ok_or_else(|| Error::corrupt(format!("the response '{key}' is missing after its write")))
    }

    /// Deletes the response for a key if the response was created at or before the time `before`.
    pub async fn forget_response(&self, key: &str, before: i64) -> Result<()> {
        let values = [("id", response_id(key)), ("before", convert::integer(before))];
        self.query_again("DELETE $id WHERE created_at <= $before RETURN NONE", values).await.map(drop)
    }

    /// Deletes the record of a request in progress, unless the record belongs to another request with the same key.
    pub async fn delete_pending_response(&self, key: &str, fingerprint: &str) -> Result<()> {
        let values = [("id", response_id(key)), ("fingerprint", convert::text(fingerprint))];
        let statement = "DELETE $id WHERE fingerprint = $fingerprint AND body = NONE AND events = NONE RETURN NONE";
        self.query_again(statement, values).await.map(drop)
    }

    /// Records the time up to which responses have been deleted.
    pub async fn set_responses_forgotten(&self, until: i64) -> Result<()> {
        let values = [("name", convert::text(DELETION_CHECKPOINT)), ("until", convert::integer(until))];
        let statement = "UPSERT type::record('checkpoint', $name) SET position = $until RETURN NONE";
        self.query_again(statement, values).await.map(drop)
    }

    /// Deletes the responses that were created in the period `from..before`. Returns the number of batches in the
    /// period. A batch contains the responses that were stored together. One query reads all batches of the period, so
    /// the period should be short.
    pub async fn forget_responses(&self, from: i64, before: i64) -> Result<usize> {
        let at = |time: i64| convert::key([convert::integer(time)]);
        let range = convert::record_id("answered", RecordIdKeyRange::from(at(from)..at(before)));
        let found = self.query("SELECT id, keys FROM $range", [("range", range)]).await?;
        let (mut batches, mut responses) = (Vec::new(), Vec::new());
        for batch in convert::list(found.first())? {
            let Record::Object(batch) = batch else {
                return Err(Error::corrupt("a batch of responses is not an object"));
            };
            batches.extend(batch.get("id").cloned());
            for key in convert::list(batch.get("keys"))? {
                let Record::String(key) = key else {
                    return Err(Error::corrupt("an idempotency key is not a string"));
                };
                responses.push(response_id(key));
            }
        }
        // The batches are deleted after the responses. After an interruption, the next deletion therefore finds the
        // same responses again.
        for some in responses.chunks(DELETE_BATCH_SIZE) {
            let values = [("some", Record::Array(some.to_vec().into())), ("before", convert::integer(before))];
            self.query_again("DELETE $some WHERE created_at < $before RETURN NONE", values).await?;
        }
        for some in batches.chunks(DELETE_BATCH_SIZE) {
            self.query_again("DELETE $batches RETURN NONE", [("batches", Record::Array(some.to_vec().into()))]).await?;
        }
        Ok(batches.len())
    }
}

/// Returns the records of responses that are stored together, and the batch record for their later deletion.
pub(super) fn response_records(responses: &[(Arc<str>, StoredResponse)]) -> Result<(Vec<Record>, Option<Record>)> {
    let records = responses.iter().map(|(key, response)| response_record(key, response)).collect::<Result<_>>()?;
    let keys = || responses.iter().map(|(key, _)| convert::text(key)).collect::<Vec<_>>();
    let batch = responses.first().map(|(key, first)| answered(key, first.created_at, keys()));
    Ok((records, batch))
}

fn answered(key: &str, created_at: i64, keys: Vec<Record>) -> Record {
    let id = convert::record_id("answered", convert::key([convert::integer(created_at), convert::text(key)]));
    convert::object([("id", id), ("keys", Record::Array(keys.into()))])
}

fn response_id(key: &str) -> Record {
    convert::record_id("answer", key.to_owned())
}

/// Returns the record of a response. Missing parts have no field in the record, because each field adds to the cost of
/// an append.
fn response_record(key: &str, response: &StoredResponse) -> Result<Record> {
    let mut record = convert::fields([
        ("id", response_id(key)),
        ("fingerprint", convert::text(&response.fingerprint)),
        ("created_at", convert::integer(response.created_at)),
    ]);
    if let Some(events) = &response.events {
        let runs: Vec<_> = events.iter().map(|run| (run.first, run.count, run.repeated)).collect();
        record.insert("events".to_owned(), Record::String(convert::json_text(&runs)?));
    }
    for (name, value) in [("body", &response.body), ("location", &response.location)] {
        if let Some(value) = value {
            record.insert(name.to_owned(), convert::text(value));
        }
    }
    Ok(Record::Object(record))
}

fn read_response(record: &Record) -> Result<StoredResponse> {
    convert::named("response", record, || {
        let runs = |text: &str| -> Result<Vec<EventRun>> {
            let runs: Vec<(u64, u64, bool)> = serde_json::from_str(text)
                .map_err(|error| Error::corrupt(format!("the events of a stored response cannot be read: {error}")))?;
            Ok(runs.into_iter().map(|(first, count, repeated)| EventRun { first, count, repeated }).collect())
        };
        Ok(StoredResponse {
            fingerprint: convert::text_field(record, "fingerprint")?.into(),
            events: convert::optional_text_field(record, "events").map(|text| runs(&text)).transpose()?,
            body: convert::optional_text_field(record, "body").map(|text| text.to_string()),
            location: convert::optional_text_field(record, "location").map(|text| text.to_string()),
            created_at: convert::int_field(record, "created_at")?,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Store;
    use crate::store::workspace::append::AppendBatch;

    /// Writes responses without events.
    async fn write(database: &Database, responses: &[(Arc<str>, StoredResponse)]) -> Result<()> {
        database.append(AppendBatch { responses, ..AppendBatch::default() }).await
    }

    fn response(fingerprint: &str, body: Option<&str>, created_at: i64) -> StoredResponse {
        let location = body.map(|_| "/there".to_owned());
        StoredResponse {
            fingerprint: fingerprint.into(),
            events: None,
            body: body.map(str::to_owned),
            location,
            created_at,
        }
    }

    #[tokio::test]
    async fn only_responses_of_the_given_period_are_removed() {
        let database = Database::log_in_memory().await;
        let kept: Vec<(Arc<str>, StoredResponse)> =
            (0..2_500).map(|number| (number.to_string().into(), response("f", Some("b"), number / 5))).collect();
        // The first part has one batch of five responses for each time, and the second part has five batches of one
        // response.
        for some in kept[..1_000].chunks(5).chain(kept[1_000..].chunks(1)) {
            write(&database, some).await.expect("written");
        }
        // If a response is deleted early and stored again, the later creation time applies.
        database.forget_response("7", 480).await.expect("forgotten");
        let again = [("7".into(), response("g", Some("b"), 490))];
        write(&database, &again).await.expect("written");
        assert_eq!(database.responses_forgotten_until().await.expect("read"), Some(0));
        // Each batch is read only once, regardless of the length of the periods.
        let mut found = 0;
        for from in (0..480).step_by(60) {
            found += database.forget_responses(from, from + 60).await.expect("forgotten");
        }
        assert_eq!(found, 200 + 1_400);
        assert_eq!(database.forget_responses(0, 480).await.expect("nothing"), 0);
        assert_eq!(database.responses_forgotten_until().await.expect("read"), Some(480));
        database.set_responses_forgotten(470).await.expect("written");
        assert_eq!(database.responses_forgotten_until().await.expect("read"), Some(470));
        let keys: Vec<Arc<str>> = kept.iter().map(|(key, _)| key.clone()).collect();
        let left = database.read_responses(&keys).await.expect("read");
        assert_eq!(left.len(), 101);
        assert!(left.values().all(|response| response.created_at >= 480));
        database.forget_responses(480, 1_000).await.expect("forgotten");
        let left = database.query("SELECT VALUE id FROM answer, answered", []).await.expect("read");
        assert_eq!(convert::list(left.first()).expect("a list").count(), 0);
    }

    #[tokio::test]
    async fn a_batch_with_the_idempotency_key_of_a_stored_response_writes_nothing() {
        let store = Store::connect("mem://").await.expect("a store");
        let (alone, one_of_many) = (store.workspace("w").await, store.share().workspace("w").await);
        for database in [alone.expect("a database"), one_of_many.expect("a database")] {
            let appended = StoredResponse {
                events: Some(vec![
                    EventRun { first: 3, count: 2, repeated: false },
                    EventRun { first: 1, count: 1, repeated: true },
                ]),
                ..response("f", None, 1)
            };
            let key = |number: u8| Arc::<str>::from(format!("{number}-{}", database.exclusive));
            let first = [(key(1), appended.clone())];
            write(&database, &first).await.expect("written");
            let second = [(key(2), response("g", None, 2)), (key(1), response("g", None, 2))];
            let refused = write(&database, &second).await;
            assert!(matches!(refused, Err(Error::Conflict)), "{refused:?}");
            let left = database.read_responses(&[key(1), key(2)]).await.expect("read");
            assert_eq!(left, HashMap::from([(key(1), appended.clone())]));
            // The response of an append is complete, although it has no body.
            database.delete_pending_response(&key(1), "f").await.expect("nothing");
            assert_eq!(database.keep_response(&key(1), &response("g", None, 3)).await.expect("compared"), appended);
        }
    }

    #[tokio::test]
    async fn a_later_response_does_not_replace_the_first_response() {
        let database = Database::log_in_memory().await;
        let under_way = response("f", None, 1);
        assert_eq!(database.keep_response("k", &under_way).await.expect("noted"), under_way);
        let other = database.keep_response("k", &response("g", Some("other"), 2)).await.expect("compared");
        assert_eq!(other, under_way);
        // The failure of another request with the key does not end the request in progress.
        database.delete_pending_response("k", "g").await.expect("nothing");
        let given = database.keep_response("k", &response("f", Some("first"), 3)).await.expect("kept");
        assert_eq!(given, response("f", Some("first"), 1));
        assert_eq!(database.keep_response("k", &response("f", Some("second"), 4)).await.expect("compared"), given);
        database.delete_pending_response("k", "f").await.expect("nothing");
        assert_eq!(database.read_responses(&["k".into()]).await.expect("read").len(), 1);
        database.forget_response("k", 1).await.expect("forgotten");
        assert!(database.read_responses(&["k".into()]).await.expect("read").is_empty());
    }
}
