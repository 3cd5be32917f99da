//! Secrets with which servers of this store sign what they hand out.

use surrealdb::types::Value as Record;

use super::{Database, Result, convert};

/// A secret, and when it was made.
#[derive(Clone)]
pub struct SigningKeyRecord {
    pub id: String,
    /// In hexadecimal.
    pub secret: String,
    /// Milliseconds since the epoch.
    pub created_at: i64,
}

impl Database {
    /// All signing keys, the newest first.
    pub async fn read_signing_keys(&self) -> Result<Vec<SigningKeyRecord>> {
        let statement = "SELECT *, record::id(id) AS key FROM signing_key ORDER BY created_at DESC, id DESC";
        let found = self.query(statement, []).await?;
        convert::list(found.first())?.map(read).collect()
    }

    /// Writes a key, and deletes those that were made before a time.
    pub async fn write_signing_key(&self, key: &SigningKeyRecord, delete_before: i64) -> Result<()> {
        let content =
            convert::fields([("secret", convert::text(&key.secret)), ("created_at", convert::integer(key.created_at))]);
        let values = [
            ("id", convert::record_id("signing_key", key.id.clone())),
            ("content", Record::Object(content)),
            ("before", convert::integer(delete_before)),
        ];
        let statements = "BEGIN;
            CREATE $id CONTENT $content RETURN NONE;
            DELETE signing_key WHERE created_at < $before RETURN NONE;
            COMMIT;";
        self.query_again(statements, values).await.map(drop)
    }
}

fn read(record: &Record) -> Result<SigningKeyRecord> {
    Ok(SigningKeyRecord {
        id: convert::text_field(record, "key")?.to_owned(),
        secret: convert::text_field(record, "secret")?.to_owned(),
        created_at: convert::int_field(record, "created_at")?,
    })
}
