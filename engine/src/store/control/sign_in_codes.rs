//! Sign-in codes. A code can be exchanged once for a key. Only the hashes of the codes are stored.

use surrealdb::types::Value as Record;

use super::keys::{
    DEPTH, MAKER, ORIGIN, OriginFault, ROOM, key_content, only_key, origin_id, read_scopes, refused_by_origin,
    scope_names,
};
use super::members::member_id;
use crate::model::access::{KeyRecord, SignInCode};
use crate::store::{Database, Error, Result, convert, retry};

impl Database {
    /// Writes a code and deletes expired codes. Fails with the reason if no key can be derived from the code's origin.
    pub async fn write_sign_in_code(
        &self,
        code: &SignInCode,
        now: i64,
    ) -> Result<std::result::Result<(), OriginFault>> {
        let content = convert::fields([
            ("workspace_id", convert::text(&code.workspace_id)),
            ("user_id", convert::text(&code.user_id)),
            ("derived_from", convert::text(&code.derived_from)),
            ("name", convert::text(&code.name)),
            ("scopes", scope_names(&code.scopes)),
            ("key_expires_at", code.key_expires_at.map_or(Record::None, convert::integer)),
            ("expires_at", convert::integer(code.expires_at)),
        ]);
        let values = [
            ("id", convert::record_id("sign_in_code", code.hash.clone())),
            ("content", Record::Object(content)),
            ("member", member_id(&code.workspace_id, &code.user_id)),
            ("origin", origin_id(Some(&code.derived_from))),
            ("now", convert::integer(now)),
        ];
        let statements = format!(
            "BEGIN; {MAKER} {ORIGIN} {DEPTH} CREATE $id CONTENT $content RETURN NONE;
            DELETE sign_in_code WHERE expires_at <= $now RETURN NONE; COMMIT;"
        );
        refused_by_origin(self.query_again(&statements, values).await.map(drop))
    }

    /// Returns the code with this hash.
    pub async fn find_sign_in_code(&self, hash: &str) -> Result<Option<SignInCode>> {
        let values = [("id", convert::record_id("sign_in_code", hash.to_owned()))];
        let found = self.query("SELECT *, record::id(id) AS key FROM $id", values).await?;
        convert::list(found.first())?.next().map(read).transpose()
    }

    /// Exchanges a code for a key: deletes the code, writes the key and returns the key. Fails with the reason if the
    /// code no longer exists, if no key can be derived from the code's origin, or if the user has the maximum number of
    /// keys. If several requests exchange the same code at the same time, only one succeeds.
    pub async fn exchange_sign_in_code(
        &self,
        hash: &str,
        key: &KeyRecord,
    ) -> Result<std::result::Result<KeyRecord, OriginFault>> {
        let values = [
            ("code", convert::record_id("sign_in_code", hash.to_owned())),
            ("id", convert::record_id("key", key.id.to_string())),
            ("content", Record::Object(key_content(key))),
            ("member", member_id(&key.workspace_id, &key.user_id)),
            ("origin", origin_id(key.derived_from.as_deref())),
            ("user", convert::text(&key.user_id)),
            ("now", convert::integer(key.created_at)),
        ];
        let statements = format!(
            "BEGIN;
            IF !record::exists($code) {{ THROW 'stale head' }};
            DELETE $code RETURN NONE; {MAKER} {ORIGIN} {DEPTH} {ROOM}
            CREATE $id CONTENT $content RETURN NONE;
            UPDATE $id SET ancestors = $lineage RETURN NONE;
            SELECT *, record::id(id) AS key FROM $id;
            COMMIT;"
        );
        let attempt = || async {
            let written = self.query(&statements, values.clone()).await;
            // Another request may have exchanged the code in the meantime.
            if matches!(written, Err(Error::Conflict)) && self.find_sign_in_code(hash).await?.is_none() {
                return Ok(Err(OriginFault::Gone));
            }
            refused_by_origin(written.and_then(|found| only_key(&found)))
        };
        retry::after_conflicts(attempt).await
    }
}

fn read(record: &Record) -> Result<SignInCode> {
    Ok(SignInCode {
        hash: convert::text_field(record, "key")?.to_owned(),
        workspace_id: convert::text_field(record, "workspace_id")?.into(),
        user_id: convert::text_field(record, "user_id")?.into(),
        derived_from: convert::text_field(record, "derived_from")?.into(),
        name: convert::text_field(record, "name")?.to_owned(),
        scopes: read_scopes(record)?,
        key_expires_at: convert::optional_int_field(record, "key_expires_at"),
        expires_at: convert::int_field(record, "expires_at")?,
    })
}
