//! The timers of one open workspace. The timers find expired leases, ended deferrals and passed due dates in the states
//! of tasks, and append the resulting events.
//!
//! Several servers may run timers on one store. A deadline is decided against the log's end, which already contains the
//! event of the server that appended first. Timers store nothing, because the state of each task contains its
//! deadlines.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream;

use super::deadline::{self, Due, Kind};
use crate::core::State;
use crate::core::append::{Append, Appender};
use crate::core::background::{Background, Stop, Stopped};
use crate::error::{Error, Result};
use crate::model::aggregate::Aggregate;
use crate::model::builtin::TASK;
use crate::model::event::Event;
use crate::model::id::AggregateId;
use crate::model::task::{LEASE_S, Task};
use crate::store::leases::LeaseRow;

/// The number of deadlines handled concurrently.
const AT_ONCE: usize = 32;
/// The number of deadlines handled before the log is read again.
const BATCH: usize = 512;
/// The number of events processed at a time.
const PAGE: usize = 4_096;
/// The wait after an error of the store.
const PAUSE: Duration = Duration::from_secs(1);
/// The interval between two reads of the events that other servers appended.
const REFRESH: Duration = Duration::from_secs(10);
/// The time for which an agent may still renew a lease that expired before the workspace was opened, in milliseconds.
/// The agent could not renew the lease while no server ran. The time is three heartbeats.
const GRACE_MS: i64 = LEASE_S * 1_000;

/// The running timers.
pub struct Timers {
    stop: Stop,
    task: Background,
}

impl Timers {
    pub fn start(state: Arc<State>, appender: Appender) -> Timers {
        let (stop, stopped) = Stop::new();
        Timers { stop, task: Background::spawn(run(state, appender, stopped)) }
    }

    /// Stops the timers. Unfinished work is repeated at the next start.
    pub async fn stop(mut self) {
        self.stop.begin();
        if let Err(error) = self.task.ended().await {
            tracing::error!(%error, "the timers of a workspace did not end cleanly");
        }
    }
}

/// The deadlines of tasks, ordered by time.
#[derive(Default)]
struct Schedule {
    /// The deadlines by task and kind, each with the time at which it is checked, in milliseconds since the epoch. This
    /// time may be later than the deadline in the task's state.
    by_task: HashMap<Key, (i64, Due)>,
    by_time: BTreeSet<(i64, Key)>,
}

/// The id of a task, and the kind of a deadline.
type Key = (AggregateId, Kind);

impl Schedule {
    fn set(&mut self, key: Key, due: Option<(i64, Due)>) {
        if let Some((at, _)) = self.by_task.remove(&key) {
            self.by_time.remove(&(at, key.clone()));
        }
        if let Some((at, due)) = due {
            self.by_time.insert((at, key.clone()));
            self.by_task.insert(key, (at, due));
        }
    }

    fn remove(&mut self, id: &AggregateId) {
        Kind::ALL.into_iter().for_each(|kind| self.set((id.clone(), kind), None));
    }

    fn next(&self) -> Option<i64> {
        self.by_time.first().map(|(at, _)| *at)
    }

    /// Removes and returns up to [`BATCH`] deadlines whose time of check has passed.
    fn take_due(&mut self, now_ms: i64) -> Vec<(AggregateId, Due)> {
        let mut due = Vec::new();
        while due.len() < BATCH && self.next().is_some_and(|at| at <= now_ms) {
            let Some((_, key)) = self.by_time.pop_first() else { break };
            due.extend(self.by_task.remove(&key).map(|(_, what)| (key.0, what)));
        }
        due
    }
}

async fn run(state: Arc<State>, appender: Appender, mut stopped: Stopped) {
    let mut head = state.folded.head().follow();
    let mut timers = Running {
        opened_at: state.clock.now_ms(),
        state,
        appender,
        schedule: Schedule::default(),
        position: None,
        leased: HashSet::new(),
        ended: Vec::new(),
        swept: false,
    };
    while !stopped.has_begun() {
        head.borrow_and_update();
        timers.process_events();
        timers.forget_leases().await;
        let wait = match timers.process_due().await {
            Ok(true) => continue,
            Ok(false) => None,
            Err(error) => {
                tracing::warn!(%error, workspace = %timers.state.record.id, "passed deadlines could not be handled");
                Some(PAUSE)
            }
        };
        let next = timers.schedule.next();
        if wait.is_none() {
            timers.state.deadlines.tell(timers.position.unwrap_or(0), next);
        }
        tokio::select! {
            changed = head.changed(), if wait.is_none() => if changed.is_err() { return },
            () = stopped.begun() => {}
            () = timers.pass(next, wait) => {}
        }
        timers.refresh().await;
    }
}

struct Running {
    state: Arc<State>,
    appender: Appender,
    schedule: Schedule,
    /// The position up to which the log has been processed.
    position: Option<u64>,
    /// The time when these timers started, in milliseconds since the epoch. Agents could not renew leases that expired
    /// before.
    opened_at: i64,
    /// The ids of open tasks that have been claimed. The store may have lease rows of these tasks.
    leased: HashSet<AggregateId>,
    /// The ids of tasks from `leased` that have ended or were deleted.
    ended: Vec<AggregateId>,
    /// Whether the timers have removed the lease rows of tasks that ended before the start or on other servers.
    swept: bool,
}

