//! Sign-in codes. A code can be exchanged once for a key. Only the hashes of the codes are stored.

use surrealdb::types::Value as Record;

use super::keys::{DEPTH, KEY_LIMIT, MAKER, ORIGIN, new_key, only_key, origin_id};
use super::members::{AccessFault, AccessResult, member_id, refused};
use crate::model::access::{KeyRecord, SignInCode};
use crate::store::record::{StoredRecord, stored_record};
use crate::store::{Database, Error, Result, convert, retry};

stored_record!(SignInCode [hash] { workspace_id, user_id, derived_from, name, scopes, key_expires_at, expires_at });

impl Database {
    /// Writes a sign-in code and deletes expired codes. Fails with the reason if no key can be derived from the code's
    /// origin: the key, session or user in `derived_from`.
    pub async fn write_sign_in_code(&self, code: &SignInCode, now: i64) -> Result<AccessResult<()>> {
        let values = [
            ("id", convert::record_id("sign_in_code", code.hash.clone())),
            ("content", Record::Object(code.fields())),
            ("member", member_id(&code.workspace_id, &code.user_id)),
            ("origin", origin_id(Some(&code.derived_from))),
            ("now", convert::integer(now)),
        ];
        let statements = format!(
            "BEGIN; {MAKER} {ORIGIN} {DEPTH} CREATE $id CONTENT $content RETURN NONE;
            DELETE sign_in_code WHERE expires_at <= $now RETURN NONE; COMMIT;"
        );
        refused(self.query_again(&statements, values).await.map(drop))
    }

    /// Returns the code with this hash.
    pub async fn find_sign_in_code(&self, hash: &str) -> Result<Option<SignInCode>> {
        self.read_record("sign_in_code", hash).await
    }

    /// Exchanges a code for a key: deletes the code, writes the key and returns the key. Fails with the reason if the
    /// code no longer exists, if no key can be derived from the code's origin, or if the user has the maximum number of
    /// keys. If several requests exchange the same code at the same time, only one succeeds.
    pub async fn exchange_sign_in_code(&self, hash: &str, key: &KeyRecord) -> Result<AccessResult<KeyRecord>> {
        let code = [("code", convert::record_id("sign_in_code", hash.to_owned()))];
        let values = new_key(key).into_iter().chain(code);
        let statements = format!(
            "BEGIN;
            IF !record::exists($code) {{ THROW 'stale head' }};
            DELETE $code RETURN NONE; {MAKER} {ORIGIN} {DEPTH} {KEY_LIMIT}
            CREATE $id CONTENT $content RETURN NONE;
            UPDATE $id SET ancestors = $lineage RETURN NONE;
            SELECT *, record::id(id) AS key FROM $id;
            COMMIT;"
        );
        let attempt = || async {
            let written = self.query(&statements, values.clone()).await;
            // A conflict may mean that another request has exchanged the code.
            if matches!(written, Err(Error::Conflict)) && self.find_sign_in_code(hash).await?.is_none() {
                return Ok(Err(AccessFault::Gone));
            }
            refused(written.and_then(|found| only_key(&found, &key.id)))
        };
        retry::after_conflicts(attempt).await
    }
}
