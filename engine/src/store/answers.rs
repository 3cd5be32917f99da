//! Answers kept for requests that carry an idempotency key.

use std::collections::HashMap;

use surrealdb::types::{Object as RecordObject, Value as Record};

use super::{Database, Error, Result, convert};

/// Answers forgotten with one statement: a transaction of bounded size.
const FORGOTTEN_AT_ONCE: i64 = 1_000;

/// An answer as it was first given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredAnswer {
    /// SHA-256 of what was asked, in hexadecimal.
    pub fingerprint: String,
    /// `None` while the request is under way.
    pub body: Option<String>,
    pub location: Option<String>,
    /// Milliseconds since the epoch.
    pub created_at: i64,
}

impl Database {
    /// Those of some answers that are kept, by their keys.
    pub async fn read_answers(&self, keys: &[String]) -> Result<HashMap<String, StoredAnswer>> {
        let ids: Vec<Record> = keys.iter().map(|key| answer_id(key)).collect();
        let statement = "SELECT *, record::id(id) AS key FROM $ids";
        let found = self.query(statement, [("ids", Record::Array(ids.into()))]).await?;
        let keyed = |record| Ok((convert::text_field(record, "key")?.to_owned(), read_answer(record)?));
        convert::list(found.first())?.map(keyed).collect()
    }

    /// Keeps answers under keys that have none.
    pub async fn write_answers<'a>(&self, answers: impl Iterator<Item = (&'a String, &'a StoredAnswer)>) -> Result<()> {
        let rows: Vec<Record> = answers.map(|(key, answer)| Record::Object(content(key, answer))).collect();
        let values = [("answers", Record::Array(rows.into()))];
        self.query_again("INSERT IGNORE INTO answer $answers RETURN NONE", values).await.map(drop)
    }

    /// Keeps an answer, or that a request is under way, unless another answer is kept. Returns what is kept now.
    pub async fn keep_answer(&self, key: &str, answer: &StoredAnswer) -> Result<StoredAnswer> {
        let statement = "INSERT INTO answer $content ON DUPLICATE KEY UPDATE
            body = IF fingerprint = $input.fingerprint { body ?? $input.body } ELSE { body },
            location = IF fingerprint = $input.fingerprint { location ?? $input.location } ELSE { location }";
        let kept = self.query_again(statement, [("content", Record::Object(content(key, answer)))]).await?;
        let kept = convert::list(kept.first())?.next().map(read_answer).transpose()?;
        kept.ok_or_else(|| Error::Corrupt("an answer that was just kept is not there".into()))
    }

    /// Forgets the answer under a key if it is older than a time, or, with `unfinished`, if it was never given.
    pub async fn forget_answer(&self, key: &str, before: i64, unfinished: bool) -> Result<()> {
        let values =
            [("id", answer_id(key)), ("before", convert::integer(before)), ("unfinished", Record::Bool(unfinished))];
        let statement = "DELETE $id WHERE created_at <= $before OR ($unfinished AND body = NONE) RETURN NONE";
        self.query_again(statement, values).await.map(drop)
    }

    /// Forgets answers given before a time, the oldest first, as many as one transaction may hold. Returns whether
    /// there may be more.
    pub async fn forget_answers(&self, before: i64) -> Result<bool> {
        let values = [("before", convert::integer(before)), ("limit", convert::integer(FORGOTTEN_AT_ONCE))];
        let statement = "LET $old = (SELECT VALUE id FROM answer WHERE created_at < $before LIMIT $limit);
            DELETE $old RETURN NONE;
            RETURN array::len($old)";
        let forgotten = self.query_again(statement, values).await?;
        let forgotten = forgotten.last().map_or(Ok(0), convert::int)?;
        Ok(forgotten >= FORGOTTEN_AT_ONCE)
    }
}

fn answer_id(key: &str) -> Record {
    convert::record_id("answer", key.to_owned())
}

fn content(key: &str, answer: &StoredAnswer) -> RecordObject {
    convert::fields([
        ("id", answer_id(key)),
        ("fingerprint", convert::text(&answer.fingerprint)),
        ("body", convert::optional_text(answer.body.as_deref())),
        ("location", convert::optional_text(answer.location.as_deref())),
        ("created_at", convert::integer(answer.created_at)),
    ])
}

fn read_answer(record: &Record) -> Result<StoredAnswer> {
    Ok(StoredAnswer {
        fingerprint: convert::text_field(record, "fingerprint")?.to_owned(),
        body: convert::optional_text_field(record, "body").map(|text| text.to_string()),
        location: convert::optional_text_field(record, "location").map(|text| text.to_string()),
        created_at: convert::int_field(record, "created_at")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Store;

    async fn database() -> Database {
        let store = Store::connect("mem://").await.expect("a store");
        store.workspace("w").await.expect("a database")
    }

    fn answer(fingerprint: &str, body: Option<&str>, created_at: i64) -> StoredAnswer {
        let location = body.map(|_| "/there".to_owned());
        StoredAnswer { fingerprint: fingerprint.into(), body: body.map(str::to_owned), location, created_at }
    }

    #[tokio::test]
    async fn old_answers_are_forgotten_however_many_there_are() {
        let database = database().await;
        let kept: Vec<(String, StoredAnswer)> =
            (0..2_500).map(|number| (number.to_string(), answer("f", Some("b"), number))).collect();
        database.write_answers(kept.iter().map(|(key, answer)| (key, answer))).await.expect("written");
        let mut rounds = 0;
        while database.forget_answers(2_400).await.expect("forgotten") {
            rounds += 1;
        }
        assert_eq!(rounds, 2);
        let keys: Vec<String> = kept.iter().map(|(key, _)| key.clone()).collect();
        let left = database.read_answers(&keys).await.expect("read");
        assert_eq!(left.len(), 100);
        assert!(left.values().all(|answer| answer.created_at >= 2_400));
    }

    #[tokio::test]
    async fn they_are_found_by_the_index_on_their_time() {
        let database = database().await;
        let statement = "SELECT VALUE id FROM answer WHERE created_at < $before LIMIT 10 EXPLAIN";
        let plan = database.query(statement, [("before", convert::integer(1))]).await.expect("a plan");
        assert!(format!("{plan:?}").contains("answer_created_at"), "{plan:?}");
    }

    #[tokio::test]
    async fn the_first_answer_is_kept_and_one_under_way_is_completed() {
        let database = database().await;
        let under_way = answer("f", None, 1);
        assert_eq!(database.keep_answer("k", &under_way).await.expect("noted"), under_way);
        let other = database.keep_answer("k", &answer("g", Some("other"), 2)).await.expect("compared");
        assert_eq!(other, under_way);
        let given = database.keep_answer("k", &answer("f", Some("first"), 3)).await.expect("kept");
        assert_eq!(given, answer("f", Some("first"), 1));
        assert_eq!(database.keep_answer("k", &answer("f", Some("second"), 4)).await.expect("compared"), given);
        database.forget_answer("k", 0, true).await.expect("nothing");
        assert_eq!(database.read_answers(&["k".into()]).await.expect("read").len(), 1);
        database.forget_answer("k", 1, false).await.expect("forgotten");
        assert!(database.read_answers(&["k".into()]).await.expect("read").is_empty());
    }
}
