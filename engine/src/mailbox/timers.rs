//! The timers of one open workspace. The timers read the states of tasks and append an event for each of these
//! findings: an expired lease, an ended deferral, a passed due date, a due escalation step, and an assigned agent that
//! has left.
//!
//! If several servers share a store, only the leader of the workspace handles deadlines. A decision about a deadline
//! uses the state at the log's end, so two successive leaders append only one event for a deadline. The schedule is not
//! stored, because the state of each task contains its deadlines.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream;
use strum::VariantArray;

use super::deadline::{self, DeadlineFacts, DeadlineKind, DueTime};
use super::leases::Renewals;
use super::members::Members;
use super::offboarding::{self, Departure};
use super::schedule::Schedule;
use crate::append::appender::Appender;
use crate::append::request::{Append, Decide};
use crate::append::view::View;
use crate::error::{Error, Result};
use crate::model::aggregate::Aggregate;
use crate::model::builtin::{AGENT, TASK};
use crate::model::event::{Event, NewEvent};
use crate::model::facts::Assignee;
use crate::model::id::AggregateId;
use crate::model::task::{LEASE_S, Task};
use crate::state::State;
use crate::state::background::{Background, Stop, StopSignal};
use crate::store::workspace::leases::LeaseRow;

/// The maximum number of deadlines that are handled concurrently.
const AT_ONCE: usize = 32;
/// The maximum number of deadlines that are handled before the log is read again. Also the maximum number of tasks
/// whose lease rows are removed in one statement.
const BATCH: usize = 512;
/// The maximum number of events that are processed at a time.
const PAGE: usize = 4_096;
/// The wait after an error of the store, or while another server leads the workspace.
const PAUSE: Duration = Duration::from_secs(1);
/// The maximum grace period for an expired lease, in milliseconds: three heartbeats. A lease gets a grace period if the
/// lease expired while no timers ran or while a shared store was not available, because the agent could not renew the
/// lease then. The agent may still renew the lease during the grace period.
const GRACE_MS: i64 = LEASE_S * 1_000;

/// The time until the next check of a lease, in milliseconds. Applies if the lease has expired by the clock of this
/// server, but not by the clock of the store.
const RECHECK_MS: i64 = 100;

/// The running timers.
pub struct Timers {
    workspace_id: Arc<str>,
    stop: Stop,
    task: Background,
}

impl Timers {
    pub fn start(state: Arc<State>, appender: Appender, members: Members, renewals: Arc<Renewals>) -> Timers {
        let (stop, stopped) = Stop::new();
        let workspace_id = state.record.id.clone();
        Timers { workspace_id, stop, task: Background::spawn(run(state, appender, members, renewals, stopped)) }
    }

    /// Stops the timers. Unfinished work is repeated at the next start.
    pub async fn stop(mut self) {
        self.stop.begin();
        if let Err(error) = self.task.ended().await {
            tracing::error!(%error, workspace = %self.workspace_id, "the timers of a workspace did not end cleanly");
        }
    }
}

async fn run(
    state: Arc<State>,
    appender: Appender,
    members: Members,
    renewals: Arc<Renewals>,
    mut stopped: StopSignal,
) {
    let mut head = state.folded.head.follow();
    let mut timers = TimerLoop {
        opened_at: state.clock.now_ms(),
        state,
        appender,
        members,
        renewals,
        schedule: Schedule::default(),
        position: None,
        leased: HashSet::new(),
        ended: Vec::new(),
        swept: false,
    };
    while !stopped.has_begun() {
        head.borrow_and_update();
        timers.process_events().await;
        timers.forget_leases().await;
        let wait = match timers.process_due().await {
            Ok(TimerOutcome::Some) => continue,
            Ok(TimerOutcome::Nothing) => None,
            Ok(TimerOutcome::Elsewhere) => {
                let (position, next) = (timers.position.unwrap_or(0), timers.schedule.next());
                timers.state.deadlines.report_elsewhere(position, next);
                Some(PAUSE)
            }
            Err(error) => {
                tracing::warn!(%error, workspace = %timers.state.record.id, "could not process expired deadlines");
                Some(PAUSE)
            }
        };
        let next = timers.schedule.next();
        if wait.is_none() {
            timers.state.deadlines.report(timers.position.unwrap_or(0), next);
        }
        tokio::select! {
            changed = head.changed(), if wait.is_none() => if changed.is_err() { return },
            () = stopped.begun() => {}
            () = timers.pass(next, wait) => {}
        }
    }
}

