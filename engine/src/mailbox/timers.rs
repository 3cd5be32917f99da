//! The timers of one open workspace: leases that end, deferrals that are over and due dates that pass, found from the states of
//! tasks and decided in the log.
//!
//! Any number of servers may run them on one store: what is due is decided against the log's end, where the first has done
//! it. Nothing is kept but in memory, since every state tells what its task waits for.

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

/// Deadlines that are seen to at once.
const AT_ONCE: usize = 32;
/// Deadlines that are seen to before the log is looked at again.
const BATCH: usize = 512;
/// Events that are taken in at a time.
const PAGE: usize = 4_096;
/// How long a timer waits after the store did not take what it wanted.
const PAUSE: Duration = Duration::from_secs(1);
/// Where other servers append too, what they did is looked for so often.
const REFRESH: Duration = Duration::from_secs(10);
/// How long an agent may renew a lease that ended before the workspace was opened, in milliseconds: three heartbeats. It could not
/// while no server ran.
const GRACE_MS: i64 = LEASE_S * 1_000;

/// The timers at work.
pub struct Timers {
    stop: Stop,
    task: Background,
}

impl Timers {
    pub fn start(state: Arc<State>, appender: Appender) -> Timers {
        let (stop, stopped) = Stop::new();
        Timers { stop, task: Background::spawn(run(state, appender, stopped)) }
    }

    /// Ends them. What they had begun with is done again at the next start.
    pub async fn stop(mut self) {
        self.stop.begin();
        if let Err(error) = self.task.ended().await {
            tracing::error!(%error, "the timers of a workspace did not end well");
        }
    }
}

/// What tasks wait for, by time.
#[derive(Default)]
struct Schedule {
    /// When each is looked at, which may be later than its state says, and what it waits for.
    by_task: HashMap<Key, (i64, Due)>,
    by_time: BTreeSet<(i64, Key)>,
}

/// A task, and one of the things that it waits for.
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

    /// Takes those out whose time has come.
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
        timers.take_in();
        timers.forget_leases().await;
        let wait = match timers.see_to_due().await {
            Ok(true) => continue,
            Ok(false) => None,
            Err(error) => {
                tracing::warn!(%error, workspace = %timers.state.record.id, "what is due was not seen to");
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
    /// Up to where the log was taken in.
    position: Option<u64>,
    /// When these timers began. What ended before, nobody could renew.
    opened_at: i64,
    /// Open tasks that were held, of which the store may have rows.
    leased: HashSet<AggregateId>,
    /// Those of them that have ended since, or are deleted.
    ended: Vec<AggregateId>,
    /// Whether the rows were removed that tasks left which ended elsewhere.
    swept: bool,
}

impl Running {
    /// Takes in what happened to tasks since the last time.
    fn take_in(&mut self) {
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
        // At the start, and where the events are in memory no more: every task tells what it waits for.
        self.schedule = Schedule::default();
        let snapshot = self.state.folded.snapshot();
        self.position = Some(snapshot.position());
        snapshot.iter().filter(|aggregate| is_task(aggregate)).for_each(|task| self.look_at(task));
    }

    fn note(&mut self, event: &Event) {
        if &*event.aggregate_type == TASK {
            match self.state.folded.get(event.aggregate_id.as_str()) {
                Some(task) => self.look_at(&task),
                None => {
                    self.schedule.remove(&event.aggregate_id);
                    self.ended.extend(self.leased.take(&event.aggregate_id));
                }
            }
        }
    }

    fn look_at(&mut self, task: &Aggregate) {
        for kind in Kind::ALL {
            let due = Due::of(&Task::new(task), kind).filter(|_| !task.deleted);
            if matches!(due, Some(Due::Lease { .. })) && !self.leased.contains(&task.id) {
                self.leased.insert(task.id.clone());
            }
            let key = (task.id.clone(), kind);
            // What was put off as it was renewed is not put back.
            if self.schedule.by_task.get(&key).map(|(_, due)| *due) != due {
                let placed = due.map(|due| (due.until(), due));
                self.schedule.set(key, placed);
            }
        }
        if task.deleted || !Task::new(task).status().is_open() {
            self.ended.extend(self.leased.take(&task.id));
        }
    }

    /// Removes the rows of leases that nobody asks for any more: those of tasks that have ended.
    async fn forget_leases(&mut self) {
        let forgotten = async {
            if !self.swept {
                let kept = self.state.log.leased_tasks().await?;
                // What has a row is in the log: no task is missing from then on.
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
                let some = self.ended.len().saturating_sub(BATCH);
                self.state.log.forget_leases(&self.ended[some..]).await?;
                self.ended.truncate(some);
            }
            Ok::<(), Error>(())
        };
        if let Err(error) = forgotten.await {
            tracing::debug!(%error, "rows of leases that have ended were not removed");
        }
    }

    /// Sees to what is due. Returns whether there was anything.
    async fn see_to_due(&mut self) -> Result<bool> {
        // Without anything to wait for, nobody asks for the time.
        if self.schedule.next().is_none() {
            return Ok(false);
        }
        let now_ms = self.state.clock.now_ms();
        let due = self.schedule.take_due(now_ms);
        if due.is_empty() {
            return Ok(false);
        }
        let (state, appender, opened_at) = (&self.state, &self.appender, self.opened_at);
        let seen: Vec<_> = stream::iter(due)
            .map(|(id, due)| async move {
                let result = see_to(state, appender, &id, due, (now_ms, opened_at)).await;
                (id, due, result)
            })
            .buffer_unordered(AT_ONCE)
            .collect()
            .await;
        let mut outcome = Ok(true);
        for (id, due, result) in seen {
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

    /// Returns when there is something to look at by the clock.
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

    /// Takes in what other servers appended: one that died leaves what is due to the others.
    async fn refresh(&self) {
        if let Err(error) = self.state.refresh().await {
            tracing::debug!(%error, "what other servers appended is not known to the timers");
        }
    }
}

fn is_task(aggregate: &Arc<Aggregate>) -> bool {
    &*aggregate.aggregate_type == TASK
}

/// When to look again at a lease that ended before these timers began: its agent may come back first. `None` where the lease
/// ended later, or the agent has had its time.
async fn put_off(
    state: &State,
    id: &AggregateId,
    (claim, seconds, until): (u64, i64, i64),
    (now_ms, opened_at): (i64, i64),
) -> Result<Option<i64>> {
    let later = opened_at.saturating_add(seconds.saturating_mul(1_000).min(GRACE_MS));
    if until >= opened_at || now_ms >= later {
        return Ok(None);
    }
    let rows = state.log.read_leases(&[id.text()]).await?;
    let renewed = rows.iter().filter(|row| row.claim == claim && !row.expired).map(|row| row.until).max();
    Ok((renewed.unwrap_or(until) < opened_at).then_some(later))
}

/// Sees to one deadline. Returns when to look again, where it was put off.
async fn see_to(
    state: &State,
    appender: &Appender,
    id: &AggregateId,
    due: Due,
    (now_ms, opened_at): (i64, i64),
) -> Result<Option<i64>> {
    let mut uncounted = false;
    if let Due::Lease { claim, seconds, until } = due {
        if let Some(later) = put_off(state, id, (claim, seconds, until), (now_ms, opened_at)).await? {
            return Ok(Some(later));
        }
        // Its row first: from then on nobody renews the lease. What the agent completes before the event below counts.
        let lease = LeaseRow { task_id: id.text(), claim, until, expired: false };
        let row = state.log.expire_lease(&lease, now_ms).await?;
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
