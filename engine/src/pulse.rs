//! The pulse: at short intervals, one query reads the progress that the other servers of a store have made in all
//! workspaces. The pulse also reports to the other servers that this server is alive, and how far its workspaces have
//! progressed.
//!
//! No append and no read depends on the pulse: every append, and every read that must see other servers' writes, checks
//! the end of the workspace's own log. The pulse wakes the readers that wait, sets the clock to the store's time, and
//! finds the workspaces whose leader is no longer alive.
//!
//! # Several servers
//!
//! Servers on one SurrealDB are equal. Nothing depends on which server a request reaches.
//!
//! * **The log decides.** Every append is committed under the guard on `head:log`. If another server has appended
//!   first, the commit fails, and the server that tried the commit reads the new events and decides again. A server
//!   rejects an append only if the server's view is current.
//! * **Reads compare the head** in one query, which concurrent reads share (`shared_check.rs`): a read may share
//!   only a check that began after the read. `?consistency=eventual` skips the check.
//! * **The leader** (`state/leadership.rs`) runs plugins, timers and snapshots. Each write of the leader names the
//!   leader's epoch, so the store rejects the writes of a former leader that was suspended while another server took
//!   over. If no query of a server's pulse succeeds for a while, other servers may count the server as stopped, so the
//!   server reads the leader from the store again. Other servers apply the leader's writes of the graph
//!   (`consumer/graph/mirror.rs`). A server opens workspaces whose recorded leader is not alive.
//! * **A store that does not respond** (`store/availability.rs`): after a lost connection or a failed check, requests
//!   fail immediately until a check succeeds. The outcome of an unanswered write is unknown, so the next decision reads
//!   the log first. A transaction that begins late writes nothing (`store/deadline.rs`).

mod catch_ups;

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use catch_ups::{CatchUps, Cause};
use futures_util::FutureExt;
use parking_lot::Mutex;
use rustc_hash::FxHashSet;
use tokio::task::AbortHandle;
use tokio::time::{Instant, MissedTickBehavior, interval};

use crate::clock::Clock;
use crate::error::Result;
use crate::metric;
use crate::registry::OpenWorkspace;
use crate::state::State;
use crate::state::peers::{Peers, PendingReport};
use crate::store::control::servers::{Beat, SCHEMA};
use crate::store::{Database, Store};

/// The minimum time between two reports that this server is alive. After each report, the server also looks for
/// workspaces whose leader is no longer alive.
const REPORT_AFTER: Duration = Duration::from_secs(2);
/// The maximum number of workspaces whose leader is no longer alive that the server opens after each report.
const TAKEN_OVER: usize = 8;
/// The maximum duration of a query that sets the clock. During a longer query, the process or the store may have been
/// suspended, so the moment at which the store read its clock is unknown.
const MAX_SAMPLE: Duration = Duration::from_secs(2);
/// The pause after each report, in which further progress is collected.
const GATHER: Duration = Duration::from_millis(5);
/// The pause after a failed report.
const PAUSE: Duration = Duration::from_millis(500);
/// The time after which the log of an open workspace is checked even if no server has reported progress and no server
/// has stopped. The check finds changes that the queries of the pulse have missed because another server reported the
/// changes late.
const CHECK_AFTER: Duration = Duration::from_secs(120);
/// The maximum number of workspaces that are checked after one query.
const CHECKS: usize = 16;

/// The exchange of progress reports with the other servers of a store.
pub struct Pulse {
    control: Database,
    peers: Arc<Peers>,
    clock: Arc<dyn Clock>,
    /// The start of this server according to the store's clock, in milliseconds since the epoch.
    begun_at: i64,
    /// Whether a server of a newer version was seen on the store.
    is_outdated: AtomicBool,
    /// The interval between two queries.
    interval: Duration,
    tasks: Mutex<Vec<AbortHandle>>,
    /// The lock that is held while a report is written, so that [`Pulse::end`] does not interrupt a report.
    reporting: tokio::sync::Mutex<()>,
}

/// The open workspaces that are checked, and the time of the last check of each.
type Checked = HashMap<Arc<str>, Instant>;

