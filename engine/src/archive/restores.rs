//! Runs restores on a running server. Each restore creates a new workspace. The control database has a record of each
//! restore, so that every server of the store can list the restores, and can detect a restore whose server has stopped.

use std::sync::Arc;

use super::backups::Backups;
use super::log::{self, check_id};
use super::restore::{RestoreFrom, RestoreOutcome, restore_workspace};
use super::verify::RestoreProgress;
use crate::access::keys::NewKey;
use crate::access::workspaces::check_name;
use crate::error::{Error, Result};
use crate::model::access::{Caller, WorkspaceRecord, key_from};
use crate::model::slug::valid;
pub use crate::store::control::restores::{RestoreRecord, RestoreStatus};

/// The result of beginning a restore.
pub struct RestoreBeginning {
    pub restore: RestoreRecord,
    /// The secret of the key for the new workspace. `None` if the caller's key is valid for all workspaces, if the
    /// caller has no key, or if an earlier call began the restore.
    pub key: Option<String>,
    /// Whether an earlier call began the restore.
    pub repeated: bool,
}

impl Backups {
    /// Begins a restore into a new workspace. The caller becomes the owner of the workspace when the restore is
    /// complete, so that no user sees a partly restored workspace. If the caller has a key that is valid in one
    /// workspace only, also returns a key with the same scopes for the new workspace. The returned key works only after
    /// the restore is complete.
    ///
    /// `id` is the id of the restore, if the caller chooses one. If a restore with this id has begun already, no second
    /// restore begins.
    pub async fn begin_restore(
        self: &Arc<Self>,
        from: RestoreFrom,
        name: &str,
        caller: &Caller,
        id: Option<Arc<str>>,
    ) -> Result<RestoreBeginning> {
        check_name(name)?;
        check_id(&from.workspace_id)?;
        let epochs = log::epochs(&self.archive().bucket, &from.workspace_id).await?;
        if epochs.is_empty() {
            return Err(Error::not_found("archive of the workspace", &from.workspace_id));
        }
        if let Some(epoch) = from.epoch.filter(|epoch| !epochs.contains(epoch)) {
            let what = format!("epoch {epoch} of the archive of the workspace");
            return Err(Error::not_found(&what, &from.workspace_id));
        }
        let clock = self.engine.clock();
        let now_ms = clock.now_ms();
        let workspace = WorkspaceRecord {
            id: clock.new_id().to_string().into(),
            name: name.trim().to_owned(),
            slug: valid(name, "restored"),
            owner_id: caller.user_id.clone(),
            created_at: now_ms,
        };
        let restore = RestoreRecord {
            id: id.unwrap_or_else(|| clock.new_id().to_string().into()),
            source_id: from.workspace_id.clone(),
            workspace_id: workspace.id.clone(),
            name: workspace.name.clone(),
            status: RestoreStatus::Running,
            position: 0,
            end: None,
            message: None,
            started_at: now_ms,
            ended_at: None,
            server: self.engine.peers().map(|peers| peers.server_id.clone()),
        };
        let control = self.engine.access().control();
        let begun = control.begin_restore(&restore).await?;
        if begun.workspace_id != restore.workspace_id {
            return Ok(RestoreBeginning { restore: begun, key: None, repeated: true });
        }
        let secret = caller.key_id.is_some().then(|| key_from(clock.random())).filter(|_| !caller.opens_all());
        let key = secret.clone().map(|secret| (secret, caller.clone()));
        let (backups, running) = (self.clone(), restore.clone());
        tokio::spawn(async move { backups.run_restore(running, from, workspace, key).await });
        Ok(RestoreBeginning { restore, key: secret, repeated: false })
    }

