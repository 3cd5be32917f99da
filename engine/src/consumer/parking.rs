//! Parking: a step that failed is put aside with its reason, and the log goes on.

use std::sync::Arc;

use super::attempt::Attempt;
use super::dispatch::{self, Given};
use super::event_context::EventContext;
use super::worker::Worker;
use crate::core::plugins::PluginIndex;
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
    pub fn reconcile<T>(
        &mut self,
        plugin: PluginIndex,
        hook: Hook,
        seen: &EventContext,
        attempt: Attempt<T>,
    ) -> Option<T> {
        match attempt {
            Attempt::Done(value) => return Some(value),
            Attempt::Skipped => {}
            Attempt::Failed { failure, attempts, opened } => {
                self.park(plugin, hook, &seen.event, failure, attempts);
                if opened {
                    self.opened.push((plugin, seen.event.clone()));
                }
            }
            Attempt::Refused => {
                let opened_by = self.circuits[plugin].opened_by();
                let opened_by = opened_by.map(|event| format!(" by the event {event}")).unwrap_or_default();
                let message = format!("the plugin is stopped: its circuit was opened{opened_by}");
                let mut parked = self.parked(plugin, hook, &seen.event, message);
                parked.reason.kind = CIRCUIT_OPEN.into();
                self.unwritten.parked.push(parked);
            }
        }
        None
    }

    /// Puts a step aside whose effects were refused; any other failure is the batch's.
    pub fn accept(&mut self, plugin: PluginIndex, hook: Hook, seen: &EventContext, result: Result<()>) -> Result<()> {
        let Err(error) = result else { return Ok(()) };
        let Some(failure) = dispatch::refusal(&error) else { return Err(error) };
        self.park(plugin, hook, &seen.event, failure, 1);
        Ok(())
    }

    pub fn park(&mut self, plugin: PluginIndex, hook: Hook, event: &Event, failure: Failure, attempts: u32) {
        let name = self.state.plugins.name(plugin).clone();
        tracing::warn!(plugin = %name, hook = hook.name(), event = %event.event_id, %failure, "step parked");
        metrics::counter!("foldwork_steps_parked_total", "plugin" => name.to_string()).increment(1);
        let mut parked = self.parked(plugin, hook, event, failure.message);
        let (line, column) = (failure.line, failure.column);
        parked.reason = Reason { kind: failure.kind.name().into(), line, column, attempts, ..parked.reason };
        self.unwritten.parked.push(parked);
    }

    fn parked(&self, plugin: PluginIndex, hook: Hook, event: &Event, message: String) -> Parked {
        let about = self.state.plugins.about(plugin);
        let reason = Reason {
            event_id: event.event_id.clone(),
            aggregate_id: event.aggregate_id.text(),
            event_type: event.event_type.clone(),
            kind: Arc::default(),
            message,
            line: None,
            column: None,
            version: about.version.clone(),
            attempts: 0,
            parked_at: self.state.clock.now_ms(),
        };
        let plugin = about.name.clone();
        Parked { id: StepId { position: event.position, hook: hook.name().into(), plugin }, reason }
    }

    /// A task for the owner of the workspace: a plugin was stopped.
    pub async fn tell_owner(&self, plugin: PluginIndex, event: &Event) -> Result<()> {
        let name = self.state.plugins.name(plugin).clone();
        let given = Given {
            title: format!("The plugin {name} is stopped after {} failures in a row", super::circuit::FAILURES),
            assignee: Assignee::User(self.state.record.owner_id.clone()),
            priority: Priority::High,
            due_at: None,
        };
        let metadata = Object::from_iter([("plugin", name.clone())]);
        let task = dispatch::new_task(event, None, &name, given, metadata);
        dispatch::append(&self.appender, &name, vec![task]).await
    }
}
