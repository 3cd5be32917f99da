//! Measures open workspaces at intervals: the backlog of tasks, the lag of consumers, the state of plugins, and the
//! size of files.
//!
//! The server measures at regular intervals, independently of reads of the metrics. The backlog, the number of parked
//! steps and the size of files are read again only if the value may have changed since the last reading. After each of
//! these readings there is a pause, in proportion to the time that the reading took.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::sync::Mutex;

use crate::error::{Error, Result};
use crate::mailbox::backlog::Backlog;
use crate::metric;
use crate::registry::OpenWorkspace;
use crate::state::plugins::Plugins;
use crate::state::progress::Progress;
use crate::state::{GRAPH, NODES, State};

/// The pause after a reading, as a multiple of the time that the reading took. The readings of one value therefore take
/// at most a fiftieth of the time.
const REST: u64 = 50;
/// The maximum age of a reading if other servers share the store, in microseconds. An older reading is renewed even if
/// this process has not changed the stored value, because another server may have changed the value.
const OTHERS_US: u64 = 60_000_000;

/// The last measurement of each open workspace.
pub struct Measure {
    plugins: Arc<Plugins>,
    known: Mutex<HashMap<Arc<str>, WorkspaceMeasurement>>,
}

/// The last measurement of a workspace.
#[derive(Default)]
struct WorkspaceMeasurement {
    backlog: PeriodicReading<Backlog>,
    /// The position of the log before the backlog was read. The backlog may include later events.
    position: u64,
    /// The number of parked steps by plugin.
    parked: PeriodicReading<Vec<(Arc<str>, u64)>>,
    file_bytes: PeriodicReading<u64>,
}

/// A value that is read at intervals.
#[derive(Default)]
struct PeriodicReading<T> {
    value: T,
    is_outdated: bool,
    /// The time of the last reading, in microseconds of the monotonic stopwatch.
    read_at: u64,
    /// The end of the pause after the last reading, in microseconds of the monotonic stopwatch.
    rests_until: u64,
}

/// The totals over all open workspaces: the sums of the counts, the oldest times, and the greatest lags.
#[derive(Default)]
struct MeasurementTotal {
    counts: HashMap<&'static str, u64>,
    oldest_for_human: Option<i64>,
    oldest_for_agent: Option<i64>,
    parked: HashMap<Arc<str>, u64>,
    stopped: HashMap<Arc<str>, u64>,
    file_bytes: u64,
    /// The greatest lag of each consumer: the number of events that the consumer has not processed, and the age of the
    /// first of these events in milliseconds. The two values may come from different workspaces.
    lags: HashMap<&'static str, (u64, i64)>,
}

impl Measure {
    pub fn new(plugins: Arc<Plugins>) -> Measure {
        for name in plugins.indexes().map(|plugin| plugins.name(plugin)) {
            for counter in [metric::STEPS_PARKED, metric::PLUGIN_ERRORS, metric::PLUGIN_OPERATIONS] {
                counter.add(&[name], 0);
            }
        }
        Measure { plugins, known: Mutex::default() }
    }

    /// Measures the open workspaces and sets the metrics. If a stored value cannot be read, its last reading stays. If
    /// a lag cannot be read, the lag is left out.
    pub async fn refresh(&self, usage: Vec<OpenWorkspace>, now_ms: i64) {
        let mut known = self.known.lock().await;
        known.retain(|id, _| usage.iter().any(|usage| usage.id == *id));
        let mut total = MeasurementTotal::default();
        for OpenWorkspace { id, state, .. } in usage {
            let workspace = known.entry(id.clone()).or_default();
            if let Err(error) = workspace.refresh(&state).await {
                tracing::debug!(%error, workspace = %id, "failed to measure a workspace");
            }
            total.add(workspace, &state);
            for (name, progress) in [(GRAPH, &state.graph_progress), (NODES, &state.nodes_progress)] {
                match lag(&state, progress, now_ms).await {
                    Ok(lag) => total.note_lag(name, lag),
                    Err(error) => {
                        tracing::debug!(%error, workspace = %id, consumer = name, "failed to measure a consumer's lag")
                    }
                }
            }
        }
        total.report(&self.plugins, now_ms);
    }
}

impl WorkspaceMeasurement {
    async fn refresh(&mut self, state: &Arc<State>) -> Result<()> {
        let now_us = state.clock.monotonic_us();
        let elapsed = || state.clock.monotonic_us().saturating_sub(now_us);
        let position = state.folded.position();
        self.backlog.is_outdated |= self.position != position;
        if self.backlog.is_due(now_us, true) {
            let read = state.clone();
            let backlog = tokio::task::spawn_blocking(move || Backlog::read(&read.folded));
            let backlog = backlog.await.map_err(Error::internal)?;
            self.backlog.set(backlog, now_us, elapsed());
            self.position = position;
        }
        let is_alone = state.is_exclusive();
        self.parked.is_outdated |= state.plugins.take_parking_changed();
        if self.parked.is_due(now_us, is_alone) {
            let began = elapsed();
            let parked = state.db.count_parked().await?;
            self.parked.set(parked, now_us, elapsed().saturating_sub(began));
        }
        self.file_bytes.is_outdated |= state.storage.take_changed().await;
        if self.file_bytes.is_due(now_us, is_alone) {
            let began = elapsed();
            let bytes = state.db.used_bytes().await?;
            self.file_bytes.set(bytes, now_us, elapsed().saturating_sub(began));
        }
        Ok(())
    }
}

