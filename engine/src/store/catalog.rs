//! The control database: workspaces and the keys that open them.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use surrealdb::types::{Object as RecordObject, Value as Record};

use super::{Database, Error, Result, convert, retry};
use crate::model::access::{KeyRecord, Scope, WorkspaceRecord};

/// Another server may have replaced the key, or somebody may have used it, since it was looked at.
const REPLACE: &str = "
BEGIN;
IF ((SELECT VALUE key FROM ONLY first_start:done) ?? '') != $old_name { THROW 'stale head' };
IF (SELECT VALUE last_used_at FROM ONLY $old) != NONE { THROW 'stale head' };
UPDATE first_start:done SET key = $key_name RETURN NONE;
DELETE $old RETURN NONE;
CREATE $key CONTENT $content RETURN NONE;
COMMIT;";

impl Database {
    /// Writes a workspace, its owner and the owner's key: all of them or none.
    pub async fn write_workspace(&self, workspace: &WorkspaceRecord, key: &KeyRecord) -> Result<()> {
        self.query_again(&provisioning(""), provisioned(workspace, key)).await.map(drop)
    }

    /// Does the same for the first workspace of a store. Returns whether it was the first: of several servers that start
    /// on an empty store at once, one.
    pub async fn write_first_workspace(&self, workspace: &WorkspaceRecord, key: &KeyRecord) -> Result<bool> {
        let statements = provisioning("CREATE first_start:done SET key = $key_name RETURN NONE;");
        for wait in retry::waits() {
            if self.first_key_id().await?.is_some() {
                return Ok(false);
            }
            match self.query(&statements, provisioned(workspace, key)).await {
                Err(Error::Conflict) => tokio::time::sleep(Duration::from_millis(wait)).await,
                other => return other.map(|_| true),
            }
        }
        Err(Error::Conflict)
    }

    /// Puts a key in the place of the one that the first start made, where nobody has ever used that one: whoever
    /// should have been shown it may not have been. Returns whether it did.
    pub async fn replace_unused_first_key(&self, make: impl Fn(&KeyRecord) -> KeyRecord) -> Result<bool> {
        for wait in retry::waits() {
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
                ("content", Record::Object(key_content(&key))),
            ];
            match self.query(REPLACE, values).await {
                Err(Error::Conflict) => tokio::time::sleep(Duration::from_millis(wait)).await,
                other => return other.map(|_| true),
            }
        }
        Err(Error::Conflict)
    }

    /// The id of the key that the first start made, whether it is still there or not.
    async fn first_key_id(&self) -> Result<Option<String>> {
        let found = self.query("SELECT VALUE key FROM first_start:done", []).await?;
        Ok(convert::list(found.first())?.next().and_then(|id| match id {
            Record::String(id) => Some(id.clone()),
            _ => None,
        }))
    }

    async fn unused_first_key(&self) -> Result<Option<KeyRecord>> {
        let Some(id) = self.first_key_id().await? else { return Ok(None) };
        let statement = "SELECT *, record::id(id) AS key FROM $id";
        let found = self.query(statement, [("id", convert::record_id("key", id))]).await?;
        let key = convert::list(found.first())?.next().map(read_key).transpose()?;
        Ok(key.filter(|key| key.last_used_at.is_none()))
    }

    pub async fn read_workspaces(&self) -> Result<Vec<WorkspaceRecord>> {
        let statement = "SELECT *, record::id(id) AS key FROM workspace ORDER BY created_at, id";
        let found = self.query(statement, []).await?;
        convert::list(found.first())?.map(read_workspace).collect()
    }

    pub async fn write_key(&self, key: &KeyRecord) -> Result<()> {
        let values =
            [("id", convert::record_id("key", key.id.to_string())), ("content", Record::Object(key_content(key)))];
        self.query_again("CREATE $id CONTENT $content RETURN NONE", values).await.map(drop)
    }

    /// Writes a key, unless there is one of its id. Returns the key that is there now.
    pub async fn create_key(&self, key: &KeyRecord) -> Result<KeyRecord> {
        let values = [
            ("id", convert::record_id("key", key.id.to_string())),
            ("content", Record::Object(key_content(key))),
            ("workspace", convert::text(&key.workspace_id)),
        ];
        let statements = "BEGIN;
            IF !record::exists($id) { CREATE $id CONTENT $content RETURN NONE };
            SELECT *, record::id(id) AS key FROM $id WHERE workspace_id = $workspace;
            COMMIT;";
        let found = self.query_again(statements, values).await?;
        let kept = found.iter().find_map(|result| convert::list(Some(result)).ok()?.next().map(read_key));
        kept.unwrap_or_else(|| Err(Error::Corrupt("a key that was just written is not there".into())))
    }

    /// Those of some keys that there are.
    pub async fn existing_keys(&self, ids: &[Arc<str>]) -> Result<HashSet<String>> {
        let ids: Vec<Record> = ids.iter().map(|id| convert::record_id("key", id.to_string())).collect();
        let found = self.query("SELECT VALUE record::id(id) FROM $ids", [("ids", Record::Array(ids.into()))]).await?;
        let text = |record: &Record| match record {
            Record::String(id) => Some(id.clone()),
            _ => None,
        };
        Ok(convert::list(found.first())?.filter_map(text).collect())
    }

    /// The key whose secret has this hash.
    pub async fn find_key(&self, hash: &str) -> Result<Option<KeyRecord>> {
        let statement = "SELECT *, record::id(id) AS key FROM key WHERE hash = $hash";
        let found = self.query(statement, [("hash", convert::text(hash))]).await?;
        convert::list(found.first())?.next().map(read_key).transpose()
    }

    /// The keys of a workspace, newest first.
    pub async fn read_keys(&self, workspace_id: &str) -> Result<Vec<KeyRecord>> {
        let statement = "SELECT *, record::id(id) AS key FROM key WHERE workspace_id = $workspace ORDER BY created_at DESC, id DESC";
        let found = self.query(statement, [("workspace", convert::text(workspace_id))]).await?;
        convert::list(found.first())?.map(read_key).collect()
    }

    /// Deletes a key of this workspace; false when it has none of this id.
    pub async fn delete_key(&self, workspace_id: &str, key_id: &str) -> Result<bool> {
        let statement = "DELETE $id WHERE workspace_id = $workspace RETURN BEFORE";
        let values = [("id", convert::record_id("key", key_id.to_owned())), ("workspace", convert::text(workspace_id))];
        let found = self.query_again(statement, values).await?;
        Ok(convert::list(found.first())?.next().is_some())
    }

    pub async fn touch_key(&self, key_id: &str, at: i64) -> Result<()> {
        let values = [("id", convert::record_id("key", key_id.to_owned())), ("at", convert::integer(at))];
        self.query_again("UPDATE $id SET last_used_at = $at RETURN NONE", values).await.map(drop)
    }
}