impl Pulse {
    /// Creates the pulse and reports that this server is alive. Returns `None` if no other process writes to the store.
    pub async fn begin(store: &Store, clock: Arc<dyn Clock>, interval: Duration) -> Result<Option<Arc<Pulse>>> {
        if store.is_exclusive() {
            return Ok(None);
        }
        let control = store.control().await?;
        let peers = Arc::new(Peers::new(clock.new_id().to_string().into()));
        let (is_outdated, tasks, reporting) = Default::default();
        let mut pulse = Pulse { control, peers, clock, begun_at: i64::MAX, is_outdated, interval, tasks, reporting };
        pulse.begun_at = pulse.beat(true, i64::MAX).await?.now_ms;
        Ok(Some(Arc::new(pulse)))
    }

    pub fn peers(&self) -> &Arc<Peers> {
        &self.peers
    }

    /// Returns the time since the last successful query, in seconds.
    pub fn age_s(&self) -> f64 {
        self.peers.beat_age(Instant::now()).as_secs_f64()
    }

    /// Starts two tasks: one reads the progress of the other servers, and one reports the progress of this server.
    /// `open` returns the open workspaces, or `None` if the engine was dropped. `take_over` opens workspaces whose
    /// leader is no longer alive.
    pub fn spawn(
        self: Arc<Self>,
        open: impl Fn() -> Option<Vec<OpenWorkspace>> + Send + Sync + 'static,
        take_over: impl Fn(Vec<Arc<str>>) + Send + Sync + 'static,
    ) {
        let reporting = tokio::spawn(self.clone().keep_reporting());
        let reading = tokio::spawn({
            let pulse = self.clone();
            let reporter = reporting.abort_handle();
            async move {
                pulse.keep_reading(open, take_over).await;
                reporter.abort();
            }
        });
        *self.tasks.lock() = vec![reading.abort_handle(), reporting.abort_handle()];
    }

    /// Queries the store at each interval. Starts catch-ups of the workspaces that other servers have changed or that
    /// are due for a check, and passes the workspaces whose leader is no longer alive to `take_over`. The function
    /// returns after the engine is dropped. This can take until the next report that this server is alive.
    async fn keep_reading(&self, open: impl Fn() -> Option<Vec<OpenWorkspace>>, take_over: impl Fn(Vec<Arc<str>>)) {
        let mut ticks = interval(self.interval);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let catch_ups: Arc<CatchUps> = Arc::default();
        let (mut since, mut checked) = (self.begun_at, Checked::new());
        let mut reported_at: Option<Instant> = None;
        // Whether further workspaces may be due for a check.
        let mut has_more = false;
        loop {
            ticks.tick().await;
            let reports = reported_at.is_none_or(|at| at.elapsed() >= REPORT_AFTER);
            let beat = match self.beat(reports, since).await {
                Ok(beat) => beat,
                Err(error) => {
                    tracing::debug!(%error, "failed to read the progress of other servers");
                    if open().is_none() {
                        return;
                    }
                    continue;
                }
            };
            // Uses the store's time even if its clock was set back, because later changes have times of the same clock.
            since = beat.now_ms;
            if reports {
                reported_at = Some(Instant::now());
                match self.control.workspaces_left(&self.peers.alive(), TAKEN_OVER).await {
                    Ok(left) if left.is_empty() => {}
                    Ok(left) => take_over(left),
                    Err(error) => tracing::debug!(%error, "failed to read the workspaces without a leader"),
                }
            }
            let now = Instant::now();
            beat.changed.iter().for_each(|(id, progress)| catch_ups.add(id, Cause::Progress(*progress)));
            // Listing thousands of open workspaces costs more than a query that finds no progress.
            if !reports && !has_more && !catch_ups.has_due(now) {
                continue;
            }
            let Some(usage) = open() else { return };
            let due = due(&mut checked, usage.iter().map(|open| &open.id), self.peers.lost_at(), now);
            has_more = due.len() == CHECKS;
            due.iter().for_each(|id| catch_ups.add(id, Cause::Check));
            for OpenWorkspace { id, state, .. } in usage {
                let Some(cause) = catch_ups.begin(&id, now) else { continue };
                let catch_ups = catch_ups.clone();
                tokio::spawn(async move {
                    let caught_up = AssertUnwindSafe(catch_up(&state, cause)).catch_unwind().await;
                    catch_ups.end(&id, (!caught_up.unwrap_or(false)).then_some(cause), Instant::now());
                });
            }
            catch_ups.remove_due(now);
        }
    }

