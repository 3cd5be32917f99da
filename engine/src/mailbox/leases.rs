//! Leases that go on: a heartbeat, or the same claim again, moves their ends. That is no event.

use std::sync::Arc;

use crate::core::State;
use crate::error::Result;
use crate::model::task::Task;
use crate::store::leases::LeaseRow;

/// A lease that was to be renewed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Renewed {
    pub task_id: Arc<str>,
    pub agent_id: Arc<str>,
    pub claim: u64,
    /// When it ends now; `None` where it had ended. Milliseconds since the epoch.
    pub until: Option<i64>,
}

/// Renews what these agents hold, each lease for as long as it was claimed for. No other task is looked at.
pub async fn renew(state: &State, agent_ids: &[Arc<str>], now_ms: i64) -> Result<Vec<Renewed>> {
    let held = state.folded.held_by(agent_ids);
    let tasks = held.iter().filter_map(|id| state.folded.get(id.as_str()));
    let leases = tasks.filter_map(|task| {
        let lease = Task::new(&task).lease()?;
        let until = now_ms.saturating_add(lease.seconds.saturating_mul(1_000));
        Some((
            Arc::from(lease.agent_id),
            LeaseRow { task_id: task.id.text(), claim: lease.claim, until, expired: false },
        ))
    });
    let (agents, rows): (Vec<Arc<str>>, Vec<LeaseRow>) = leases.unzip();
    let now = renew_rows(state, &rows).await?;
    Ok(agents
        .into_iter()
        .zip(rows.iter().zip(now))
        .map(|(agent_id, (row, until))| Renewed { task_id: row.task_id.clone(), agent_id, claim: row.claim, until })
        .collect())
}

/// Renews leases. Returns the end of each, `None` of those that had ended.
pub async fn renew_rows(state: &State, rows: &[LeaseRow]) -> Result<Vec<Option<i64>>> {
    let mut ends = Vec::with_capacity(rows.len());
    for some in rows.chunks(RENEWED_AT_ONCE) {
        let now = state.log.renew_leases(some).await?;
        ends.extend(some.iter().map(|row| {
            let is_held = |now: &&LeaseRow| now.task_id == row.task_id && now.claim == row.claim && !now.expired;
            now.iter().find(is_held).map(|now| now.until)
        }));
    }
    Ok(ends)
}

/// Leases that one statement renews.
const RENEWED_AT_ONCE: usize = 200;
