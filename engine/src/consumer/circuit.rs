//! The circuit of a plugin: open after too many failures in a row, so that one bad script does not hold up the rest.

use std::sync::Arc;

use crate::model::value::{Object, Value};

/// Failures in a row that open it.
pub const FAILURES: usize = 5;

/// Kept with the checkpoint: after a crash it is where it was.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Circuit {
    failures: usize,
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

    /// Failures that it still bears.
    pub fn bears(&self) -> usize {
        if self.forced_closed { usize::MAX } else { FAILURES.saturating_sub(self.failures).max(1) }
    }

    pub fn succeeded(&mut self) {
        self.failures = 0;
    }

    /// Returns whether this failure opened it.
    pub fn failed(&mut self, event_id: &Arc<str>) -> bool {
        self.failures += 1;
        let opens = self.failures >= FAILURES && self.opened_by.is_none() && !self.forced_closed;
        if opens {
            self.opened_by = Some(event_id.clone());
        }
        opens
    }

    /// As it is stored; nothing where there is nothing to say.
    pub fn stored(&self) -> Option<Value> {
        let opened_by = self.opened_by.clone();
        (*self != Circuit::default()).then(|| {
            Object::from_iter([("failures", Value::from(self.failures as i64)), ("opened_by", opened_by.into())]).into()
        })
    }

    pub fn restore(stored: Option<&Value>) -> Circuit {
        let stored = stored.and_then(Value::as_object);
        let failures = stored.and_then(|stored| stored.get("failures")).and_then(Value::as_int).unwrap_or(0);
        let opened_by = stored.and_then(|stored| stored.get("opened_by")).and_then(Value::as_str).map(Arc::from);
        Circuit { failures: usize::try_from(failures).unwrap_or(0), opened_by, forced_closed: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_failures_in_a_row_open_it_and_no_fewer() {
        let event: Arc<str> = "e".into();
        let mut circuit = Circuit::default();
        assert!((0..4).all(|_| !circuit.failed(&event)));
        circuit.succeeded();
        assert!((0..4).all(|_| !circuit.failed(&event)));
        assert_eq!(circuit.bears(), 1);
        assert!(circuit.failed(&event) && circuit.is_open());
        assert!(!circuit.failed(&event));
        assert_eq!(Circuit::restore(circuit.stored().as_ref()), circuit);
        assert_eq!(Circuit::restore(None), Circuit::default());
    }
}