impl<T> PeriodicReading<T> {
    /// Returns whether the value must be read again now.
    fn is_due(&self, now_us: u64, is_alone: bool) -> bool {
        let may_differ = !is_alone && now_us.saturating_sub(self.read_at) >= OTHERS_US;
        (self.is_outdated || may_differ) && now_us >= self.rests_until
    }

    fn set(&mut self, value: T, now_us: u64, took_us: u64) {
        let rests_until = now_us.saturating_add(took_us.saturating_mul(REST));
        *self = PeriodicReading { value, is_outdated: false, read_at: now_us, rests_until };
    }
}

/// Returns the number of events after a consumer's position, and the age of the first of these events in milliseconds.
async fn lag(state: &State, progress: &Progress, now_ms: i64) -> Result<(u64, i64)> {
    let position = progress.position();
    let events = state.folded.position().saturating_sub(position);
    if events == 0 {
        return Ok((0, 0));
    }
    let first = state.events_after(position, 1).await?;
    let age_ms = first.first().map_or(0, |event| now_ms.saturating_sub(event.recorded_at).max(0));
    Ok((events, age_ms))
}

impl MeasurementTotal {
    fn add(&mut self, known: &WorkspaceMeasurement, state: &State) {
        let backlog = &known.backlog.value;
        for (status, count) in backlog.counts() {
            *self.counts.entry(status.name()).or_default() += count;
        }
        self.oldest_for_human = [self.oldest_for_human, backlog.oldest_for_human].into_iter().flatten().min();
        self.oldest_for_agent = [self.oldest_for_agent, backlog.oldest_for_agent].into_iter().flatten().min();
        for (plugin, steps) in &known.parked.value {
            *self.parked.entry(plugin.clone()).or_default() += steps;
        }
        for plugin in state.plugins.indexes().filter(|plugin| state.plugins.is_stopped(*plugin)) {
            *self.stopped.entry(state.plugins.name(plugin).clone()).or_default() += 1;
        }
        self.file_bytes += known.file_bytes.value;
    }

    fn note_lag(&mut self, consumer: &'static str, (events, age_ms): (u64, i64)) {
        let (most_events, greatest_age) = self.lags.entry(consumer).or_default();
        *most_events = events.max(*most_events);
        *greatest_age = age_ms.max(*greatest_age);
    }

    fn report(self, plugins: &Plugins, now_ms: i64) {
        for status in Backlog::statuses().map(|status| status.name()) {
            metric::TASKS_OPEN.set(&[status], self.counts.get(status).copied().unwrap_or(0) as f64);
        }
        for (party, oldest) in [("human", self.oldest_for_human), ("agent", self.oldest_for_agent)] {
            let age_ms = oldest.map_or(0, |oldest| now_ms.saturating_sub(oldest).max(0));
            metric::TASKS_OLDEST_SECONDS.set(&[party], age_ms as f64 / 1e3);
        }
        for name in plugins.indexes().map(|plugin| plugins.name(plugin)) {
            metric::PARKED_STEPS.set(&[name], self.parked.get(name).copied().unwrap_or(0) as f64);
            metric::PLUGIN_STOPPED.set(&[name], self.stopped.get(name).copied().unwrap_or(0) as f64);
        }
        metric::FILE_BYTES.set(&[], self.file_bytes as f64);
        for consumer in [GRAPH, NODES] {
            let (events, age_ms) = self.lags.get(consumer).copied().unwrap_or_default();
            metric::LAG_EVENTS.set(&[consumer], events as f64);
            metric::LAG_SECONDS.set(&[consumer], age_ms as f64 / 1e3);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_value_is_measured_again_after_a_pause_proportional_to_its_cost() {
        let mut reading = PeriodicReading::default();
        assert!(!reading.is_due(0, true), "the value has not changed");
        reading.is_outdated = true;
        assert!(reading.is_due(0, true));
        reading.set(7, 1_000, 10);
        assert!(!reading.is_due(1_000_000, true), "the value has not changed since the reading");
        reading.is_outdated = true;
        assert!(!reading.is_due(1_000 + 10 * REST - 1, true), "the pause has not ended");
        assert!(reading.is_due(1_000 + 10 * REST, true));
    }

    #[test]
    fn a_value_that_other_servers_may_change_is_measured_again_after_a_minute() {
        let mut reading = PeriodicReading::default();
        reading.set(7, 1_000, 1);
        assert!(!reading.is_due(OTHERS_US, false));
        assert!(reading.is_due(1_000 + OTHERS_US, false) && !reading.is_due(1_000 + OTHERS_US, true));
    }

    #[test]
    fn every_consumer_and_every_status_of_open_tasks_has_a_metric_series_from_the_start() {
        let statuses: Vec<_> = Backlog::statuses().map(|status| status.name()).collect();
        let initial: Vec<_> = metric::TASKS_OPEN.initial.iter().flat_map(|values| values.iter().copied()).collect();
        assert_eq!(statuses, initial);
        for consumer in [GRAPH, NODES] {
            assert!(metric::LAG_SECONDS.initial.contains(&&[consumer][..]));
        }
    }
}
