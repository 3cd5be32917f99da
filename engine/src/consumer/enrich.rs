//! Enrichment: every plugin's facts about each event of a batch.

use std::sync::Arc;

use futures_util::future::join_all;

use super::attempt::{Attempt, Calls};
use super::circuit::Circuit;
use super::event_context::EventContext;
use crate::core::State;
use crate::core::plugins::{PluginIndex, PluginMap};
use crate::hook::{Enrich, Hook, Outcome, Plugin};
use crate::model::facts::Facts;

/// What became of one plugin's call for one event.
pub struct Enriched {
    pub plugin: PluginIndex,
    pub attempt: Attempt<Facts>,
}

/// Calls every plugin that wants the events, side by side; one plugin sees its events in order.
pub async fn enrich(
    state: &State,
    circuits: &mut PluginMap<Circuit>,
    seen: &[Arc<EventContext>],
) -> Vec<Vec<Enriched>> {
    let mut wanted: PluginMap<Vec<usize>> = PluginMap::new(&state.plugins, |_| Vec::new());
    for (at, seen) in seen.iter().enumerate() {
        for plugin in state.plugins.called(Hook::Enrich, &seen.event.event_type, &seen.definition.traits) {
            wanted[plugin].push(at);
        }
    }
    let calls = circuits.iter_mut().map(|(plugin, circuit)| (plugin, circuit, &wanted[plugin]));
    let calls = calls.filter(|(_, _, wanted)| !wanted.is_empty()).map(|(plugin, circuit, wanted)| async move {
        let inputs: Vec<Arc<EventContext>> = wanted.iter().filter_map(|at| seen.get(*at).cloned()).collect();
        let mut calls = Calls { state, plugin, circuit };
        (plugin, wanted, calls.run(&inputs, |seen| &seen.event.event_id, call).await)
    });
    let mut enriched: Vec<Vec<Enriched>> = seen.iter().map(|_| Vec::new()).collect();
    for (plugin, wanted, attempts) in join_all(calls).await {
        for (at, attempt) in wanted.iter().zip(attempts) {
            if let Some(enriched) = enriched.get_mut(*at) {
                enriched.push(Enriched { plugin, attempt });
            }
        }
    }
    enriched
}

pub fn call(plugin: &dyn Plugin, seen: &EventContext) -> Outcome<Facts> {
    plugin.enrich(&Enrich { event: &seen.event, aggregate: &seen.after, definition: &seen.definition })
}
