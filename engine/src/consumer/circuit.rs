//! The circuit of a plugin: open after too many failures in a row, so that one bad script does not hold up the rest.
//!
//! Failures count by aggregate: a plugin that one aggregate's content stops goes on with all others.

use std::sync::Arc;

use crate::model::value::{Object, Value};

/// Aggregates for which a plugin fails one after the other, with no success in between, until its circuit opens.
pub const FAILURES: usize = 5;

/// What a call of a plugin was about.
#[derive(Debug, Clone, Copy)]
pub struct Step<'a> {
    pub event_id: &'a Arc<str>,
    /// The aggregate whose content the plugin works on.
    pub aggregate_id: &'a str,
}

/// Kept with the checkpoint: after a crash it is where it was.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Circuit {
    /// Aggregates for which the plugin failed since it succeeded last, each once; at most [`FAILURES`].
    failing: Vec<Arc<str>>,
    /// The event whose failure opened it.
    opened_by: Option<Arc<str>>,
    /// It never opens: whoever repairs what a broken plugin did calls it however often it fails.
    forced_closed: bool,
}

impl Circuit {
    /// One that never opens.
    pub fn forced_closed() -> Circuit {
        Circuit { forced_closed: true, ..Circuit::default() }
    }

    pub fn opened_by(&self) -> Option<&Arc<str>> {
        self.opened_by.as_ref()
    }

    pub fn is_open(&self) -> bool {
        self.opened_by.is_some()
    }

    /// Failures that it still bears, if each is for another aggregate.
    pub fn bears(&self) -> usize {
        if self.forced_closed { usize::MAX } else { FAILURES.saturating_sub(self.failing.len()).max(1) }
    }

    /// Whether the plugin failed for an aggregate since it succeeded last.
    pub fn is_failing(&self, aggregate_id: &str) -> bool {
        self.failing.iter().any(|failing| **failing == *aggregate_id)
    }

    pub fn succeeded(&mut self) {
        self.failing.clear();
    }

    /// Returns whether this failure opened it.
    pub fn failed(&mut self, step: Step<'_>) -> bool {
        if self.failing.len() < FAILURES && !self.is_failing(step.aggregate_id) {
            self.failing.push(step.aggregate_id.into());
        }
        let opens = self.failing.len() >= FAILURES && self.opened_by.is_none() && !self.forced_closed;
        if opens {
            self.opened_by = Some(step.event_id.clone());
        }
        opens
    }

    /// As it is stored; nothing where there is nothing to say.
    pub fn stored(&self) -> Option<Value> {
        let failing: Vec<Value> = self.failing.iter().cloned().map(Value::from).collect();
        let opened_by = self.opened_by.clone();
        (*self != Circuit::default())
            .then(|| Object::from_iter([("failing", Value::from(failing)), ("opened_by", opened_by.into())]).into())
    }

    /// Reads what [`Circuit::stored`] wrote. A count of failures without their aggregates, as older versions wrote it, says
    /// too little and begins anew.
    pub fn restore(stored: Option<&Value>) -> Circuit {
        let field = |name: &str| stored.and_then(Value::as_object).and_then(|stored| stored.get(name));
        let failing = field("failing").and_then(Value::as_array).unwrap_or_default();
        let failing = failing.iter().filter_map(Value::as_str).map(Arc::from).take(FAILURES).collect();
        let opened_by = field("opened_by").and_then(Value::as_str).map(Arc::from);
        Circuit { failing, opened_by, forced_closed: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fails(circuit: &mut Circuit, aggregates: std::ops::Range<usize>) -> Vec<bool> {
        let event: Arc<str> = "e".into();
        aggregates.map(|id| circuit.failed(Step { event_id: &event, aggregate_id: &format!("a{id}") })).collect()
    }

    #[test]
    fn failures_for_five_aggregates_in_a_row_open_it_and_no_fewer() {
        let mut circuit = Circuit::default();
        assert_eq!(fails(&mut circuit, 0..4), [false; 4]);
        circuit.succeeded();
        assert_eq!(fails(&mut circuit, 0..4), [false; 4]);
        assert_eq!(circuit.bears(), 1);
        assert_eq!(fails(&mut circuit, 4..5), [true]);
        assert!(circuit.is_open());
        assert_eq!(fails(&mut circuit, 5..6), [false]);
    }

    #[test]
    fn one_aggregate_counts_once_however_often_it_fails() {
        let mut circuit = Circuit::default();
        for _ in 0..100 {
            assert_eq!(fails(&mut circuit, 0..4), [false; 4]);
        }
        assert!(circuit.is_failing("a3") && !circuit.is_failing("a4"));
        assert_eq!(fails(&mut circuit, 4..5), [true]);
    }

    #[test]
    fn what_is_stored_counts_on_after_a_restart() {
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
    fn a_circuit_that_an_older_version_opened_stays_open() {
        let stored = Object::from_iter([("failures", Value::Int(5)), ("opened_by", "e".into())]).into();
        let restored = Circuit::restore(Some(&stored));
        assert_eq!((restored.is_open(), restored.failing.len()), (true, 0));
    }
}
