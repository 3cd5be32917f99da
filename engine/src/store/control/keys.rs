//! Keys in the control database, and the derivation of keys from other keys.

use std::collections::HashSet;
use std::sync::Arc;

use surrealdb::types::Value as Record;

use super::departures::REVOKE_KEYS;
use super::members::{AccessResult, member_id, refused};
use super::sign_up::FoundUser;
use crate::model::access::{KeyRecord, Membership, Scope, UserRecord};
use crate::store::record::{StoredRecord, field_value, stored_record};
use crate::store::{Database, Error, Result, convert, retry};

stored_record!(KeyRecord as "key" [id] {
    workspace_id, user_id, name, scopes, display, hash, opens_all, created_at, expires_at, derived_from, agents
} reads { last_used_at, ancestors });
field_value!(Vec<Arc<str>>, |record, field| read_names(record, field), |ids| convert::texts(ids));
field_value!(
    Arc<[Arc<str>]>,
    |record, field| match read_names(record, field)?.as_slice() {
        [] => Err(Error::corrupt(format!("the field '{field}' is empty"))),
        names => Ok(names.into()),
    },
    |names| convert::texts(&**names)
);
field_value!(
    Vec<Scope>,
    |record, field| Ok(read_names(record, field)?.iter().filter_map(|name| Scope::parse(name)).collect()),
    |scopes| convert::texts(scopes.iter().map(|scope| scope.name()))
);

/// The statements that check whether the user of a new key or sign-in code, or the user who creates or changes an
/// invitation, is still a member. The statements write the membership, so that a concurrent deletion of the membership
/// conflicts.
pub(super) const MAKER: &str = "
IF !record::exists($member) { THROW 'origin gone' };
UPDATE $member SET keys_made = (keys_made ?? 0) + 1 RETURN NONE;";

/// The statements that check the origin of a new key, code or invitation. If the key `$origin` is given, the statements
/// fail unless this key and all its ancestors exist. The statements also write this key, so that a concurrent deletion
/// of the key conflicts. The statements set `$lineage` to the ancestors of a key that is derived from `$origin`.
pub(super) const ORIGIN: &str = "
LET $above = IF $origin != NONE { (SELECT VALUE ancestors FROM ONLY $origin) ?? [] } ELSE { [] };
LET $lineage = IF $origin != NONE { array::append($above, record::id($origin)) } ELSE { [] };
IF $origin != NONE {
    IF !record::exists($origin) { THROW 'origin gone' };
    UPDATE $origin SET keys_made = (keys_made ?? 0) + 1 RETURN NONE
};
FOR $one IN $above { IF !record::exists(type::record('key', $one)) { THROW 'origin gone' } };";

/// The maximum number of keys from which a key is derived, directly or through other keys.
pub const MAX_ANCESTORS: usize = 16;

/// The statement that limits the chain of a key's ancestors to [`MAX_ANCESTORS`] keys.
pub(super) const DEPTH: &str = "IF array::len($lineage) > 16 { THROW 'origin too deep' };";

/// The statements that limit the keys of `$user` to 1,000, in all workspaces together. If the limit is reached, the
/// statements first delete the user's expired keys. The statements must follow [`MAKER`], so that concurrent creations
/// of keys for one member conflict: [`MAKER`] writes the membership.
pub(super) const KEY_LIMIT: &str = "
IF ((SELECT VALUE count() FROM key WHERE user_id = $user GROUP ALL)[0] ?? 0) >= 1000 {
    DELETE key WHERE user_id = $user AND expires_at != NONE AND expires_at <= $now RETURN NONE;
    IF ((SELECT VALUE count() FROM key WHERE user_id = $user GROUP ALL)[0] ?? 0) >= 1000 { THROW 'too many keys' }
};";

/// The statement that gives the keys in `$moved` their new origins. The statement writes each key, so that a concurrent
/// transaction that derives a key from one of these keys conflicts.
const MOVE: &str = "
FOR $one IN $moved {
    IF !record::exists($one.id) { THROW 'stale head' };
    UPDATE $one.id SET derived_from = $one.origin, ancestors = $one.ancestors RETURN NONE
};";

/// The statement that fails if the keys derived from the key `$above` are no longer the keys in `$below`.
const BELOW: &str = "
IF array::sort((SELECT VALUE record::id(id) FROM key WHERE ancestors CONTAINS $above)) != $below { THROW 'stale head' };";