struct TimerLoop {
    state: Arc<State>,
    appender: Appender,
    members: Members,
    renewals: Arc<Renewals>,
    schedule: Schedule,
    /// The position up to which the log has been processed. `None` if the states of all tasks must be read first.
    position: Option<u64>,
    /// The start time of these timers, or the time at which a shared store last became available again, whichever is
    /// later, in milliseconds since the epoch. If the clock is set back, this time is lowered to the current time.
    /// Leases that expired before this time may get a grace period, because their agents could not renew them.
    opened_at: i64,
    /// The ids of open tasks that have been claimed. The store may have lease rows of these tasks.
    leased: HashSet<AggregateId>,
    /// The ids of tasks that have ended or were deleted, each with the version of the task. The store may still have
    /// lease rows of these tasks.
    ended: Vec<(AggregateId, u64)>,
    /// Whether the timers have searched the store for leftover lease rows. Leftover rows belong to tasks that ended
    /// before the timers started, or that ended on another server.
    swept: bool,
}

impl TimerLoop {
    /// Processes the events that were appended since the last call.
    async fn process_events(&mut self) {
        while let Some(position) = self.position {
            match self.state.folded.announced_events(position, PAGE) {
                Some(events) => {
                    let Some(last) = events.last() else { return };
                    self.position = Some(last.position);
                    let left = agents_that_left(&events, |id| self.has_left(id));
                    if !left.is_empty() {
                        let is_theirs =
                            |task: &Task<'_>| task.assigned_agent().is_some_and(|agent| left.contains(agent));
                        self.schedule_tasks(is_theirs).await;
                    }
                    events.iter().for_each(|event| self.record(event));
                }
                None => self.position = None,
            }
        }
        // At the start, or if the events are no longer in memory, reads the deadlines of all tasks. Events that are
        // appended during this read are processed later.
        self.schedule = Schedule::default();
        self.position = Some(self.state.folded.position());
        self.schedule_tasks(|_| true).await;
    }

