//! The circuits of all plugins in one workspace, and the circuits that opened since the last commit.

use std::sync::Arc;

use super::circuit::{Circuit, FAILURES};
use crate::model::event::Event;
use crate::model::value::Object;
use crate::state::State;
use crate::state::plugins::{PluginIndex, PluginMap};

pub struct Circuits {
    state: Arc<State>,
    pub(super) by_plugin: PluginMap<Circuit>,
    /// The plugins whose circuits opened since the last commit, each with the event for which the plugin failed last.
    opened: Vec<(PluginIndex, Arc<Event>)>,
}

impl Circuits {
    /// Restores the circuits that were stored with a checkpoint.
    pub fn restore(state: &Arc<State>, stored: &Object) -> Circuits {
        let plugins = &state.plugins;
        let by_plugin = PluginMap::new(plugins, |plugin| Circuit::restore(stored.get(plugins.name(plugin))));
        Circuits { state: state.clone(), by_plugin, opened: Vec::new() }
    }

    /// Returns circuits that never open.
    pub fn forced_closed(state: &Arc<State>) -> Circuits {
        let by_plugin = PluginMap::new(&state.plugins, |_| Circuit::forced_closed());
        Circuits { state: state.clone(), by_plugin, opened: Vec::new() }
    }

    /// Returns the circuits in their stored form.
    pub fn stored(&self) -> Object {
        let name = |plugin| self.state.plugins.name(plugin).clone();
        self.by_plugin.iter().filter_map(|(plugin, circuit)| Some((name(plugin), circuit.stored()?))).collect()
    }

    /// Marks the plugins with open circuits as stopped, and all other plugins as running.
    pub fn publish(&self) {
        for (plugin, circuit) in self.by_plugin.iter() {
            self.state.plugins.set_stopped(plugin, circuit.is_open());
        }
    }

    /// Closes the circuit of a plugin. Returns whether the circuit was open.
    pub fn close(&mut self, plugin: PluginIndex) -> bool {
        std::mem::take(&mut self.by_plugin[plugin]).is_open()
    }

    /// Records that an event opened a circuit.
    pub fn note_opened(&mut self, plugin: PluginIndex, event: &Arc<Event>) {
        let (workspace, name) = (&*self.state.record.id, self.state.plugins.name(plugin));
        tracing::warn!(
            workspace, plugin = %name, event = %event.event_id,
            "plugin stopped: it failed for {FAILURES} aggregates in a row"
        );
        self.opened.push((plugin, event.clone()));
    }

    pub fn take_opened(&mut self) -> Vec<(PluginIndex, Arc<Event>)> {
        std::mem::take(&mut self.opened)
    }
}
