//! Deletes workspaces after the end of their grace period, and informs their owners beforehand.
//!
//! Every server calls [`tend_deletions`] at intervals. The record of a deletion in the store determines the next step
//! of the deletion. The same step may run on several servers, and may run again after a crash.

use std::sync::Arc;

use crate::engine::Engine;
use crate::error::Result;
use crate::store::control::workspaces::WorkspaceDeletion;
use crate::workspace::notices::notify_owners;

/// The maximum time until every server has closed a removed workspace, in milliseconds. During this time, each server
/// checks for removed workspaces several times.
const CLOSED_AFTER_MS: i64 = 300_000;

/// Creates tasks that announce the deletion of workspaces to their owners, and cancels these tasks if the deletion was
/// canceled or has another date. Deletes the workspaces whose grace period has ended. Failures are logged, and the next
/// call tries again.
pub async fn tend_deletions(engine: &Engine) {
    let deletions = match engine.access().deletions().await {
        Ok(deletions) => deletions,
        Err(error) => {
            tracing::warn!(%error, "failed to read the deletions of workspaces");
            return;
        }
    };
    for WorkspaceDeletion { workspace_id: workspace, .. } in deletions {
        if let Err(error) = tend_deletion(engine, &workspace).await {
            tracing::warn!(%error, cause = ?error, %workspace, "a step in the deletion of a workspace failed");
        }
    }
}

async fn tend_deletion(engine: &Engine, id: &Arc<str>) -> Result<()> {
    // Reads the deletion again, since the deletions before this one may have taken minutes.
    let Some(deletion) = engine.access().control().read_deletion(id).await? else { return Ok(()) };
    if let Some(removed_at) = deletion.removed_at {
        return match deletion.cleared_at {
            None => remove_data(engine, id, removed_at).await,
            Some(cleared_at) => forget(engine, id, cleared_at).await,
        };
    }
    if deletion.delete_at.is_some_and(|delete_at| delete_at <= engine.clock().now_ms()) {
        if engine.access().remove_due_workspace(id).await? {
            tracing::info!(workspace = %id, "deleted a workspace after its grace period");
            return remove_data(engine, id, engine.clock().now_ms()).await;
        }
        return Ok(());
    }
    if deletion.told != deletion.delete_at || deletion.delete_at.is_none() {
        let owners = engine.access().control().read_owners(id).await?;
        notify_owners(&*engine.runtime(id).await?, owners, deletion.delete_at, deletion.told).await?;
        engine.access().control().settle_deletion(&deletion).await?;
    }
    Ok(())
}

/// Closes a removed workspace and deletes its data. If no other server shares the store, also deletes the record of the
/// deletion. Otherwise later calls delete the data again until all servers have closed the workspace, because the other
/// servers may write data until then.
async fn remove_data(engine: &Engine, id: &Arc<str>, removed_at: i64) -> Result<()> {
    engine.close_removed(id).await;
    let opener = engine.opener();
    opener.remove(id).await?;
    if opener.is_exclusive() {
        return Ok(engine.access().control().forget_deletion(id).await?);
    }
    if engine.clock().now_ms() >= removed_at.saturating_add(CLOSED_AFTER_MS) {
        engine.access().control().clear_deletion(id, engine.clock().now_ms()).await?;
    }
    Ok(())
}

/// Deletes the record of a removed workspace whose data was deleted at least [`CLOSED_AFTER_MS`] ago. While the record
/// exists, the workspace cannot be created again, because a slow server might still be deleting its data.
async fn forget(engine: &Engine, id: &Arc<str>, cleared_at: i64) -> Result<()> {
    if engine.clock().now_ms() >= cleared_at.saturating_add(CLOSED_AFTER_MS) {
        engine.access().control().forget_deletion(id).await?;
    }
    Ok(())
}
