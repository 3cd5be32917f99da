//! Secrets with which the servers of a store create signatures.

use surrealdb::types::Value as Record;

use crate::store::{Database, Result, convert};

/// A signing secret and its creation time.
#[derive(Clone)]
pub struct SigningKeyRecord {
    pub id: String,
    /// The secret, in hexadecimal.
    pub secret: String,
    /// The creation time, in milliseconds since the epoch.
    pub created_at: i64,
}

impl Database {
    /// Returns all signing keys, the newest first.
    pub async fn read_signing_keys(&self) -> Result<Vec<SigningKeyRecord>> {
        let statement = "SELECT *, record::id(id) AS key FROM signing_key ORDER BY created_at DESC, id DESC";
        let found = self.query(statement, []).await?;
        convert::list(found.first())?.map(read).collect()
    }

    /// Writes a signing key, and deletes the keys created before the time `delete_before`.
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
