//! Answers kept for requests that carry an idempotency key.

use surrealdb::types::Value as Record;

use super::{Database, Result, convert};

/// An answer as it was first given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredAnswer {
    /// SHA-256 of what was asked, in hexadecimal.
    pub fingerprint: String,
    pub body: String,
    pub location: Option<String>,
    /// Milliseconds since the epoch.
    pub created_at: i64,
}

impl Database {
    pub async fn read_answer(&self, key: &str) -> Result<Option<StoredAnswer>> {
        let found = self.query("SELECT * FROM $id", [("id", convert::record_id("answer", key.to_owned()))]).await?;
        convert::list(found.first())?.next().map(read_answer).transpose()
    }

    /// Keeps an answer, in place of an older one under the same key.
    pub async fn write_answer(&self, key: &str, answer: &StoredAnswer) -> Result<()> {
        let content = convert::fields([
            ("fingerprint", convert::text(&answer.fingerprint)),
            ("body", convert::text(&answer.body)),
            ("location", convert::optional_text(answer.location.as_deref())),
            ("created_at", convert::integer(answer.created_at)),
        ]);
        let values = [("id", convert::record_id("answer", key.to_owned())), ("content", Record::Object(content))];
        self.query_again("UPSERT $id CONTENT $content RETURN NONE", values).await.map(drop)
    }

    /// Forgets answers given before a time.
    pub async fn forget_answers(&self, before: i64) -> Result<()> {
        let values = [("before", convert::integer(before))];
        self.query_again("DELETE answer WHERE created_at < $before RETURN NONE", values).await.map(drop)
    }
}

fn read_answer(record: &Record) -> Result<StoredAnswer> {
    Ok(StoredAnswer {
        fingerprint: convert::text_field(record, "fingerprint")?.to_owned(),
        body: convert::text_field(record, "body")?.to_owned(),
        location: convert::optional_text_field(record, "location").map(|text| text.to_string()),
        created_at: convert::int_field(record, "created_at")?,
    })
}
