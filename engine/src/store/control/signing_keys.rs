//! Secrets with which the servers of a store create signatures.

use surrealdb::types::Value as Record;

use crate::store::record::{StoredRecord, stored_record};
use crate::store::{Database, Result, convert};

stored_record!(SigningKeyRecord [id] { secret, created_at });

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
        self.read_all(statement, [], SigningKeyRecord::read).await
    }

    /// Writes a signing key, and deletes the keys created before the time `delete_before`.
    pub async fn write_signing_key(&self, key: &SigningKeyRecord, delete_before: i64) -> Result<()> {
        let values = [
            ("id", convert::record_id("signing_key", key.id.clone())),
            ("content", Record::Object(key.fields())),
            ("before", convert::integer(delete_before)),
        ];
        let statements = "BEGIN;
            CREATE $id CONTENT $content RETURN NONE;
            DELETE signing_key WHERE created_at < $before RETURN NONE;
            COMMIT;";
        self.query_again(statements, values).await.map(drop)
    }
}
