//! Renewals of leases. A heartbeat extends a lease, and so does claiming the task again. A renewal is not an event.

use std::sync::Arc;

use crate::error::Result;
use crate::model::task::Task;
use crate::state::State;
use crate::store::Database;
use crate::store::leases::LeaseRow;

/// The result of renewing one lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Renewed {
    pub task_id: Arc<str>,
    pub agent_id: Arc<str>,
    pub claim: u64,
    /// The new end of the lease, in milliseconds since the epoch. `None` if the lease had expired.
    pub until: Option<i64>,
}

/// The right to renew the leases of a workspace. Listeners have this right, although they can change no other record.
pub struct Renewals {
    db: Database,
}

impl Renewals {
    pub fn new(db: Database) -> Renewals {
        Renewals { db }
    }

    /// Renews all leases of these agents, each for the duration of its claim. Reads only the tasks that the agents
    /// hold.
    pub async fn renew(&self, state: &State, agent_ids: &[Arc<str>], now_ms: i64) -> Result<Vec<Renewed>> {
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
        let now = self.renew_rows(&rows).await?;
        Ok(agents
            .into_iter()
            .zip(rows.iter().zip(now))
            .map(|(agent_id, (row, until))| Renewed { task_id: row.task_id.clone(), agent_id, claim: row.claim, until })
            .collect())
    }

    /// Renews leases. Returns the new end of each lease in milliseconds since the epoch, or `None` for a lease that had
    /// expired.
    pub async fn renew_rows(&self, rows: &[LeaseRow]) -> Result<Vec<Option<i64>>> {
        let mut ends = Vec::with_capacity(rows.len());
        for some in rows.chunks(RENEWED_AT_ONCE) {
            let now = self.db.renew_leases(some).await?;
            ends.extend(some.iter().map(|row| {
                let is_held = |now: &&LeaseRow| now.task_id == row.task_id && now.claim == row.claim && !now.expired;
                now.iter().find(is_held).map(|now| now.until)
            }));
        }
        Ok(ends)
    }
}

/// The number of leases that one statement renews.
const RENEWED_AT_ONCE: usize = 200;