    async fn beat(&self, reports: bool, since: i64) -> Result<Beat> {
        let began = Instant::now();
        let beat = self.control.beat(&self.peers.server_id, reports, since).await?;
        let ended = Instant::now();
        if let Some(now_ms) = sample(beat.now_ms, ended - began) {
            self.clock.set_time(now_ms);
            self.control.set_time(now_ms);
        }
        if let Some(before) = self.peers.set_alive(beat.servers.clone(), ended) {
            metric::PULSE_SECONDS.record(&[], (ended - before).as_secs_f64());
        }
        if beat.schema > SCHEMA && !self.is_outdated.swap(true, Ordering::Relaxed) {
            tracing::error!(
                "a server of a newer version uses this store; stop this server and start the newer version"
            );
        }
        Ok(beat)
    }

    async fn keep_reporting(self: Arc<Self>) {
        loop {
            self.peers.advanced().await;
            let reporting = self.reporting.lock().await;
            let reported = self.report().await;
            drop(reporting);
            if let Err(error) = reported {
                tracing::debug!(%error, "failed to report progress to the other servers");
                tokio::time::sleep(PAUSE).await;
            }
            tokio::time::sleep(GATHER).await;
        }
    }

    /// Writes progress and leaders to the store. Entries that cannot be written are kept for the next report.
    async fn report(&self) -> Result<()> {
        let PendingReport { progress, leaders } = self.peers.take_unreported();
        let mut failed = None;
        if !progress.is_empty()
            && let Err(error) = self.control.report_progress(&progress).await
        {
            progress.iter().for_each(|(id, progress)| self.peers.advance(id, *progress));
            failed = Some(error);
        }
        if !leaders.is_empty()
            && let Err(error) = self.control.note_leaders(&leaders).await
        {
            self.peers.put_back_leaders(leaders);
            failed = Some(error);
        }
        failed.map_or(Ok(()), |error| Err(error.into()))
    }

    /// Stops the tasks of the pulse, and writes a last report. If the report succeeds, removes this server from the
    /// store, so that other servers can take over the workspaces of this server immediately.
    pub async fn end(&self) {
        // An abort of the reading task loses nothing. An abort during a report would lose the report and its notes of
        // leaders.
        let _reporting = self.reporting.lock().await;
        self.tasks.lock().drain(..).for_each(|task| task.abort());
        let ended = match self.report().await {
            Ok(()) => self.control.forget_server(&self.peers.server_id).await.map_err(Into::into),
            Err(error) => Err(error),
        };
        if let Err(error) = ended {
            tracing::debug!(%error, "failed to report the stop of this server to the other servers");
        }
    }
}

/// Returns the store's current time. `read_ms` is the time that a query has just read from the store's clock, and
/// `took` is the duration of the query. Assumes that the store read its clock in the middle of the query. Returns
/// `None` if the query took too long for this assumption.
fn sample(read_ms: i64, took: Duration) -> Option<i64> {
    let half_ms = i64::try_from(took.as_millis() / 2).unwrap_or_default();
    (took <= MAX_SAMPLE).then(|| read_ms.saturating_add(half_ms))
}