impl Database {
    /// Writes a key, unless a key with the same id exists. Returns the stored key, or the reason why the key cannot be
    /// created.
    pub async fn create_key(&self, key: &KeyRecord) -> Result<AccessResult<KeyRecord>> {
        let workspace = [("workspace", convert::text(&key.workspace_id))];
        let values = new_key(key).into_iter().chain(workspace);
        let found = "SELECT *, record::id(id) AS key FROM $id WHERE workspace_id = $workspace";
        let statements = format!(
            "BEGIN; {MAKER} {ORIGIN} {DEPTH} {KEY_LIMIT}
            CREATE $id CONTENT $content RETURN NONE;
            UPDATE $id SET ancestors = $lineage RETURN NONE;
            {found};
            COMMIT;"
        );
        let attempt = || async {
            // The key is looked up before each attempt. After a conflict, another request may have written a key with
            // this id.
            let present = self.query(found, values.clone()).await?;
            if convert::has_rows(&present)? {
                return only_key(&present, &key.id).map(Ok);
            }
            refused(self.query(&statements, values.clone()).await.and_then(|found| only_key(&found, &key.id)))
        };
        retry::after_conflicts(attempt).await
    }

    /// Writes a key from another store without changing the key. If a key with the same id or the same secret exists,
    /// writes nothing. Returns whether the key was written.
    pub async fn restore_key(&self, key: &KeyRecord) -> Result<bool> {
        let statements = "BEGIN;
            LET $is_new = !record::exists($id) AND array::len((SELECT VALUE id FROM key WHERE hash = $hash)) = 0;
            IF $is_new {
                CREATE $id CONTENT $content RETURN NONE;
                UPDATE $id SET ancestors = $ancestors, last_used_at = $used RETURN NONE
            };
            RETURN $is_new;
            COMMIT;";
        let values = [
            ("id", convert::record_id("key", key.id.to_string())),
            ("hash", convert::text(&key.hash)),
            ("content", Record::Object(key.fields())),
            ("ancestors", convert::texts(&key.ancestors)),
            ("used", key.last_used_at.map_or(Record::None, convert::integer)),
        ];
        let answers = self.query_again(statements, values).await?;
        Ok(answers.contains(&Record::Bool(true)))
    }

    /// Returns the key whose secret has the given hash, together with its user and the user's memberships. Returns
    /// `None` if there is no such key, or if one of the key's ancestors no longer exists.
    pub async fn find_key(&self, hash: &str) -> Result<Option<(KeyRecord, FoundUser)>> {
        let statements = "
            LET $found = (SELECT *, record::id(id) AS key FROM key WHERE hash = $hash);
            RETURN $found;
            SELECT *, record::id(id) AS key FROM $found.map(|$one| type::record('user', $one.user_id));
            SELECT * FROM member WHERE user_id = ($found[0].user_id ?? '') ORDER BY joined_at, workspace_id;
            SELECT VALUE id FROM ($found[0].ancestors ?? []).map(|$one| type::record('key', $one));";
        let answers = self.query(statements, [("hash", convert::text(hash))]).await?;
        let [_, key, user, members, ancestors] = answers.as_slice() else { return Ok(None) };
        let Some(key) = convert::list(Some(key))?.next().map(KeyRecord::read).transpose()? else { return Ok(None) };
        if convert::list(Some(ancestors))?.count() < key.ancestors.len() {
            return Ok(None);
        }
        let user = convert::list(Some(user))?.next().map(UserRecord::read).transpose()?;
        let user = user.ok_or_else(|| Error::corrupt(format!("the user of the key '{}' is missing", key.id)))?;
        let memberships = convert::list(Some(members))?.map(Membership::read).collect::<Result<_>>()?;
        Ok(Some((key, FoundUser { user, memberships })))
    }

    /// Returns the keys of a workspace, the newest first.
    pub async fn read_keys(&self, workspace_id: &str) -> Result<Vec<KeyRecord>> {
        let statement = "SELECT *, record::id(id) AS key FROM key WHERE workspace_id = $workspace ORDER BY created_at DESC, id DESC";
        self.read_all(statement, [("workspace", convert::text(workspace_id))], KeyRecord::read).await
    }

