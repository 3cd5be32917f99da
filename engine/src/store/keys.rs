//! Keys in the control database, with what they were derived from.

use std::sync::Arc;

use surrealdb::types::{Object as RecordObject, Value as Record};

use super::members::{member_id, read_member};
use super::users::read_user;
use super::{Database, Error, Result, convert};
use crate::model::access::{KeyRecord, Membership, Scope, UserRecord};

/// A key, whose it is, and where that user may go.
pub struct FoundKey {
    pub key: KeyRecord,
    pub user: UserRecord,
    pub memberships: Vec<Membership>,
}

/// What must still be there when a key is made, written to, so that of this and a deletion at once one fails.
pub(super) const ORIGIN: &str = "
IF !record::exists($member) { THROW 'origin gone' };
UPDATE $member SET keys_made = (keys_made ?? 0) + 1 RETURN NONE;
IF $origin != NONE {
    IF !record::exists($origin) { THROW 'origin gone' };
    UPDATE $origin SET keys_made = (keys_made ?? 0) + 1 RETURN NONE
};";

impl Database {
    /// Writes a key, unless there is one of its id. Returns the key that is there now; `None` where its user has left
    /// the workspace, or the key that it is derived from was revoked.
    pub async fn create_key(&self, key: &KeyRecord) -> Result<Option<KeyRecord>> {
        let values = [
            ("id", convert::record_id("key", key.id.to_string())),
            ("content", Record::Object(key_content(key))),
            ("workspace", convert::text(&key.workspace_id)),
            ("member", member_id(&key.workspace_id, &key.user_id)),
            ("origin", origin_id(key.derived_from.as_deref())),
        ];
        let statements = format!(
            "BEGIN;
            IF !record::exists($id) {{ {ORIGIN} CREATE $id CONTENT $content RETURN NONE }};
            SELECT *, record::id(id) AS key FROM $id WHERE workspace_id = $workspace;
            COMMIT;"
        );
        let found = match self.query_again(&statements, values).await {
            Err(Error::Database(error)) if is_origin_gone(&error) => return Ok(None),
            found => found?,
        };
        let kept = found.iter().find_map(|result| convert::list(Some(result)).ok()?.next().map(read_key));
        kept.unwrap_or_else(|| Err(Error::Corrupt("a key that was just written is not there".into()))).map(Some)
    }

    /// The key whose secret has this hash, with its user.
    pub async fn find_key(&self, hash: &str) -> Result<Option<FoundKey>> {
        let statements = "
            LET $found = (SELECT *, record::id(id) AS key FROM key WHERE hash = $hash);
            RETURN $found;
            SELECT *, record::id(id) AS key FROM type::record('user', $found[0].user_id ?? '');
            SELECT * FROM member WHERE user_id = ($found[0].user_id ?? '');";
        let answers = self.query(statements, [("hash", convert::text(hash))]).await?;
        let [_, key, user, members] = answers.as_slice() else { return Ok(None) };
        let Some(key) = convert::list(Some(key))?.next().map(read_key).transpose()? else { return Ok(None) };
        let user = convert::list(Some(user))?.next().map(read_user).transpose()?;
        let user = user.ok_or_else(|| Error::Corrupt("the user of a key is not there".into()))?;
        let memberships = convert::list(Some(members))?.map(read_member).collect::<Result<_>>()?;
        Ok(Some(FoundKey { key, user, memberships }))
    }

    /// The keys of a workspace, newest first.
    pub async fn read_keys(&self, workspace_id: &str) -> Result<Vec<KeyRecord>> {
        let statement = "SELECT *, record::id(id) AS key FROM key WHERE workspace_id = $workspace ORDER BY created_at DESC, id DESC";
        let found = self.query(statement, [("workspace", convert::text(workspace_id))]).await?;
        convert::list(found.first())?.map(read_key).collect()
    }

    /// The key of this id, in whatever workspace.
    pub async fn read_key(&self, id: &str) -> Result<Option<KeyRecord>> {
        let values = [("id", convert::record_id("key", id.to_owned()))];
        let found = self.query("SELECT *, record::id(id) AS key FROM $id", values).await?;
        convert::list(found.first())?.next().map(read_key).transpose()
    }

    /// All keys that are derived from some, over however many steps.
    pub async fn derived_keys(&self, ids: &[Arc<str>]) -> Result<Vec<KeyRecord>> {
        let mut found: Vec<KeyRecord> = Vec::new();
        let mut asked = ids.to_vec();
        while !asked.is_empty() {
            let names = Record::Array(asked.iter().map(|id| convert::text(id)).collect::<Vec<_>>().into());
            let statement = "SELECT *, record::id(id) AS key FROM key WHERE derived_from IN $names";
            let answers = self.query(statement, [("names", names)]).await?;
            let next: Vec<KeyRecord> = convert::list(answers.first())?.map(read_key).collect::<Result<_>>()?;
            asked = next.iter().map(|key| key.id.clone()).collect();
            found.extend(next);
        }
        Ok(found)
    }

