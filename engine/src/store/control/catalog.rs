//! Workspaces in the control database, and the first start of a store.

use surrealdb::types::Value as Record;

use super::members::member_id;
use super::workspaces::{NOT_BEING_DELETED, deletion_id};
use crate::model::access::{KeyRecord, Membership, Role, WorkspaceRecord};
use crate::store::record::{StoredRecord, stored_record};
use crate::store::{Database, Result, convert, retry};

stored_record!(WorkspaceRecord as "workspace" [id] { name, slug, owner_id, created_at });

/// The transaction that replaces the key that the first start created. Fails if the key was used, or if another server
/// has already replaced the key.
const REPLACE: &str = "
BEGIN;
IF ((SELECT VALUE key FROM ONLY first_start:done) ?? '') != $old_name { THROW 'stale head' };
IF (SELECT VALUE last_used_at FROM ONLY $old) != NONE { THROW 'stale head' };
UPDATE first_start:done SET key = $key_name RETURN NONE;
DELETE $old RETURN NONE;
CREATE $key CONTENT $content RETURN NONE;
COMMIT;";

impl Database {
    /// Writes a workspace, its owner and the owner's key atomically.
    pub async fn write_workspace(&self, workspace: &WorkspaceRecord, key: &KeyRecord) -> Result<()> {
        self.query_again(&provisioning(""), provisioned(workspace, key)).await.map(drop)
    }

    /// Writes the first workspace of a store, its owner and the owner's key atomically. Returns `false` if the store
    /// already has a first workspace. If several servers start on an empty store at the same time, only one of them
    /// writes a workspace.
    pub async fn write_first_workspace(&self, workspace: &WorkspaceRecord, key: &KeyRecord) -> Result<bool> {
        let statements =
            provisioning("CREATE first_start:done SET key = $key_name, workspace = $workspace_name RETURN NONE;");
        let attempt = || async {
            if self.first_key_id().await?.is_some() {
                return Ok(false);
            }
            self.query(&statements, provisioned(workspace, key)).await.map(|_| true)
        };
        retry::after_conflicts(attempt).await
    }

    /// Replaces the key that the first start created, unless the key was used or `make` returns a key with the same
    /// secret. An unused key is replaced because the owner may never have seen the key. Returns whether the key was
    /// replaced.
    pub async fn replace_unused_first_key(&self, make: impl Fn(&KeyRecord) -> KeyRecord) -> Result<bool> {
        let attempt = || async {
            let Some(unused) = self.unused_first_key().await? else { return Ok(false) };
            let key = make(&unused);
            if key.hash == unused.hash {
                return Ok(false);
            }
            let values = [
                ("old", convert::record_id("key", unused.id.to_string())),
                ("old_name", convert::text(&unused.id)),
                ("key", convert::record_id("key", key.id.to_string())),
                ("key_name", convert::text(&key.id)),
                ("content", Record::Object(key.fields())),
            ];
            self.query(REPLACE, values).await.map(|_| true)
        };
        retry::after_conflicts(attempt).await
    }

    /// Writes a workspace without the user and the membership of its owner, and without a key. If the store has no
    /// first workspace, this workspace becomes the first. Fails with [`Error::Conflict`](crate::store::Error::Conflict)
    /// if a workspace with the same id exists, and while the data of a removed workspace with the same id is being
    /// deleted.
    pub async fn restore_workspace(&self, workspace: &WorkspaceRecord) -> Result<()> {
        let statements = format!(
            "BEGIN; {NOT_BEING_DELETED}
            IF !record::exists(first_start:done) {{
                CREATE first_start:done SET key = '', workspace = $name RETURN NONE
            }};
            CREATE $id CONTENT $about RETURN NONE;
            COMMIT;"
        );
        let values = [
            ("id", convert::record_id("workspace", workspace.id.to_string())),
            ("deletion", deletion_id(&workspace.id)),
            ("name", convert::text(&workspace.id)),
            ("about", Record::Object(workspace.fields())),
        ];
        self.query_again(&statements, values).await.map(drop)
    }

    /// Returns the id of the key that the first start created. The key may have been deleted since then. The id is
    /// empty if a restore wrote the first workspace.
    async fn first_key_id(&self) -> Result<Option<String>> {
        self.first_text("SELECT VALUE key FROM first_start:done").await
    }

    /// Returns the id of the first workspace of the store, if the store has one.
    pub async fn first_workspace_id(&self) -> Result<Option<String>> {
        self.first_text("SELECT VALUE workspace FROM first_start:done").await
    }

    /// Returns the first row of a result, if the row is a string.
    async fn first_text(&self, statement: &str) -> Result<Option<String>> {
        let text = |record: &Record| Ok(convert::text_of(record).map(|text| text.to_string()));
        Ok(self.read_first(statement, [], text).await?.flatten())
    }

    async fn unused_first_key(&self) -> Result<Option<KeyRecord>> {
        let Some(id) = self.first_key_id().await? else { return Ok(None) };
        Ok(self.read_key(&id).await?.filter(|key| key.last_used_at.is_none()))
    }

    /// Returns the workspace with this id.
    pub async fn read_workspace(&self, id: &str) -> Result<Option<WorkspaceRecord>> {
        self.read_record("workspace", id).await
    }

    pub async fn read_workspaces(&self) -> Result<Vec<WorkspaceRecord>> {
        let statement = "SELECT *, record::id(id) AS key FROM workspace ORDER BY created_at, id";
        self.read_all(statement, [], WorkspaceRecord::read).await
    }
}

/// Returns the statements of a transaction that runs `first`, and then writes a workspace with its owner and the
/// owner's key.
fn provisioning(first: &str) -> String {
    format!(
        "BEGIN; {first} CREATE $workspace CONTENT $about RETURN NONE; UPSERT $user RETURN NONE; \
         CREATE $member CONTENT $membership RETURN NONE; CREATE $key CONTENT $content RETURN NONE; COMMIT;"
    )
}

fn provisioned(workspace: &WorkspaceRecord, key: &KeyRecord) -> [(&'static str, Record); 9] {
    let owner = owner_of(workspace);
    [
        ("workspace", convert::record_id("workspace", workspace.id.to_string())),
        ("workspace_name", convert::text(&workspace.id)),
        ("about", Record::Object(workspace.fields())),
        ("user", convert::record_id("user", workspace.owner_id.to_string())),
        ("member", member_id(&owner.workspace_id, &owner.user_id)),
        ("membership", Record::Object(owner.fields())),
        ("key", convert::record_id("key", key.id.to_string())),
        ("key_name", convert::text(&key.id)),
        ("content", Record::Object(key.fields())),
    ]
}

/// Returns the membership of the owner of a new workspace.
pub fn owner_of(workspace: &WorkspaceRecord) -> Membership {
    Membership {
        workspace_id: workspace.id.clone(),
        user_id: workspace.owner_id.clone(),
        role: Role::Owner,
        joined_at: workspace.created_at,
    }
}
