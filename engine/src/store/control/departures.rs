//! The keys that were revoked and the members who were removed. An earlier export may still contain these keys and
//! members, and an import must not restore them.

use std::sync::Arc;

use surrealdb::types::Value as Record;

use crate::model::access::RemovedMember;
use crate::store::record::{StoredRecord, stored_record};
use crate::store::{Database, Result, convert};

stored_record!(RemovedMember [] { user_id, removed_at });

/// The statement that records the keys in `$keys` as revoked. All these keys belong to the workspace `$workspace`.
pub(super) const REVOKE_KEYS: &str = "FOR $one IN $keys {
    UPSERT type::record('revoked_key', $one) SET workspace_id = $workspace RETURN NONE
};";

/// The statement that records the removal of a member at `$now`. If a later time of removal is already recorded, the
/// statement keeps the later time.
pub(super) const REMOVE_MEMBER: &str = "UPSERT $removed SET workspace_id = $workspace, user_id = $user,
    removed_at = math::max([removed_at ?? $now, $now]) RETURN NONE;";

impl Database {
    /// Returns the removed members of a workspace, in the order of their ids.
    pub async fn read_removed_members(&self, workspace_id: &str) -> Result<Vec<RemovedMember>> {
        let statement =
            "SELECT user_id, removed_at FROM removed_member WHERE workspace_id = $workspace ORDER BY user_id";
        self.read_all(statement, [("workspace", convert::text(workspace_id))], RemovedMember::read).await
    }

    /// Returns the time at which a user was last removed from a workspace, in milliseconds since the epoch.
    pub async fn removed_at(&self, workspace_id: &str, user_id: &str) -> Result<Option<i64>> {
        let values = [("id", removed_id(workspace_id, user_id))];
        self.read_first("SELECT removed_at FROM $id", values, |record| convert::int_field(record, "removed_at")).await
    }

    /// Returns the ids of the revoked keys of a workspace, in ascending order.
    pub async fn read_revoked_keys(&self, workspace_id: &str) -> Result<Vec<Arc<str>>> {
        let statement = "SELECT record::id(id) AS key FROM revoked_key WHERE workspace_id = $workspace ORDER BY key";
        let key = |record: &Record| Ok(convert::text_field(record, "key")?.into());
        self.read_all(statement, [("workspace", convert::text(workspace_id))], key).await
    }

    /// Returns whether at least one of the keys was revoked.
    pub async fn has_revoked(&self, keys: impl Iterator<Item = &Arc<str>>) -> Result<bool> {
        let ids = convert::array(keys.map(|key| convert::record_id("revoked_key", key.to_string())));
        convert::has_rows(&self.query("SELECT workspace_id FROM $ids", [("ids", ids)]).await?)
    }

    /// Records the revocation of a key that the store does not contain.
    pub async fn write_revoked_key(&self, workspace_id: &str, key_id: &str) -> Result<()> {
        let values = [("workspace", convert::text(workspace_id)), ("keys", convert::texts([key_id]))];
        self.query_again(REVOKE_KEYS, values).await.map(drop)
    }

    /// Records that a user was removed from a workspace in another store. Does not change a membership in this store.
    pub async fn write_removed_member(&self, workspace_id: &str, removed: &RemovedMember) -> Result<()> {
        let values = [
            ("removed", removed_id(workspace_id, &removed.user_id)),
            ("workspace", convert::text(workspace_id)),
            ("user", convert::text(&removed.user_id)),
            ("now", convert::integer(removed.removed_at)),
        ];
        self.query_again(REMOVE_MEMBER, values).await.map(drop)
    }

    /// Makes a key expire at the time `expires_at`, unless the key expires earlier. Returns whether the key was
    /// changed.
    pub async fn shorten_key(&self, key_id: &str, expires_at: i64) -> Result<bool> {
        let values = [("id", convert::record_id("key", key_id.to_owned())), ("until", convert::integer(expires_at))];
        let statement =
            "UPDATE $id SET expires_at = $until WHERE expires_at = NONE OR expires_at > $until RETURN expires_at";
        convert::has_rows(&self.query_again(statement, values).await?)
    }
}

pub(super) fn removed_id(workspace_id: &str, user_id: &str) -> Record {
    convert::record_id("removed_member", convert::key([convert::text(user_id), convert::text(workspace_id)]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn revoked_keys_and_the_latest_removal_of_a_member_are_recorded() {
        let control = Database::control_in_memory().await;
        for removed_at in [3, 7, 5] {
            let removed = RemovedMember { user_id: "u".into(), removed_at };
            control.write_removed_member("w", &removed).await.expect("written");
        }
        assert_eq!(control.removed_at("w", "u").await.expect("read"), Some(7));
        assert_eq!(control.removed_at("v", "u").await.expect("read"), None);
        let all = control.read_removed_members("w").await.expect("read");
        assert_eq!(all, [RemovedMember { user_id: "u".into(), removed_at: 7 }]);
        control.write_revoked_key("w", "b").await.expect("written");
        control.write_revoked_key("w", "a").await.expect("written");
        assert_eq!(control.read_revoked_keys("w").await.expect("read"), [Arc::from("a"), Arc::from("b")]);
        assert!(control.has_revoked([Arc::from("x"), Arc::from("a")].iter()).await.expect("read"));
        assert!(!control.has_revoked([Arc::from("x")].iter()).await.expect("read"));
    }
}
