//! The circuit breaker of a plugin. After too many consecutive failures, the circuit opens: the plugin is no longer
//! called, so that one broken script does not delay the other plugins.
//!
//! If a failed step is retried later, only the failure of the last retry counts. Once steps for [`FAILURES`] aggregates
//! wait for a retry, the plugin is paused: it is called only for these steps. The pause ends when one of the steps
//! succeeds, when none of the steps waits for a retry any more, or when the circuit opens.
//!
//! Failures count per aggregate: a plugin that fails only on the content of one aggregate keeps running for all others.

use std::sync::Arc;

use crate::model::event::Event;
use crate::model::value::{Object, Value};

/// A plugin's circuit opens when the plugin has failed for this number of aggregates without a success in between.
pub const FAILURES: usize = 5;

/// The event and the aggregate of a plugin call.
#[derive(Debug, Clone, Copy)]
pub struct CallSubject<'a> {
    pub event: &'a Arc<Event>,
    /// The aggregate whose content the plugin processes.
    pub aggregate_id: &'a str,
}

/// The state of a plugin's circuit. The state is stored with the checkpoint and survives a crash.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Circuit {
    /// The ids of the aggregates for which the plugin failed since its last success. Contains each id once, and at most
    /// [`FAILURES`] ids.
    failing: Vec<Arc<str>>,
    /// The id of the event whose failure opened the circuit.
    opened_by: Option<Arc<str>>,
    /// The ids of the aggregates with steps that failed since the last success and are retried later. Contains each id
    /// once, and at most [`FAILURES`] ids. Not stored: after a restart of the worker, a paused plugin is called until
    /// it has failed for [`FAILURES`] aggregates again.
    retried: Vec<Arc<str>>,
    /// Whether the circuit never opens. A rebuild uses such a circuit, so that the plugin is called however often it
    /// fails.
    forced_closed: bool,
}

impl Circuit {
    /// Returns a circuit that never opens.
    pub fn forced_closed() -> Circuit {
        Circuit { forced_closed: true, ..Circuit::default() }
    }

    pub fn opened_by(&self) -> Option<&Arc<str>> {
        self.opened_by.as_ref()
    }

    pub fn is_open(&self) -> bool {
        self.opened_by.is_some()
    }

    /// Returns whether the plugin is paused, because steps for [`FAILURES`] aggregates wait for a retry. A paused
    /// plugin is called only for these steps.
    pub fn is_paused(&self) -> bool {
        self.retried.len() >= FAILURES
    }

    /// Returns the number of further aggregates for which the plugin must fail before the circuit opens. If
    /// `retries_later` is set, failures are retried later, and the result is the number before the plugin is paused.
    pub fn failures_left(&self, retries_later: bool) -> usize {
        let failed = if retries_later { self.retried.len() } else { self.failing.len() };
        if self.forced_closed { usize::MAX } else { FAILURES.saturating_sub(failed).max(1) }
    }

    /// Returns whether the plugin has failed for an aggregate since the plugin's last success. Failures of steps that
    /// are retried later do not count.
    pub fn is_failing(&self, aggregate_id: &str) -> bool {
        self.failing.iter().any(|failing| **failing == *aggregate_id)
    }

    pub fn succeeded(&mut self) {
        self.failing.clear();
        self.retried.clear();
    }

    /// Records the failure of a step that is retried later.
    pub fn postponed(&mut self, step: CallSubject<'_>) {
        add(&mut self.retried, step.aggregate_id);
    }

    /// Ends a pause. Called when none of the steps that caused the pause waits for a retry.
    pub fn end_pause(&mut self) {
        self.retried.clear();
    }

    /// Records a failure. Returns whether the failure opened the circuit.
    pub fn failed(&mut self, step: CallSubject<'_>) -> bool {
        add(&mut self.failing, step.aggregate_id);
        let opens = self.failing.len() >= FAILURES && self.opened_by.is_none() && !self.forced_closed;
        if opens {
            self.opened_by = Some(step.event.event_id.clone());
        }
        opens
    }

