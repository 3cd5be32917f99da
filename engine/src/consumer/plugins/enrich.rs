//! Enrichment: collects the facts that plugins find about each event of a batch.

use std::sync::Arc;

use futures_util::future::join_all;

use super::attempt::{Attempt, Calls, RetryPolicy, refused_result};
use super::circuit::CallSubject;
use super::circuits::Circuits;
use super::step_end::Interruption;
use crate::consumer::event_context::EventContext;
use crate::hook::{EnrichInput, Failure, FailureKind, Hook, Outcome, Plugin};
use crate::model::depth::{MAX_KEPT_DEPTH, too_deep};
use crate::model::facts::Facts;
use crate::state::State;
use crate::state::plugins::{PluginIndex, PluginMap};

/// The outcome of one plugin's call for one event.
pub struct EnrichOutcome {
    pub plugin: PluginIndex,
    pub attempt: Attempt<Facts>,
}

/// The enricher, which calls the hook `enrich` for batches of events.
pub struct Enricher<'a> {
    state: &'a State,
    policy: RetryPolicy<'a>,
}

impl<'a> Enricher<'a> {
    pub fn new(state: &'a State, policy: RetryPolicy<'a>) -> Enricher<'a> {
        Enricher { state, policy }
    }

    /// Calls every plugin that subscribes to the events. Different plugins run concurrently, and each plugin gets its
    /// events in order. Returns the outcomes for each event.
    pub async fn enrich(
        &self,
        circuits: &mut Circuits,
        contexts: &[Arc<EventContext>],
    ) -> Result<Vec<Vec<EnrichOutcome>>, Interruption> {
        let (state, policy) = (self.state, self.policy);
        let mut indexes: PluginMap<Vec<usize>> = PluginMap::new(&state.plugins, |_| Vec::new());
        for (at, context) in contexts.iter().enumerate() {
            for plugin in state.plugins.called(Hook::Enrich, &context.event.event_type, &context.definition.traits) {
                indexes[plugin].push(at);
            }
        }
        let calls = circuits.by_plugin.iter_mut().map(|(plugin, circuit)| (plugin, circuit, &indexes[plugin]));
        let calls = calls.filter(|(_, _, indexes)| !indexes.is_empty()).map(|(plugin, circuit, indexes)| async move {
            let inputs: Vec<Arc<EventContext>> = indexes.iter().filter_map(|at| contexts.get(*at).cloned()).collect();
            let mut calls = Calls { state, plugin, circuit, policy };
            (plugin, indexes, calls.run(&inputs, step_of, call).await)
        });
        let mut enriched: Vec<Vec<EnrichOutcome>> = contexts.iter().map(|_| Vec::new()).collect();
        for (plugin, indexes, attempts) in join_all(calls).await {
            for (at, attempt) in indexes.iter().zip(attempts?) {
                if let Some(enriched) = enriched.get_mut(*at) {
                    enriched.push(EnrichOutcome { plugin, attempt });
                }
            }
        }
        Ok(enriched)
    }
}

fn step_of(context: &EventContext) -> CallSubject<'_> {
    CallSubject { event: &context.event, aggregate_id: context.event.aggregate_id.as_str() }
}

/// Calls the hook `enrich` with an event and the aggregate after the event. Fails if the derived fields nest too deep,
/// or if the weight of an edge is not a finite number.
pub fn call(plugin: &dyn Plugin, context: &EventContext) -> Outcome<Facts> {
    let enrich = EnrichInput { event: &context.event, aggregate: &context.after, definition: &context.definition };
    let mut done = plugin.enrich(&enrich)?;
    let facts = &mut done.value;
    // Facts are stored as JSON. Facts that nest too deep could not be read back from the store.
    if !facts.derived.nests_within(MAX_KEPT_DEPTH) {
        let refused = refused_result(format!("derived: {}", too_deep(MAX_KEPT_DEPTH)));
        return Err(Failure { kind: FailureKind::Depth, ..refused });
    }
    facts.derived = std::mem::take(&mut facts.derived).into_json();
    match facts.edges.iter().position(|edge| !edge.weight.is_finite()) {
        Some(index) => Err(refused_result(format!("edges[{index}].weight is not a finite number"))),
        None => Ok(done),
    }
}