impl Running {
    /// Processes the events that were appended since the last call.
    fn process_events(&mut self) {
        while let Some(position) = self.position {
            match self.state.folded.last_events(position, PAGE) {
                Some(events) => {
                    let Some(last) = events.last() else { return };
                    self.position = Some(last.position);
                    events.iter().for_each(|event| self.note(event));
                }
                None => self.position = None,
            }
        }
        // At the start, or if the events are no longer in memory, reads the deadlines of all tasks.
        self.schedule = Schedule::default();
        let snapshot = self.state.folded.snapshot();
        self.position = Some(snapshot.position());
        snapshot.iter().filter(|aggregate| is_task(aggregate)).for_each(|task| self.schedule_task(task));
    }

    fn note(&mut self, event: &Event) {
        if &*event.aggregate_type == TASK {
            match self.state.folded.get(event.aggregate_id.as_str()) {
                Some(task) => self.schedule_task(&task),
                None => {
                    self.schedule.remove(&event.aggregate_id);
                    self.ended.extend(self.leased.take(&event.aggregate_id));
                }
            }
        }
    }

    fn schedule_task(&mut self, task: &Aggregate) {
        for kind in Kind::ALL {
            let due = Due::of(&Task::new(task), kind).filter(|_| !task.deleted);
            if matches!(due, Some(Due::Lease { .. })) && !self.leased.contains(&task.id) {
                self.leased.insert(task.id.clone());
            }
            let key = (task.id.clone(), kind);
            // A deadline that was postponed because its lease was renewed keeps its later time.
            if self.schedule.by_task.get(&key).map(|(_, due)| *due) != due {
                let placed = due.map(|due| (due.until(), due));
                self.schedule.set(key, placed);
            }
        }
        if task.deleted || !Task::new(task).status().is_open() {
            self.ended.extend(self.leased.take(&task.id));
        }
    }

    /// Removes the lease rows of tasks that have ended.
    async fn forget_leases(&mut self) {
        let forgotten = async {
            if !self.swept {
                let kept = self.state.db.leased_tasks().await?;
                // A task with a lease row is in the log, so no such task is missing after the refresh.
                self.state.refresh().await?;
                let is_open = |id: &AggregateId| {
                    let task = self.state.folded.get(id.as_str());
                    task.is_some_and(|task| !task.deleted && Task::new(&task).status().is_open())
                };
                let (open, ended): (Vec<_>, Vec<_>) = kept.into_iter().map(AggregateId::from).partition(is_open);
                self.leased.extend(open);
                self.ended.extend(ended);
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
            tracing::debug!(%error, "the lease rows of ended tasks were not removed");
        }
    }

    /// Handles the deadlines that have passed. Returns whether there were any.
    async fn process_due(&mut self) -> Result<bool> {
        // Without deadlines, the clock is not read.
        if self.schedule.next().is_none() {
            return Ok(false);
        }
        let now_ms = self.state.clock.now_ms();
        let due = self.schedule.take_due(now_ms);
        if due.is_empty() {
            return Ok(false);
        }
        let (state, appender, opened_at) = (&self.state, &self.appender, self.opened_at);
        let results: Vec<_> = stream::iter(due)
            .map(|(id, due)| async move {
                let result = process_deadline(state, appender, &id, due, (now_ms, opened_at)).await;
                (id, due, result)
            })
            .buffer_unordered(AT_ONCE)
            .collect()
            .await;
        let mut outcome = Ok(true);
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

    /// Waits until the next deadline, or until a retry or a refresh is due.
    async fn pass(&self, next: Option<i64>, wait: Option<Duration>) {
        if let Some(wait) = wait {
            return tokio::time::sleep(wait).await;
        }
        let due = async {
            match next {
                Some(at) => self.state.clock.wait_until(at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = due => {}
            () = tokio::time::sleep(REFRESH), if !self.state.is_exclusive() => {}
        }
    }

    /// Reads events that other servers appended. This also finds the deadlines that a server did not handle before it
    /// died.
    async fn refresh(&self) {
        if let Err(error) = self.state.refresh().await {
            tracing::debug!(%error, "the timers could not read events of other servers");
        }
    }
}

fn is_task(aggregate: &Arc<Aggregate>) -> bool {
    &*aggregate.aggregate_type == TASK
}

/// Returns the time to check a lease again if it expired before these timers started, because its agent may still renew
/// it. Returns `None` if the lease expired later, or if the agent's time to renew is over.
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

/// Handles one deadline. If the deadline was postponed, returns the time to check it again.
async fn process_deadline(
    state: &State,
    appender: &Appender,
    id: &AggregateId,
    due: Due,
    (now_ms, opened_at): (i64, i64),
) -> Result<Option<i64>> {
    let mut uncounted = false;
    if let Due::Lease { claim, seconds, until } = due {
        if let Some(later) = postponed_until(state, id, (claim, seconds, until), (now_ms, opened_at)).await? {
            return Ok(Some(later));
        }
        // The lease row expires first, so that nobody can renew the lease any longer. If the agent completes the work
        // before the event below is appended, the work still counts.
        let lease = LeaseRow { task_id: id.text(), claim, until, expired: false };
        let row = appender.database().expire_lease(&lease, now_ms).await?;
        if row.claim == claim && !row.expired {
            return Ok(Some(row.until));
        }
        uncounted = row.until < opened_at;
    }
    let task_id = id.clone();
    let append = Append {
        event_ids: Vec::new(),
        request: None,
        size_bytes: 1_024,
        actor: "system".into(),
        managed: true,
        upload: None,
        decide: Box::new(move |view| {
            Ok(deadline::decide(view, task_id.as_str(), due, now_ms, uncounted).into_iter().collect())
        }),
    };
    appender.append(append).await?;
    Ok(None)
}
