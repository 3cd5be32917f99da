//! The parked steps that are retried without a request: the steps of plugins with `on_error = "retry"`.
//!
//! The times of the retries are stored with the steps, so a worker that starts again finds all waiting steps.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::circuit::Circuit;
use super::circuits::Circuits;
use crate::error::Result;
use crate::state::State;
use crate::state::plugins::{PluginIndex, PluginMap};
use crate::store::workspace::parked::{ParkedStep, StepId};

/// The waits before the retries of a step, in milliseconds. A step that fails after the last wait stays parked.
const WAITS_MS: [i64; 5] = [1_000, 4_000, 16_000, 64_000, 256_000];
/// The maximum number of a plugin's steps that wait for a retry. Further failed steps are parked without a retry.
pub const MAX_WAITING: usize = 2_000;

/// Returns the time of the next retry of a step after `calls` calls, or `None` after the last retry. If the step was
/// set aside without a call, `calls` is 0, and the wait is the same as after one call.
pub fn retry_at(calls: u32, now_ms: i64) -> Option<i64> {
    let wait_ms = WAITS_MS.get(usize::try_from(calls.saturating_sub(1)).ok()?)?;
    Some(now_ms.saturating_add(*wait_ms))
}

/// A step that waits for a retry.
#[derive(Debug, Clone, Copy)]
struct Retry {
    at_ms: i64,
    /// Whether the plugin was called for the step. A step of a paused plugin is set aside without a call.
    was_called: bool,
}

impl Retry {
    /// Returns the time from which the step may be retried. If the plugin is paused and was never called for the step,
    /// returns `None`. Steps whose calls failed are retried during the pause, and show whether the plugin works again.
    fn due(self, circuit: &Circuit) -> Option<i64> {
        (self.was_called || !circuit.is_paused()).then_some(self.at_ms)
    }
}

/// The steps of one workspace that wait for a retry.
pub struct Retries {
    waiting: PluginMap<BTreeMap<StepId, Retry>>,
}

impl Retries {
    /// Restores the waiting steps of the enabled plugins from the store.
    pub async fn restore(state: &Arc<State>) -> Result<Retries> {
        let plugins = &state.plugins;
        let names: Vec<Arc<str>> = plugins.indexes().map(|plugin| plugins.name(plugin).clone()).collect();
        let mut retries = Retries { waiting: PluginMap::new(plugins, |_| BTreeMap::new()) };
        if !names.is_empty() {
            for parked in state.db.read_retried(&names, names.len() * MAX_WAITING).await? {
                retries.extend(plugins.find(&parked.id.plugin), &parked);
            }
        }
        Ok(retries)
    }

    fn extend(&mut self, plugin: Option<PluginIndex>, parked: &ParkedStep) {
        if let (Some(plugin), Some(at_ms)) = (plugin, parked.reason.retry_at) {
            self.waiting[plugin].insert(parked.id.clone(), Retry { at_ms, was_called: parked.reason.attempts > 0 });
        }
    }

    /// Records that a step of a plugin was parked. The step waits for a retry only if `parked` contains the time of a
    /// retry.
    pub fn record(&mut self, plugin: PluginIndex, parked: &ParkedStep) {
        self.remove(plugin, &parked.id);
        self.extend(Some(plugin), parked);
    }

    pub fn remove(&mut self, plugin: PluginIndex, step: &StepId) {
        self.waiting[plugin].remove(step);
    }

    /// Returns how many more steps of a plugin can wait for a retry.
    pub fn free_capacity(&self, plugin: PluginIndex) -> usize {
        MAX_WAITING.saturating_sub(self.waiting[plugin].len())
    }

    /// Returns whether the plugin was already called for a step that waits for a retry.
    pub fn has_called(&self, plugin: PluginIndex) -> bool {
        self.waiting[plugin].values().any(|retry| retry.was_called)
    }

    /// Returns all steps of a plugin that wait for a retry.
    pub fn of(&self, plugin: PluginIndex) -> Vec<StepId> {
        self.waiting[plugin].keys().cloned().collect()
    }

    /// Returns up to `most` steps whose retries are due, in log order.
    pub fn due(&self, circuits: &Circuits, now_ms: i64, most: usize) -> Vec<StepId> {
        let mut due: Vec<&StepId> = Vec::new();
        for (plugin, waiting) in self.waiting.iter() {
            let is_due = |retry: &Retry| retry.due(&circuits.by_plugin[plugin]).is_some_and(|at_ms| at_ms <= now_ms);
            due.extend(waiting.iter().filter(|(_, retry)| is_due(retry)).map(|(step, _)| step));
        }
        due.sort_unstable();
        due.into_iter().take(most).cloned().collect()
    }

    /// Returns the time of the next retry, in milliseconds since the epoch.
    pub fn next_at(&self, circuits: &Circuits) -> Option<i64> {
        let waiting = self.waiting.iter();
        waiting
            .flat_map(|(plugin, waiting)| {
                waiting.values().filter_map(move |retry| retry.due(&circuits.by_plugin[plugin]))
            })
            .min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_delays_grow_until_the_last_retry() {
        let waits: Vec<_> = (1..=6).map(|calls| retry_at(calls, 0)).collect();
        assert_eq!(waits, [Some(1_000), Some(4_000), Some(16_000), Some(64_000), Some(256_000), None]);
        assert_eq!(retry_at(0, 7), Some(1_007));
    }
}
