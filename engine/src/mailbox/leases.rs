//! Leases that go on: a heartbeat, or the same claim again, moves their ends. That is no event.

use std::sync::{Arc, LazyLock};

use super::selection::{Selection, select};
use crate::core::State;
use crate::error::Result;
use crate::model::task::{Status, Task};
use crate::resident::Snapshot;
use crate::store::leases::LeaseRow;

/// The columns that tell which tasks agents hold.
pub static PATHS: LazyLock<Vec<Arc<str>>> = LazyLock::new(|| vec!["status".into(), "claimed_by".into()]);

/// A lease that was to be renewed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Renewed {
    pub task_id: Arc<str>,
    pub agent_id: Arc<str>,
    pub claim: u64,
    /// When it ends now; `None` where it had ended. Milliseconds since the epoch.
    pub until: Option<i64>,
}

/// Renews what these agents hold, each lease for as long as it was claimed for. The snapshot has the columns of [`PATHS`].
pub async fn renew(state: &State, snapshot: &Snapshot, agent_ids: &[Arc<str>], now_ms: i64) -> Result<Vec<Renewed>> {
    let selection = Selection {
        statuses: Some(vec![Status::InProgress]),
        claimed_by: Some(agent_ids.to_vec()),
        ..Selection::default()
    };
    let held = select(snapshot, &selection, u64::MAX, usize::MAX).items;
    let leases = held.iter().filter_map(|task| {
        let lease = Task::new(task).lease()?;
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