    /// Returns the circuit in its stored form, or `None` for a circuit without failures.
    pub fn stored(&self) -> Option<Value> {
        let failing: Vec<Value> = self.failing.iter().cloned().map(Value::from).collect();
        let has_failed = !self.failing.is_empty() || self.is_open();
        let opened_by = self.opened_by.clone();
        has_failed
            .then(|| Object::from_iter([("failing", Value::from(failing)), ("opened_by", opened_by.into())]).into())
    }

    /// Restores a circuit from the result of [`Circuit::stored`]. Older versions of the program stored the number of
    /// failures instead of the aggregates. This number is ignored, and counting starts at 0. An open circuit of an
    /// older version stays open.
    pub fn restore(stored: Option<&Value>) -> Circuit {
        let field = |name: &str| stored.and_then(Value::as_object).and_then(|stored| stored.get(name));
        let failing = field("failing").and_then(Value::as_array).unwrap_or_default();
        let failing = failing.iter().filter_map(Value::as_str).map(Arc::from).take(FAILURES).collect();
        let opened_by = field("opened_by").and_then(Value::as_str).map(Arc::from);
        Circuit { failing, opened_by, ..Circuit::default() }
    }
}

fn add(aggregates: &mut Vec<Arc<str>>, id: &str) {
    if aggregates.len() < FAILURES && !aggregates.iter().any(|known| **known == *id) {
        aggregates.push(id.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fails(circuit: &mut Circuit, aggregates: std::ops::Range<usize>) -> Vec<bool> {
        let event = Arc::new(Event::sample("a", "note.created", 1));
        aggregates.map(|id| circuit.failed(CallSubject { event: &event, aggregate_id: &format!("a{id}") })).collect()
    }

    #[test]
    fn failures_for_five_aggregates_in_a_row_open_the_circuit() {
        let mut circuit = Circuit::default();
        assert_eq!(fails(&mut circuit, 0..4), [false; 4]);
        circuit.succeeded();
        assert_eq!(fails(&mut circuit, 0..4), [false; 4]);
        assert_eq!(circuit.failures_left(false), 1);
        assert_eq!(fails(&mut circuit, 4..5), [true]);
        assert!(circuit.is_open());
        assert_eq!(fails(&mut circuit, 5..6), [false]);
    }

    #[test]
    fn repeated_failures_for_one_aggregate_count_once() {
        let mut circuit = Circuit::default();
        for _ in 0..100 {
            assert_eq!(fails(&mut circuit, 0..4), [false; 4]);
        }
        assert!(circuit.is_failing("a3") && !circuit.is_failing("a4"));
        assert_eq!(fails(&mut circuit, 4..5), [true]);
    }

    #[test]
    fn a_restored_circuit_continues_its_count() {
        let mut circuit = Circuit::default();
        fails(&mut circuit, 0..4);
        let mut restored = Circuit::restore(circuit.stored().as_ref());
        assert_eq!(restored, circuit);
        assert_eq!(fails(&mut restored, 0..4), [false; 4]);
        assert_eq!(fails(&mut restored, 4..5), [true]);
        assert_eq!(Circuit::restore(restored.stored().as_ref()), restored);
        assert_eq!(Circuit::restore(None), Circuit::default());
    }

    #[test]
    fn retried_failures_for_five_aggregates_in_a_row_pause_the_plugin_until_a_success() {
        let (mut circuit, event) = (Circuit::default(), Arc::new(Event::sample("a", "note.created", 1)));
        for id in [0, 0, 1, 2, 3] {
            circuit.postponed(CallSubject { event: &event, aggregate_id: &format!("a{id}") });
        }
        assert_eq!(
            (circuit.is_paused(), circuit.failures_left(true), circuit.failures_left(false)),
            (false, 1, FAILURES)
        );
        circuit.postponed(CallSubject { event: &event, aggregate_id: "a4" });
        assert_eq!((circuit.is_paused(), circuit.is_open(), circuit.stored()), (true, false, None));
        circuit.succeeded();
        assert!(!circuit.is_paused());
    }

    #[test]
    fn a_circuit_opened_by_an_older_version_stays_open() {
        let stored = Object::from_iter([("failures", Value::Int(5)), ("opened_by", "e".into())]).into();
        let restored = Circuit::restore(Some(&stored));
        assert_eq!((restored.is_open(), restored.failing.len()), (true, 0));
    }
}