/// Returns at most `CHECKS` open workspaces that are due for a check, and notes that they are checked now. A workspace
/// is due if its last check was at least `CHECK_AFTER` ago. A workspace is also due if it has not been checked since
/// another server stopped at `lost_at`. The stopped server may have appended events without a report. A workspace
/// without an entry in `checked` counts as checked now.
fn due<'o>(
    checked: &mut Checked,
    open: impl ExactSizeIterator<Item = &'o Arc<str>> + Clone,
    lost_at: Option<Instant>,
    now: Instant,
) -> Vec<Arc<str>> {
    let mut due = Vec::new();
    for id in open.clone() {
        let last = match checked.get_mut(id) {
            Some(last) => last,
            None => checked.entry(id.clone()).or_insert(now),
        };
        let is_due = now.duration_since(*last) >= CHECK_AFTER || lost_at.is_some_and(|lost_at| *last <= lost_at);
        if due.len() < CHECKS && is_due {
            *last = now;
            due.push(id.clone());
        }
    }
    // Every open workspace has an entry, so further entries belong to workspaces that were closed.
    if checked.len() > open.len() {
        let open: FxHashSet<&Arc<str>> = open.collect();
        checked.retain(|id, _| open.contains(id));
    }
    due
}

/// Reads the events and definitions that other servers have added to a workspace. Returns whether the events and
/// definitions could be read.
async fn catch_up(state: &State, cause: Cause) -> bool {
    let learned = match cause {
        Cause::Progress(progress) => state.apply_progress(progress).await,
        Cause::Check => state.refresh().await,
    };
    if let Err(error) = &learned {
        tracing::debug!(
            %error, workspace = %state.record.id,
            "failed to read the events and definitions of other servers"
        );
    }
    learned.is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::SystemClock;
    use crate::store::control::servers::WorkspaceProgress;
    use crate::store::workspace::leader::Leader;

    #[test]
    fn a_limited_number_of_workspaces_is_checked_after_each_query() {
        let open: Vec<Arc<str>> = (0..=CHECKS).map(|id| id.to_string().into()).collect();
        let (begin, mut checked) = (Instant::now(), Checked::new());
        assert!(due(&mut checked, open.iter(), None, begin).is_empty());
        let later = begin + CHECK_AFTER;
        assert_eq!(due(&mut checked, open.iter(), None, later), open[..CHECKS]);
        assert_eq!(due(&mut checked, open[1..].iter(), None, later), open[CHECKS..]);
        assert_eq!(checked.len(), CHECKS);
        assert!(due(&mut checked, open.iter(), None, later).is_empty());
    }

    #[test]
    fn open_workspaces_are_checked_once_after_a_server_stops() {
        let open: [Arc<str>; 2] = ["a".into(), "b".into()];
        let (begin, mut checked) = (Instant::now(), Checked::new());
        assert!(due(&mut checked, open[..1].iter(), None, begin).is_empty());
        let lost_at = begin + Duration::from_secs(1);
        let later = lost_at + Duration::from_secs(1);
        assert_eq!(due(&mut checked, open.iter(), Some(lost_at), later), open[..1]);
        assert!(due(&mut checked, open.iter(), Some(lost_at), later).is_empty());
    }

    #[tokio::test]
    async fn ending_the_pulse_does_not_interrupt_a_report() {
        let store = Store::connect("mem://").await.expect("memory").share();
        let control = store.control().await.expect("a database");
        for yields in 0..40 {
            let begun = Pulse::begin(&store, Arc::new(SystemClock), Duration::from_millis(1)).await;
            let pulse = begun.expect("a start of the pulse").expect("a shared store");
            pulse.clone().spawn(|| Some(Vec::new()), |_| {});
            let (workspace, server) = (format!("w{yields}").into(), Some(pulse.peers().server_id.clone()));
            pulse.peers().advance(&workspace, WorkspaceProgress { position: 1, ..WorkspaceProgress::default() });
            pulse.peers().note_leader(&workspace, Leader { server, epoch: 1 });
            for _ in 0..yields {
                tokio::task::yield_now().await;
            }
            pulse.end().await;
            let left = control.workspaces_left(&[], 1_000).await.expect("read");
            assert_eq!(left.len(), yields + 1, "after {yields} yields");
        }
    }

    #[test]
    fn the_clock_is_set_to_the_queried_time_plus_half_the_duration_of_the_query() {
        assert_eq!(sample(1_000, Duration::from_millis(50)), Some(1_025));
        assert_eq!(sample(1_000, Duration::from_secs(15)), None);
    }
}