    /// Returns the ids of the given keys that still exist and whose ancestors all still exist.
    pub async fn living_keys(&self, ids: &[Arc<str>]) -> Result<HashSet<Arc<str>>> {
        let records = convert::array(ids.iter().map(|id| convert::record_id("key", id.to_string())));
        let statements = "LET $found = (SELECT *, record::id(id) AS key FROM $ids);
            RETURN $found;
            SELECT VALUE record::id(id) FROM $found.map(|$one| $one.ancestors ?? []).flatten()
                .map(|$one| type::record('key', $one));";
        let answers = self.query(statements, [("ids", records)]).await?;
        let [_, keys, above] = answers.as_slice() else { return Ok(HashSet::new()) };
        let above: Vec<&Record> = convert::list(Some(above))?.collect();
        let keys: Vec<KeyRecord> = convert::list(Some(keys))?.map(KeyRecord::read).collect::<Result<_>>()?;
        let is_living = |key: &KeyRecord| key.ancestors.iter().all(|one| above.contains(&&convert::text(one)));
        Ok(keys.into_iter().filter(is_living).map(|key| key.id).collect())
    }

    /// Returns the key with this id, in any workspace.
    pub async fn read_key(&self, id: &str) -> Result<Option<KeyRecord>> {
        self.read_record("key", id).await
    }

    /// Returns all keys that are derived from a key, directly or through other keys.
    pub async fn derived_keys(&self, id: &str) -> Result<Vec<KeyRecord>> {
        let statement = "SELECT *, record::id(id) AS key FROM key WHERE ancestors CONTAINS $name";
        self.read_all(statement, [("name", convert::text(id))], KeyRecord::read).await
    }

    /// Deletes a key, and the sign-in codes and invitations created with the key. Records the key as revoked. Keys
    /// derived from the deleted key stop working as well. Writes the keys in `moved` with their new origins, so that
    /// these keys keep working. Fails with [`Error::Conflict`] if the key no longer exists, or if the keys derived from
    /// the key are no longer the keys in `below`.
    pub async fn delete_key(&self, id: &str, below: &[KeyRecord], moved: &[KeyRecord]) -> Result<()> {
        let values = [
            ("id", convert::record_id("key", id.to_owned())),
            ("above", convert::text(id)),
            ("below", sorted_ids(below)),
            ("moved", moved_values(moved)),
        ];
        let statements = format!(
            "BEGIN;
            IF !record::exists($id) {{ THROW 'stale head' }}; {BELOW} {MOVE}
            LET $workspace = (SELECT VALUE workspace_id FROM ONLY $id);
            LET $keys = [$above]; {REVOKE_KEYS}
            DELETE $id RETURN NONE;
            DELETE sign_in_code WHERE derived_from = $above RETURN NONE;
            DELETE invitation WHERE derived_from = $above RETURN NONE;
            COMMIT;"
        );
        self.query(&statements, values).await.map(drop)
    }

    /// Creates the key `new` as the successor of the key `old`, and writes the new expiry of `old`. Writes the keys in
    /// `moved` with their new origins. The sign-in codes and invitations that depended on `old` now depend on `new`.
    ///
    /// Fails with the reason if the user of the key has left the workspace or has the maximum number of keys. Fails
    /// with [`Error::Conflict`] if `old` or an ancestor of `new` no longer exists, if the stored expiry of `old` is no
    /// longer `expired_at`, or if the keys derived from `old` are no longer the keys in `below`.
    pub async fn replace_key(
        &self,
        old: &KeyRecord,
        expired_at: Option<i64>,
        new: &KeyRecord,
        below: &[KeyRecord],
        moved: &[KeyRecord],
    ) -> Result<AccessResult<()>> {
        let values = [
            ("old", convert::record_id("key", old.id.to_string())),
            ("above", convert::text(&old.id)),
            ("before", expired_at.map_or(Record::None, convert::integer)),
            ("below", sorted_ids(below)),
            ("until", old.expires_at.map_or(Record::None, convert::integer)),
            ("name", convert::text(&new.id)),
            ("ancestors", convert::texts(&new.ancestors)),
            ("moved", moved_values(moved)),
        ];
        let values = values.into_iter().chain(new_key(new));
        let statements = format!(
            "BEGIN; {MAKER} {KEY_LIMIT}
            IF !record::exists($old) OR (SELECT VALUE expires_at FROM ONLY $old) != $before {{ THROW 'stale head' }};
            {BELOW}
            FOR $one IN $ancestors {{ IF !record::exists(type::record('key', $one)) {{ THROW 'stale head' }} }};
            UPDATE $old SET expires_at = $until RETURN NONE;
            CREATE $id CONTENT $content RETURN NONE;
            UPDATE $id SET ancestors = $ancestors RETURN NONE; {MOVE}
            UPDATE sign_in_code SET derived_from = $name WHERE derived_from = $above RETURN NONE;
            UPDATE invitation SET derived_from = $name WHERE derived_from = $above RETURN NONE;
            COMMIT;"
        );
        refused(self.query(&statements, values).await.map(drop))
    }

