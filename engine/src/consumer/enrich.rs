//! Enrichment: every plugin's facts about each event of a batch.

use std::sync::Arc;

use futures_util::future::join_all;

use super::attempt::{Attempt, Calls};
use super::circuit::Circuit;
use super::plugins::Plugins;
use super::world::Seen;
use crate::hook::{Enrich, Hook, Outcome, Plugin};
use crate::model::facts::Facts;
use crate::workspace::state::Open;

/// What became of one plugin's call for one event.
pub struct Enriched {
    pub place: usize,
    pub attempt: Attempt<Facts>,
}

/// Calls every plugin that wants the events, side by side; one plugin sees its events in order.
pub async fn enrich(
    open: &Open,
    plugins: &Plugins,
    circuits: &mut [Circuit],
    seen: &[Arc<Seen>],
) -> Vec<Vec<Enriched>> {
    let mut wanted: Vec<Vec<usize>> = plugins.about().map(|_| Vec::new()).collect();
    for (at, seen) in seen.iter().enumerate() {
        for place in plugins.called(Hook::Enrich, &seen.event.event_type, &seen.definition.traits) {
            if let Some(wanted) = wanted.get_mut(place) {
                wanted.push(at);
            }
        }
    }
    let calls = circuits.iter_mut().zip(&wanted).enumerate().filter(|(_, (_, wanted))| !wanted.is_empty());
    let calls = calls.map(|(place, (circuit, wanted))| async move {
        let inputs: Vec<Arc<Seen>> = wanted.iter().filter_map(|at| seen.get(*at).cloned()).collect();
        let mut calls = Calls { open, plugins, place, circuit };
        (place, wanted, calls.run(&inputs, |seen| &seen.event.event_id, call).await)
    });
    let mut enriched: Vec<Vec<Enriched>> = seen.iter().map(|_| Vec::new()).collect();
    for (place, wanted, attempts) in join_all(calls).await {
        for (at, attempt) in wanted.iter().zip(attempts) {
            if let Some(enriched) = enriched.get_mut(*at) {
                enriched.push(Enriched { place, attempt });
            }
        }
    }
    enriched
}

pub fn call(plugin: &dyn Plugin, seen: &Seen) -> Outcome<Facts> {
    plugin.enrich(&Enrich { event: &seen.event, aggregate: &seen.after, definition: &seen.definition })
}