    /// Deletes keys and the codes made with them: all, or with a conflict none, where one of them is gone or another
    /// key was derived from them meanwhile. One of those derived may stay: it gets another origin.
    pub async fn delete_keys(&self, ids: &[Arc<str>], stays: Option<(&str, Option<&str>)>) -> Result<()> {
        let names: Vec<Record> = ids.iter().map(|id| convert::text(id)).collect();
        let records: Vec<Record> = ids.iter().map(|id| convert::record_id("key", id.to_string())).collect();
        let stays_id = stays.map_or(Record::None, |(id, _)| convert::record_id("key", id.to_owned()));
        let origin = stays.map_or(Record::None, |(_, origin)| convert::optional_text(origin));
        let values = [
            ("names", Record::Array(names.into())),
            ("records", Record::Array(records.into())),
            ("stays", stays_id),
            ("origin", origin),
        ];
        let statements = "BEGIN;
            FOR $record IN $records { IF !record::exists($record) { THROW 'stale head' } };
            IF $stays != NONE { UPDATE $stays SET derived_from = $origin RETURN NONE };
            LET $later = SELECT VALUE id FROM key WHERE derived_from IN $names AND id NOT IN $records;
            IF array::len($later) > 0 { THROW 'stale head' };
            DELETE $records RETURN NONE;
            DELETE sign_in_code WHERE derived_from IN $names RETURN NONE;
            COMMIT;";
        self.query(statements, values).await.map(drop)
    }

    pub async fn touch_key(&self, key_id: &str, at: i64) -> Result<()> {
        let values = [("id", convert::record_id("key", key_id.to_owned())), ("at", convert::integer(at))];
        self.query_again("UPDATE $id SET last_used_at = $at RETURN NONE", values).await.map(drop)
    }
}

/// Says that what a key is derived from is not there any more.
pub(super) fn is_origin_gone(error: &surrealdb::Error) -> bool {
    error.to_string().contains("origin gone")
}

/// The key that another is derived from; none where it was made in a session.
pub(super) fn origin_id(derived_from: Option<&str>) -> Record {
    let key = derived_from.filter(|origin| !origin.contains(':'));
    key.map_or(Record::None, |key| convert::record_id("key", key.to_owned()))
}

pub(super) fn scope_names(scopes: &[Scope]) -> Record {
    Record::Array(scopes.iter().map(|scope| convert::text(scope.name())).collect::<Vec<_>>().into())
}

pub(super) fn read_scopes(record: &Record) -> Result<Vec<Scope>> {
    let Record::Object(object) = record else { return Ok(Vec::new()) };
    let scope = |scope: &Record| match scope {
        Record::String(name) => Scope::parse(name),
        _ => None,
    };
    Ok(convert::list(object.get("scopes"))?.filter_map(scope).collect())
}

pub(super) fn key_content(key: &KeyRecord) -> RecordObject {
    convert::fields([
        ("workspace_id", convert::text(&key.workspace_id)),
        ("user_id", convert::text(&key.user_id)),
        ("name", convert::text(&key.name)),
        ("scopes", scope_names(&key.scopes)),
        ("display", convert::text(&key.display)),
        ("hash", convert::text(&key.hash)),
        ("created_at", convert::integer(key.created_at)),
        ("expires_at", key.expires_at.map_or(Record::None, convert::integer)),
        ("derived_from", convert::optional_text(key.derived_from.as_deref())),
    ])
}

pub(super) fn read_key(record: &Record) -> Result<KeyRecord> {
    Ok(KeyRecord {
        id: convert::text_field(record, "key")?.into(),
        workspace_id: Arc::from(convert::text_field(record, "workspace_id")?),
        user_id: Arc::from(convert::text_field(record, "user_id")?),
        name: convert::text_field(record, "name")?.to_owned(),
        scopes: read_scopes(record)?,
        display: convert::text_field(record, "display")?.to_owned(),
        hash: convert::text_field(record, "hash")?.to_owned(),
        created_at: convert::int_field(record, "created_at")?,
        expires_at: convert::optional_int_field(record, "expires_at"),
        last_used_at: convert::optional_int_field(record, "last_used_at"),
        derived_from: convert::optional_text_field(record, "derived_from"),
    })
}
