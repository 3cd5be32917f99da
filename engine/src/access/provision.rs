//! Creates a workspace with an owner and a key with every scope, in one transaction.

use std::sync::Arc;

use strum::VariantArray;

use super::Access;
use super::keys::NewKey;
use crate::error::{Error, Result};
use crate::model::access::{self, KeyRecord, Scope, WorkspaceRecord};

/// The result of the first start on an empty store.
pub struct FirstStart {
    pub workspace: WorkspaceRecord,
    /// The owner's key. Only the hash of a key is stored, so the key cannot be retrieved later.
    pub key: String,
}

impl Access {
    /// On an empty store, creates the workspace `default`. On any other store, replaces the first key with the chosen
    /// key, if a key is chosen and the first key was never used. See [`crate::Engine::first_start`].
    pub async fn first_start(&self, chosen_key: Option<String>) -> Result<Option<FirstStart>> {
        check_key(chosen_key.as_deref())?;
        if self.workspaces().await?.is_empty() {
            let (workspace, record, key) = self.new_workspace("default", chosen_key.clone());
            if self.control.write_first_workspace(&workspace, &record).await? {
                return Ok(Some(FirstStart { workspace, key }));
            }
        }
        if let Some(chosen) = chosen_key {
            let make = |unused: &KeyRecord| {
                self.new_key(&unused.workspace_id, &unused.user_id, &unused.name, Some(chosen.clone())).0
            };
            if self.control.replace_unused_first_key(make).await? {
                tracing::warn!("replaced the unused first owner key with the configured key");
            }
        }
        Ok(None)
    }

    /// Creates a workspace with an owner and a key with every scope.
    pub async fn provision(&self, name: &str, chosen_key: Option<String>) -> Result<(WorkspaceRecord, String)> {
        check_key(chosen_key.as_deref())?;
        let (workspace, record, key) = self.new_workspace(name, chosen_key);
        self.control.write_workspace(&workspace, &record).await?;
        Ok((workspace, key))
    }

    fn new_workspace(&self, name: &str, chosen_key: Option<String>) -> (WorkspaceRecord, KeyRecord, String) {
        let workspace = WorkspaceRecord {
            id: self.clock.new_id().to_string().into(),
            name: name.to_owned(),
            slug: name.to_owned(),
            owner_id: self.clock.new_id().to_string().into(),
            created_at: self.clock.now_ms(),
        };
        let (record, key) = self.new_key(&workspace.id, &workspace.owner_id, "owner", chosen_key);
        (workspace, record, key)
    }

    pub(super) fn new_key(
        &self,
        workspace_id: &Arc<str>,
        user_id: &Arc<str>,
        name: &str,
        chosen: Option<String>,
    ) -> (KeyRecord, String) {
        let key = chosen.unwrap_or_else(|| access::key_from(self.clock.random()));
        let id = self.clock.new_id().to_string().into();
        let new = NewKey { name: name.to_owned(), scopes: Scope::VARIANTS.to_vec(), ..NewKey::default() };
        let record = super::keys::record_of(&key, id, workspace_id.clone(), user_id.clone(), new, self.clock.now_ms());
        (record, key)
    }
}

fn check_key(key: Option<&str>) -> Result<()> {
    match key.is_none_or(access::is_key) {
        true => Ok(()),
        false => Err(Error::invalid("the chosen key must consist of sk_ and 64 hexadecimal digits")),
    }
}
