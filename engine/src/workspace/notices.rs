//! Appends the tasks that inform owners about the deletion of their workspaces, and operators about unusable archives.

use std::sync::Arc;

use super::runtime::Runtime;
use crate::append::request::{Append, Decide};
use crate::append::view::View;
use crate::error::Result;
use crate::mailbox::notice;

/// The approximate size of the task for one owner, in bytes.
const TASK_BYTES: usize = 1_024;

/// If `delete_at` is set, creates a task for each owner. The task announces that the workspace will be deleted at
/// `delete_at`. `told` is the time of deletion in the previous notification. If `told` differs from `delete_at`,
/// cancels the open tasks that announce `told`. A repeated call changes nothing.
pub(crate) async fn notify_owners(
    runtime: &Runtime,
    owners: Vec<Arc<str>>,
    delete_at: Option<i64>,
    told: Option<i64>,
) -> Result<()> {
    let now_ms = runtime.state.clock.now_ms();
    let size_bytes = TASK_BYTES * owners.len().max(1);
    let decide: Decide = Box::new(move |view: &View<'_>| {
        let outdated = told.filter(|told| Some(*told) != delete_at);
        let mut events = outdated.map_or_else(Vec::new, |told| notice::withdrawn(view, &owners, told, now_ms));
        events.extend(delete_at.into_iter().flat_map(|delete_at| notice::announced(view, &owners, delete_at)));
        Ok(events)
    });
    append(runtime, decide, size_bytes).await
}

/// Creates one task for each operator. The task is about an archive that cannot be restored. An operator gets at most
/// one such task a day for each archive.
pub(crate) async fn notify_of_backup(
    runtime: &Runtime,
    operators: Vec<Arc<str>>,
    workspace_id: Arc<str>,
    at: i64,
    problem: String,
) -> Result<()> {
    let size_bytes = (TASK_BYTES + problem.len()) * operators.len().max(1);
    let decide: Decide =
        Box::new(move |view: &View<'_>| Ok(notice::unusable_archive(view, &operators, &workspace_id, at, &problem)));
    append(runtime, decide, size_bytes).await
}

async fn append(runtime: &Runtime, decide: Decide, size_bytes: usize) -> Result<()> {
    runtime.state.refresh().await?;
    let append = Append { size_bytes, ..Append::decided("system".into(), decide) };
    runtime.appender.append(append).await.map(drop)
}
