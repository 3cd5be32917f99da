//! Parking: a step that failed is put aside with its reason, and the log goes on.

use std::sync::Arc;

use super::attempt::Attempt;
use super::circuit::Circuit;
use super::dispatch::{self, Given};
use super::worker::Worker;
use super::world::Seen;
use crate::error::Result;
use crate::hook::{Failure, Hook};
use crate::model::event::Event;
use crate::model::facts::{Assignee, Priority};
use crate::model::value::Object;
use crate::store::parked::{Parked, Reason, StepId};

/// The kind of a step that was not tried: its plugin's circuit was open.
const CIRCUIT_OPEN: &str = "circuit_open";

impl Worker {
    /// What a call gave, if it gave anything; what failed is put aside.
    pub fn settle<T>(&mut self, place: usize, hook: Hook, seen: &Seen, attempt: Attempt<T>) -> Option<T> {
        match attempt {
            Attempt::Done(value) => return Some(value),
            Attempt::Skipped => {}
            Attempt::Failed { failure, attempts, opened } => {
                self.park(place, hook, &seen.event, failure, attempts);
                if opened {
                    self.opened.push((place, seen.event.clone()));
                }
            }
            Attempt::Refused => {
                let opened_by = self.circuits.get(place).and_then(Circuit::opened_by);
                let opened_by = opened_by.map(|event| format!(" by the event {event}")).unwrap_or_default();
                let message = format!("the plugin is stopped: its circuit was opened{opened_by}");
                let mut parked = self.parked(place, hook, &seen.event, message);
                parked.reason.kind = CIRCUIT_OPEN.into();
                self.unwritten.parked.push(parked);
            }
        }
        None
    }

    /// Puts a step aside whose effects were refused; any other failure is the batch's.
    pub fn accept(&mut self, place: usize, hook: Hook, seen: &Seen, result: Result<()>) -> Result<()> {
        let Err(error) = result else { return Ok(()) };
        let Some(failure) = dispatch::refusal(&error) else { return Err(error) };
        self.park(place, hook, &seen.event, failure, 1);
        Ok(())
    }

    pub fn park(&mut self, place: usize, hook: Hook, event: &Event, failure: Failure, attempts: u32) {
        let name = self.open.plugins.name(place);
        tracing::warn!(plugin = %name, hook = hook.name(), event = %event.event_id, %failure, "step parked");
        metrics::counter!("foldwork_steps_parked_total", "plugin" => name.to_string()).increment(1);
        let mut parked = self.parked(place, hook, event, failure.message);
        let (line, column) = (failure.line, failure.column);
        parked.reason = Reason { kind: failure.kind.name().into(), line, column, attempts, ..parked.reason };
        self.unwritten.parked.push(parked);
    }

    fn parked(&self, place: usize, hook: Hook, event: &Event, message: String) -> Parked {
        let about = self.open.plugins.get(place);
        let reason = Reason {
            event_id: event.event_id.clone(),
            aggregate_id: event.aggregate_id.text(),
            event_type: event.event_type.clone(),
            kind: Arc::default(),
            message,
            line: None,
            column: None,
            version: about.map(|about| about.version.clone()).unwrap_or_default(),
            attempts: 0,
            parked_at: self.open.clock.now_ms(),
        };
        let plugin = self.open.plugins.name(place);
        Parked { id: StepId { position: event.position, hook: hook.name().into(), plugin }, reason }
    }

    /// A task for the owner of the workspace: a plugin was stopped.
    pub async fn tell_owner(&self, place: usize, event: &Event) -> Result<()> {
        let name = self.open.plugins.name(place);
        let given = Given {
            title: format!("The plugin {name} is stopped after {} failures in a row", super::circuit::FAILURES),
            assignee: Assignee::User(self.open.record.owner_id.clone()),
            priority: Priority::High,
            due_at: None,
        };
        let metadata = Object::from_iter([("plugin", name.clone())]);
        let task = dispatch::new_task(event, None, &name, given, metadata);
        dispatch::append(&self.appender, &name, vec![task]).await
    }
}
