//! Renews the leases of tasks. A heartbeat of the worker that holds a lease extends the lease, and so does another
//! claim of the task by this worker. A renewal is not an event.
//!
//! If no other server uses the store, the server responds to a heartbeat before the renewals are written, and writes
//! the renewals of one second together. The timers write waiting renewals before they read expired leases. Renewals
//! that are lost in a crash do no harm, because agents get time to renew their leases after a server starts.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use tokio::sync::Notify;

use crate::error::Result;
use crate::model::task::Task;
use crate::model::task::record::Lease;
use crate::state::State;
use crate::store::Database;
use crate::store::workspace::leases::LeaseRow;

/// The result of renewing one lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseRenewal {
    pub task_id: Arc<str>,
    pub agent_id: Arc<str>,
    pub claim: u64,
    /// The new end of the lease, in milliseconds since the epoch. `None` if the lease had expired, or if the task had
    /// been claimed again.
    pub until: Option<i64>,
}

/// The claims to renew. A heartbeat can be limited to the claims of one worker, because an agent can run as several
/// workers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HeldClaims {
    All,
    /// The claims with these task ids and claim numbers.
    Named(HashSet<(String, u64)>),
    /// The claims of this instance.
    Instance(String),
    /// The claims without an instance that were made with this key or session, or by this user. Also includes claims
    /// without an instance that record no key, session or user.
    ClaimedWith(Arc<str>),
}

impl HeldClaims {
    fn contain(&self, task_id: &str, lease: &Lease<'_>) -> bool {
        match self {
            HeldClaims::All => true,
            HeldClaims::Named(claims) => claims.contains(&(task_id.to_owned(), lease.claim)),
            HeldClaims::Instance(instance) => lease.instance == Some(instance),
            HeldClaims::ClaimedWith(origin) => {
                lease.instance.is_none() && lease.claimed_with.is_none_or(|with| *with == **origin)
            }
        }
    }
}

/// The right to renew the leases of a workspace. Listeners have this right, although they cannot append events.
pub struct Renewals {
    db: Database,
    /// Whether no other server uses the store.
    exclusive: bool,
    /// The renewals that are not written yet, by task.
    waiting: Mutex<FxHashMap<Arc<str>, LeaseRow>>,
    /// Notifies the writer that renewals are waiting.
    added: Notify,
    /// Serializes writes. After a call of [`Renewals::write`], every renewal that waited before the call is written.
    writing: tokio::sync::Mutex<()>,
}

impl Renewals {
    pub fn new(db: Database, exclusive: bool) -> Renewals {
        let (waiting, writing) = Default::default();
        Renewals { db, exclusive, waiting, added: Notify::new(), writing }
    }

    /// Renews the leases that a worker holds, like [`Renewals::renew`]. Returns the number of renewed leases. If no
    /// other server uses the store, the renewals are written later, and the number also counts leases that have
    /// expired.
    pub async fn renew_soon(
        &self,
        state: &State,
        agent_ids: &[Arc<str>],
        claims: &HeldClaims,
        now_ms: i64,
    ) -> Result<usize> {
        if !self.exclusive {
            let renewed = self.renew(state, agent_ids, claims, now_ms).await?;
            return Ok(renewed.iter().filter(|lease| lease.until.is_some()).count());
        }
        let (_, rows) = held_rows(state, agent_ids, claims, now_ms);
        let count = rows.len();
        if count > 0 {
            self.waiting.lock().extend(rows.into_iter().map(|row| (row.task_id.clone(), row)));
            self.added.notify_one();
        }
        Ok(count)
    }

    /// Writes the waiting renewals. If the write fails, the renewals keep waiting.
    pub async fn write(&self) -> Result<()> {
        let _one = self.writing.lock().await;
        let rows: Vec<LeaseRow> = self.waiting.lock().values().cloned().collect();
        self.renew_rows(&rows).await?;
        let mut waiting = self.waiting.lock();
        for row in rows {
            if waiting.get(&row.task_id) == Some(&row) {
                waiting.remove(&row.task_id);
            }
        }
        Ok(())
    }

    /// Writes waiting renewals until the background task that runs this function is aborted. Retries a failed write.
    /// `workspace` is the id of the workspace, for the log.
    pub async fn keep_writing(&self, workspace: &str) {
        loop {
            self.added.notified().await;
            tokio::time::sleep(GATHER).await;
            if let Err(error) = self.write().await {
                tracing::warn!(%error, workspace, "failed to write renewed leases; will retry");
                self.added.notify_one();
            }
        }
    }

    /// Renews each lease of these agents if the claim of the lease is in `claims`. The new end of the lease is `now_ms`
    /// plus the duration that was recorded with the claim, unless the lease already ends later. Reads only the tasks
    /// that the agents hold.
    pub async fn renew(
        &self,
        state: &State,
        agent_ids: &[Arc<str>],
        claims: &HeldClaims,
        now_ms: i64,
    ) -> Result<Vec<LeaseRenewal>> {
        let (agents, rows) = held_rows(state, agent_ids, claims, now_ms);
        let ends = self.renew_rows(&rows).await?;
        let renewal =
            |((agent_id, LeaseRow { task_id, claim, .. }), until)| LeaseRenewal { task_id, agent_id, claim, until };
        Ok(agents.into_iter().zip(rows).zip(ends).map(renewal).collect())
    }

    /// Renews leases. Returns the new end of each lease in milliseconds since the epoch. Returns `None` for a lease
    /// that had expired, or whose task had been claimed again.
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

/// Finds the leases of these agents whose claims `claims` selects. Returns two lists with one entry for each lease: the
/// ids of the agents, and the lease rows with the new ends.
fn held_rows(
    state: &State,
    agent_ids: &[Arc<str>],
    claims: &HeldClaims,
    now_ms: i64,
) -> (Vec<Arc<str>>, Vec<LeaseRow>) {
    let held = state.folded.workloads.held_by(agent_ids);
    let tasks = held.iter().filter_map(|id| state.folded.get(id.as_str()));
    let leases = tasks.filter_map(|task| {
        let lease = Task::new(&task).lease().filter(|lease| claims.contain(task.id.as_str(), lease))?;
        let until = now_ms.saturating_add(lease.seconds.saturating_mul(1_000));
        Some((
            Arc::from(lease.agent_id),
            LeaseRow { task_id: task.id.text(), claim: lease.claim, until, expired: false },
        ))
    });
    leases.unzip()
}

/// The maximum number of leases that one statement renews.
const RENEWED_AT_ONCE: usize = 200;
/// The time for which renewals are collected before they are written together.
const GATHER: Duration = Duration::from_secs(1);