    /// Deletes keys that no longer work, and records these keys as revoked. Also deletes the sign-in codes and
    /// invitations that were created with the keys.
    pub async fn delete_dead_keys(&self, ids: &[Arc<str>]) -> Result<()> {
        let records = convert::array(ids.iter().map(|id| convert::record_id("key", id.to_string())));
        let values = [("records", records), ("names", convert::texts(ids))];
        let statements = "BEGIN;
            FOR $one IN (SELECT id, workspace_id FROM $records) {
                UPSERT type::record('revoked_key', record::id($one.id)) SET workspace_id = $one.workspace_id RETURN NONE
            };
            DELETE $records RETURN NONE;
            DELETE sign_in_code WHERE derived_from IN $names RETURN NONE;
            DELETE invitation WHERE derived_from IN $names RETURN NONE;
            COMMIT;";
        self.query_again(statements, values).await.map(drop)
    }

    pub async fn record_key_use(&self, key_id: &str, at: i64) -> Result<()> {
        let values = [("id", convert::record_id("key", key_id.to_owned())), ("at", convert::integer(at))];
        self.query_again("UPDATE $id SET last_used_at = $at RETURN NONE", values).await.map(drop)
    }
}

/// Returns the values of a new key for the statements that create the key, such as [`MAKER`] and [`KEY_LIMIT`].
pub(super) fn new_key(key: &KeyRecord) -> [(&'static str, Record); 6] {
    [
        ("id", convert::record_id("key", key.id.to_string())),
        ("content", Record::Object(key.fields())),
        ("member", member_id(&key.workspace_id, &key.user_id)),
        ("origin", origin_id(key.derived_from.as_deref())),
        ("user", convert::text(&key.user_id)),
        ("now", convert::integer(key.created_at)),
    ]
}

/// Returns the first key among the results of several statements. If there is no key, the error names `id`.
pub(super) fn only_key(found: &[Record], id: &str) -> Result<KeyRecord> {
    let key = convert::find_with(found, "hash");
    let missing = || Err(Error::corrupt(format!("the record of the key '{id}' is missing or has no field 'hash'")));
    key.map_or_else(missing, KeyRecord::read)
}

/// Returns the value of `$moved` in [`MOVE`].
fn moved_values(moved: &[KeyRecord]) -> Record {
    convert::array(moved.iter().map(|key| {
        convert::object([
            ("id", convert::record_id("key", key.id.to_string())),
            ("origin", convert::optional_text(key.derived_from.as_deref())),
            ("ancestors", convert::texts(&key.ancestors)),
        ])
    }))
}

/// Returns the value of `$below` in [`BELOW`].
fn sorted_ids(keys: &[KeyRecord]) -> Record {
    let mut ids: Vec<Arc<str>> = keys.iter().map(|key| key.id.clone()).collect();
    ids.sort_unstable();
    convert::texts(&ids)
}

/// Returns the record id of the key in `derived_from`, or `NONE` if the origin is not a key.
pub(super) fn origin_id(derived_from: Option<&str>) -> Record {
    let key = derived_from.filter(|origin| !origin.contains(':'));
    key.map_or(Record::None, |key| convert::record_id("key", key.to_owned()))
}

/// Returns the strings in a list field. Returns an empty list if the record lacks the field.
fn read_names(record: &Record, field: &str) -> Result<Vec<Arc<str>>> {
    Ok(convert::list(convert::field(record, field).ok())?.filter_map(convert::text_of).collect())
}