    /// Schedules the deadlines of the tasks that `admits` accepts. Yields to other work after each block of tasks.
    async fn schedule_tasks(&mut self, admits: impl Fn(&Task<'_>) -> bool) {
        let state = self.state.clone();
        let mut tasks = state.folded.newest(Some(TASK), u64::MAX);
        while let Some(block) = tasks.next_block() {
            block.filter(|task| admits(&Task::new(task))).for_each(|task| self.schedule_task(task));
            tokio::task::yield_now().await;
        }
    }

    fn record(&mut self, event: &Event) {
        if &*event.aggregate_type == TASK {
            match self.state.folded.get(event.aggregate_id.as_str()) {
                Some(task) => self.schedule_task(&task),
                None => {
                    self.schedule.remove(&event.aggregate_id);
                    self.ended.extend(self.leased.take(&event.aggregate_id).map(|id| (id, event.version)));
                }
            }
        }
    }

    fn has_left(&self, agent_id: &str) -> bool {
        Departure::agent(self.state.folded.get(agent_id).as_deref(), agent_id).is_some()
    }

    fn schedule_task(&mut self, task: &Aggregate) {
        for kind in DeadlineKind::VARIANTS.iter().copied() {
            let due = DueTime::of(&Task::new(task), kind, |id| self.has_left(id)).filter(|_| !task.deleted);
            if matches!(due, Some(DueTime::Lease { .. })) && !self.leased.contains(&task.id) {
                self.leased.insert(task.id.clone());
            }
            let key = (task.id.clone(), kind);
            // A postponed deadline keeps its later time.
            if self.schedule.get(&key) != due {
                let placed = due.map(|due| (due.until(), due));
                self.schedule.set(key, placed);
            }
        }
        if task.deleted || !Task::new(task).status().is_open() {
            self.ended.extend(self.leased.take(&task.id).map(|id| (id, task.version)));
        }
    }

    /// Removes the lease rows of tasks that have ended or were deleted.
    async fn forget_leases(&mut self) {
        let forgotten = async {
            if !self.swept {
                let kept = self.state.db.leased_tasks().await?;
                // The log contains every task with a lease row, so the states contain these tasks after the refresh.
                self.state.refresh().await?;
                for id in kept.into_iter().map(AggregateId::from) {
                    match self.state.folded.get(id.as_str()) {
                        Some(task) if !task.deleted && Task::new(&task).status().is_open() => {
                            self.leased.insert(id);
                        }
                        task => self.ended.push((id, task.map_or(u64::MAX, |task| task.version))),
                    }
                }
                self.swept = true;
            }
            while !self.ended.is_empty() {
                let start = self.ended.len().saturating_sub(BATCH);
                self.appender.database().forget_leases(&self.ended[start..]).await?;
                self.ended.truncate(start);
            }
            Ok::<(), Error>(())
        };
        if let Err(error) = forgotten.await {
            let workspace = &self.state.record.id;
            tracing::debug!(%error, %workspace, "could not remove the lease rows of ended tasks");
        }
    }

    /// Handles up to [`BATCH`] deadlines that have passed, unless another server is the leader. Deadlines whose
    /// handling fails stay due.
    async fn process_due(&mut self) -> Result<TimerOutcome> {
        // Without deadlines, the clock is not read.
        let Some(next) = self.schedule.next() else { return Ok(TimerOutcome::Nothing) };
        let now_ms = self.state.clock.now_ms();
        // If the clock was set back, a later `opened_at` would keep new leases from expiring.
        self.opened_at = self.opened_at.min(now_ms);
        if next > now_ms {
            return Ok(TimerOutcome::Nothing);
        }
        if self.state.leadership.acquire(true).await?.is_none() {
            return Ok(TimerOutcome::Elsewhere);
        }
        // Another server may have handled the deadline or renewed the lease.
        self.state.refresh().await?;
        if let Some(age) = self.state.gap_age() {
            self.opened_at = self.opened_at.max(now_ms.saturating_sub(age.as_millis() as i64));
        }
        self.renewals.write().await?;
        self.process_events().await;
        let due = self.schedule.take_due(now_ms, BATCH);
        let running = &*self;
        let results: Vec<_> = stream::iter(due)
            .map(|(id, due)| async move {
                let result = running.process_deadline(&id, due, now_ms).await;
                (id, due, result)
            })
            .buffer_unordered(AT_ONCE)
            .collect()
            .await;
        let mut outcome = Ok(TimerOutcome::Some);
        for (id, due, result) in results {
            match result {
                Ok(None) => {}
                Ok(Some(later)) => self.schedule.set((id, due.kind()), Some((later, due))),
                Err(error) => {
                    self.schedule.set((id, due.kind()), Some((now_ms, due)));
                    outcome = Err(error);
                }
            }
        }
        outcome
    }

    /// Handles one deadline. For a lease that may still be renewed or has not ended yet, only returns the time of the
    /// next check.
    async fn process_deadline(&self, id: &AggregateId, due: DueTime, now_ms: i64) -> Result<Option<i64>> {
        let owner = match due {
            DueTime::Escalation { .. } => Some(Assignee::User(self.members.owner().await?)),
            _ => None,
        };
        let mut known = DeadlineFacts { owner: owner.clone(), ..DeadlineFacts::default() };
        if let DueTime::Lease { claim, seconds, until } = due {
            let lease = (claim, seconds, until);
            if let Some(later) = postponed_until(&self.state, id, lease, (now_ms, self.opened_at)).await? {
                return Ok(Some(later));
            }
            // The lease row expires first, so that the lease can no longer be renewed. If the agent completes the work
            // before the event below is appended, the work is still accepted.
            let lease = LeaseRow { task_id: id.text(), claim, until, expired: false };
            // If several servers share the store, the clock of the store decides whether the lease has expired, and not
            // the clock of this server.
            let by_store = self.state.clock.follows_store() && !self.state.is_exclusive();
            let row = self.appender.database().expire_lease(&lease, (!by_store).then_some(now_ms)).await?;
            if row.claim == claim && !row.expired {
                return Ok(Some(if row.until > now_ms { row.until } else { now_ms.saturating_add(RECHECK_MS) }));
            }
            known.uncounted = row.until < self.opened_at;
        }
        let user = self.state.folded.get(id.as_str()).and_then(|task| deadline::user_of(&Task::new(&task), due));
        known.has_left = self.has_left_workspace(user.as_deref()).await?;
        let task_id = id.clone();
        self.append(move |view| deadline::decide(view, task_id.as_str(), due, now_ms, &known)).await?;
        // The removal of a member may have handed over the member's tasks before this event was appended.
        if let Some(user) = user
            && self.has_left_workspace(Some(&user)).await?
        {
            let (task_id, left) = (id.clone(), Departure::member(&user, owner));
            self.append(move |view| offboarding::decide(view, task_id.as_str(), &left, None)).await?;
        }
        Ok(None)
    }

    async fn has_left_workspace(&self, user: Option<&str>) -> Result<bool> {
        match user {
            Some(user) => Ok(!self.members.contain(user).await?),
            None => Ok(false),
        }
    }

    /// Appends the event that `decide` returns, if there is one.
    async fn append(&self, decide: impl Fn(&View<'_>) -> Option<NewEvent> + Send + Sync + 'static) -> Result<()> {
        let decide: Decide = Box::new(move |view: &View<'_>| Ok(decide(view).into_iter().collect()));
        self.appender.append(Append::decided("system".into(), decide)).await.map(drop)
    }

    /// Waits for the duration `wait`, if given. Otherwise waits until the time `next`, or forever without `next`.
    async fn pass(&self, next: Option<i64>, wait: Option<Duration>) {
        match (wait, next) {
            (Some(wait), _) => tokio::time::sleep(wait).await,
            (None, Some(at)) => self.state.clock.wait_until(at).await,
            (None, None) => std::future::pending().await,
        }
    }
}

/// The result of a search for passed deadlines.
enum TimerOutcome {
    /// No deadline has passed.
    Nothing,
    /// This server handled up to [`BATCH`] deadlines that had passed. More passed deadlines may be waiting.
    Some,
    /// Deadlines have passed, but another server is the leader and handles these deadlines.
    Elsewhere,
}

/// Returns the ids of the agents that have left, among the agents that a batch of events has changed. Each id is
/// returned once. The caller then searches all tasks once for the whole batch, and not once for each event.
fn agents_that_left(events: &[Arc<Event>], has_left: impl Fn(&str) -> bool) -> HashSet<Arc<str>> {
    let agents = events.iter().filter(|event| &*event.aggregate_type == AGENT);
    let agents: HashSet<Arc<str>> = agents.map(|event| event.aggregate_id.text()).collect();
    agents.into_iter().filter(|id| has_left(id)).collect()
}

/// Returns the time to check a lease again if the lease expired before `opened_at` and its agent may still renew it.
/// Returns `None` if the lease expired later, if it was renewed, or if the agent's time for a renewal has ended.
async fn postponed_until(
    state: &State,
    id: &AggregateId,
    (claim, seconds, until): (u64, i64, i64),
    (now_ms, opened_at): (i64, i64),
) -> Result<Option<i64>> {
    let later = opened_at.saturating_add(seconds.saturating_mul(1_000).min(GRACE_MS));
    if until >= opened_at || now_ms >= later {
        return Ok(None);
    }
    let rows = state.db.read_leases(&[id.text()]).await?;
    let renewed = rows.iter().filter(|row| row.claim == claim && !row.expired).map(|row| row.until).max();
    Ok((renewed.unwrap_or(until) < opened_at).then_some(later))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_departed_agent_is_listed_once_per_batch_of_events() {
        let event = |aggregate_type: &str, id: &str| {
            Arc::new(Event { aggregate_type: aggregate_type.into(), ..Event::sample(id, "any", 1) })
        };
        let mut events = vec![event(AGENT, "gone"); 1_000];
        events.extend([event(AGENT, "here"), event(TASK, "gone too")]);
        let left = agents_that_left(&events, |id| id.starts_with("gone"));
        assert_eq!(left.into_iter().collect::<Vec<_>>(), ["gone".into()]);
    }
}