/// One transaction that writes a workspace with its owner and the owner's key, after what stands first in it.
fn provisioning(first: &str) -> String {
    format!(
        "BEGIN; {first} CREATE $workspace CONTENT $about RETURN NONE; UPSERT $user RETURN NONE; \
         CREATE $key CONTENT $content RETURN NONE; COMMIT;"
    )
}

fn provisioned(workspace: &WorkspaceRecord, key: &KeyRecord) -> [(&'static str, Record); 6] {
    let about = convert::fields([
        ("name", convert::text(&workspace.name)),
        ("slug", convert::text(&workspace.slug)),
        ("owner_id", convert::text(&workspace.owner_id)),
        ("created_at", convert::integer(workspace.created_at)),
    ]);
    [
        ("workspace", convert::record_id("workspace", workspace.id.to_string())),
        ("about", Record::Object(about)),
        ("user", convert::record_id("user", workspace.owner_id.to_string())),
        ("key", convert::record_id("key", key.id.to_string())),
        ("key_name", convert::text(&key.id)),
        ("content", Record::Object(key_content(key))),
    ]
}

fn key_content(key: &KeyRecord) -> RecordObject {
    let scopes: Vec<Record> = key.scopes.iter().map(|scope| convert::text(scope.name())).collect();
    convert::fields([
        ("workspace_id", convert::text(&key.workspace_id)),
        ("user_id", convert::text(&key.user_id)),
        ("name", convert::text(&key.name)),
        ("scopes", Record::Array(scopes.into())),
        ("display", convert::text(&key.display)),
        ("hash", convert::text(&key.hash)),
        ("created_at", convert::integer(key.created_at)),
        ("expires_at", key.expires_at.map_or(Record::None, convert::integer)),
    ])
}

fn read_workspace(record: &Record) -> Result<WorkspaceRecord> {
    Ok(WorkspaceRecord {
        id: convert::text_field(record, "key")?.into(),
        name: convert::text_field(record, "name")?.to_owned(),
        slug: convert::text_field(record, "slug")?.to_owned(),
        owner_id: convert::text_field(record, "owner_id")?.into(),
        created_at: convert::int_field(record, "created_at")?,
    })
}

fn read_key(record: &Record) -> Result<KeyRecord> {
    let scopes = match record {
        Record::Object(object) => convert::list(object.get("scopes"))?
            .filter_map(|scope| match scope {
                Record::String(name) => Scope::parse(name),
                _ => None,
            })
            .collect(),
        _ => Vec::new(),
    };
    Ok(KeyRecord {
        id: convert::text_field(record, "key")?.into(),
        workspace_id: Arc::from(convert::text_field(record, "workspace_id")?),
        user_id: Arc::from(convert::text_field(record, "user_id")?),
        name: convert::text_field(record, "name")?.to_owned(),
        scopes,
        display: convert::text_field(record, "display")?.to_owned(),
        hash: convert::text_field(record, "hash")?.to_owned(),
        created_at: convert::int_field(record, "created_at")?,
        expires_at: convert::optional_int_field(record, "expires_at"),
        last_used_at: convert::optional_int_field(record, "last_used_at"),
    })
}