    /// Runs a restore, creates the key for the new workspace, and records the end of the restore.
    async fn run_restore(
        &self,
        mut restore: RestoreRecord,
        from: RestoreFrom,
        workspace: WorkspaceRecord,
        key: Option<(String, Caller)>,
    ) {
        let outcome = self.try_restore(&restore, &from, &workspace).await;
        if let (Ok(_), Some((secret, caller))) = (&outcome, key)
            && let Err(error) = self.create_key(secret, &caller, &workspace).await
        {
            tracing::warn!(%error, workspace = %workspace.id, "could not create a key for the restored workspace");
        }
        restore.ended_at = Some(self.engine.clock().now_ms());
        match outcome {
            Ok(RestoreOutcome { position, missing_files, .. }) => {
                tracing::info!(source = %restore.source_id, workspace = %workspace.id, position, "a workspace was restored");
                (restore.status, restore.position, restore.end) = (RestoreStatus::Done, position, Some(position));
                let missing = format!("the archive does not have the bytes of {missing_files} file versions");
                restore.message = Some(missing).filter(|_| missing_files > 0);
            }
            Err(error) => {
                tracing::error!(
                    %error, cause = ?error, restore = %restore.id, source = %restore.source_id, "a restore failed"
                );
                restore.status = RestoreStatus::Failed;
                restore.message = Some(log::reason(&error));
            }
        }
        match self.engine.access().control().end_restore(&restore, None).await {
            Ok(true) => {}
            // This server was paused or cut off from the store, and another server has recorded the end of the restore.
            Ok(false) => {
                tracing::warn!(restore = %restore.id, "another server has already marked the restore as failed");
            }
            Err(error) => tracing::error!(%error, restore = %restore.id, "could not record the end of a restore"),
        }
    }

    /// Creates a key for the restored workspace, with the scopes and the expiry of the caller's key.
    async fn create_key(&self, secret: String, caller: &Caller, workspace: &WorkspaceRecord) -> Result<()> {
        let new = NewKey {
            name: "restored".into(),
            scopes: caller.scopes.to_vec(),
            expires_at: caller.expires_at,
            ..NewKey::default()
        };
        let origin = Some(caller.origin());
        let access = self.engine.access();
        access.create_key(Some(secret), &workspace.id, &workspace.owner_id, new, None, origin).await.map(drop)
    }

    async fn try_restore(
        &self,
        restore: &RestoreRecord,
        from: &RestoreFrom,
        workspace: &WorkspaceRecord,
    ) -> Result<RestoreOutcome> {
        let access = self.engine.access();
        access.restore_workspace(workspace, false).await?;
        let note = |reached: RestoreProgress| {
            self.restoring.lock().insert(restore.id.clone(), (reached.position, reached.end));
        };
        let restored = restore_workspace(&self.engine, self.archive(), from, &workspace.id, &note).await;
        self.restoring.lock().remove(&restore.id);
        let restored = restored?;
        access.restore_owner(workspace).await?;
        Ok(restored)
    }

    /// Returns the last restores, the newest first.
    pub async fn restores(&self) -> Result<Vec<RestoreRecord>> {
        let found = self.engine.access().control().read_restores().await?;
        Ok(found.into_iter().map(|restore| self.with_progress(restore)).collect())
    }

    /// Returns a restore with its progress. Fails if no restore has this id.
    pub async fn restore(&self, id: &str) -> Result<RestoreRecord> {
        let found = self.engine.access().control().read_restore(id).await?;
        found.map(|restore| self.with_progress(restore)).ok_or_else(|| Error::not_found("restore", id))
    }

    fn with_progress(&self, restore: RestoreRecord) -> RestoreRecord {
        match self.restoring.lock().get(&restore.id) {
            Some((position, end)) => RestoreRecord { position: *position, end: Some(*end), ..restore },
            None => restore,
        }
    }

    /// Ends the running restores whose servers have stopped: marks these restores as failed, and marks their incomplete
    /// workspaces for deletion.
    pub(super) async fn end_abandoned_restores(&self) -> Result<()> {
        let control = self.engine.access().control();
        for restore in control.read_running_restores().await? {
            if self.is_running(&restore) {
                continue;
            }
            let (message, ended_at) =
                (Some("the server stopped during the restore".to_owned()), Some(self.engine.clock().now_ms()));
            let ended = RestoreRecord { status: RestoreStatus::Failed, message, ended_at, ..restore };
            control.end_restore(&ended, ended.server.as_deref()).await?;
        }
        Ok(())
    }

    /// Returns whether the server that runs a restore may still be alive.
    fn is_running(&self, restore: &RestoreRecord) -> bool {
        match (self.engine.peers(), restore.server.as_deref()) {
            (Some(peers), Some(server)) => peers.is_alive(server),
            _ => restore.started_at >= self.engine.running().started_at,
        }
    }
}
