//! The follower of the log that enriches, projects and dispatches: one batch of events after another.

use std::pin::pin;
use std::sync::Arc;

use futures_util::TryStreamExt;

use super::circuit::Circuit;
use super::enrich;
use super::event_context::{EventContext, FollowerView, look_back, observe};
use super::roster::Roster;
use crate::core::State;
use crate::core::append::Appender;
use crate::core::plugins::{PluginIndex, PluginMap};
use crate::error::Result;
use crate::model::aggregate::no_facts;
use crate::model::event::Event;
use crate::model::graph::{EnrichmentFacts, facts_of};
use crate::model::id::AggregateId;
use crate::model::value::Object;
use crate::resident::graph::{Changes, Edges, StateView};
use crate::store;
use crate::store::graph::{Effects, GraphCheckpoint};
use crate::store::key_range::{KeyRange, read_ahead};

/// Events of one batch.
const BATCH: usize = 512;
/// Events that changed nothing are passed without writing that down, up to so many.
const UNSTORED: u64 = 4_096;

/// What follows the log of one workspace. There is one at a time.
pub struct Worker {
    pub state: Arc<State>,
    pub appender: Appender,
    /// Where it stands; what is stored may be behind, by events that changed nothing.
    pub stand: GraphCheckpoint,
    stored: u64,
    pub circuits: PluginMap<Circuit>,
    pub roster: Roster,
    /// In the graph already, and not yet stored.
    pub unwritten: Effects,
    /// Plugins whose circuit opened, and the event with which it did.
    pub opened: Vec<(PluginIndex, Arc<Event>)>,
}

impl Worker {
    /// Takes up the work where it was left.
    pub async fn resume(state: Arc<State>, appender: Appender) -> Result<Worker> {
        let mut worker = Worker {
            appender,
            stand: GraphCheckpoint::default(),
            stored: 0,
            circuits: PluginMap::default(),
            roster: Roster::default(),
            unwritten: Effects::default(),
            opened: Vec::new(),
            state,
        };
        worker.load().await?;
        Ok(worker)
    }

    /// Reads what is stored, and sees the aggregates as they were there.
    async fn load(&mut self) -> Result<()> {
        let state = &self.state;
        let stand = state.log.read_graph_checkpoint().await?;
        state.folded.follower_caught_up();
        look_back(state, stand.position).await?;
        let now = FollowerView::new(state);
        state.graph.replace(restored(&now, stand.generation).await?);
        let mut roster = Roster::default();
        now.aggregates().for_each(|aggregate| roster.observe(&aggregate));
        let circuit = |name: &str| Circuit::restore(stand.circuits.get(name));
        self.circuits = PluginMap::new(&state.plugins, |plugin| circuit(state.plugins.name(plugin)));
        self.roster = roster;
        self.unwritten = Effects::default();
        state.graph_progress.set(stand.position);
        self.stored = stand.position;
        self.stand = stand;
        Ok(())
    }

    /// Takes the next events in. Answers the position that the worker has come to.
    pub async fn step(&mut self) -> Result<u64> {
        if self.state.plugins.is_empty() && self.state.graph.is_empty() {
            return Ok(self.pass_over());
        }
        let events = self.state.events_after(self.stand.position, BATCH).await?;
        let Some(last) = events.last() else { return Ok(self.stand.position) };
        let position = last.position;
        let seen: Vec<Arc<EventContext>> = observe(&self.state, &events).into_iter().map(Arc::new).collect();
        let enriched = enrich::enrich(&self.state, &mut self.circuits, &seen).await;
        let asked = self.project(&seen, enriched);
        self.append_derived(asked.appends).await?;
        for (plugin, routings) in asked.routings {
            self.route(plugin, routings).await?;
        }
        for (plugin, jobs) in asked.jobs {
            self.work(plugin, jobs).await?;
        }
        self.commit(position).await?;
        self.state.folded.pass_follower(seen.iter().map(|seen| seen.after.clone()));
        Ok(position)
    }

    /// With nobody to call and nothing to keep up, events are not even read. A plugin that is enabled later begins
    /// where the last one ended.
    fn pass_over(&mut self) -> u64 {
        self.state.folded.follower_caught_up();
        let position = self.state.folded.position();
        self.state.graph_progress.set(position);
        position
    }

    /// Writes what the batch changed, with the checkpoint that says so, and shows it.
    ///
    /// The graph in memory is ahead until that succeeds; a step that is tried again finds nothing new and writes this.
    pub async fn commit(&mut self, position: u64) -> Result<()> {
        for (plugin, event) in std::mem::take(&mut self.opened) {
            self.tell_owner(plugin, &event).await?;
        }
        let unchanged = self.unwritten.is_empty() && self.circuits_stored() == self.stand.circuits;
        if unchanged && position.saturating_sub(self.stored) < UNSTORED {
            self.stand.position = position;
            self.state.graph_progress.set(position);
            return Ok(());
        }
        self.commit_now(position).await
    }

    fn circuits_stored(&self) -> Object {
        let name = |plugin| self.state.plugins.name(plugin).clone();
        self.circuits.iter().filter_map(|(plugin, circuit)| Some((name(plugin), circuit.stored()?))).collect()
    }

    /// Returns whether the circuit was open.
    pub async fn close_circuit(&mut self, plugin: PluginIndex) -> Result<bool> {
        let was_open = std::mem::take(&mut self.circuits[plugin]).is_open();
        self.commit(self.stand.position).await?;
        Ok(was_open)
    }

    pub async fn commit_now(&mut self, position: u64) -> Result<()> {
        let after = GraphCheckpoint { position, generation: self.stand.generation, circuits: self.circuits_stored() };
        let state = &self.state;
        match state.log.write_effects(&self.unwritten, self.stored, &after).await {
            Ok(()) => {}
            Err(store::Error::Conflict) if !state.is_exclusive() => {
                // Another process took these events in: what it found is what counts.
                return self.load().await;
            }
            Err(error) => return Err(error.into()),
        }
        let changed = std::mem::take(&mut self.unwritten).findings;
        show(state, changed.iter().map(|(id, findings)| (id, findings.as_deref())));
        self.stand = after;
        self.stored = position;
        state.graph_progress.set(position);
        Ok(())
    }

    /// Notes what is to be written.
    pub fn note(&mut self, changes: Changes) {
        for id in changes.nodes {
            let findings = self.state.graph.findings(id.as_str());
            match self.unwritten.findings.iter_mut().find(|(known, _)| *known == id) {
                Some(known) => known.1 = findings,
                None => self.unwritten.findings.push((id, findings)),
            }
        }
        self.unwritten.edges.extend(changes.edges);
    }
}

/// The graph as it is stored; what was found is shown as it is read.
async fn restored(now: &FollowerView<'_>, generation: u64) -> Result<Edges> {
    let state = now.state;
    let ranges = KeyRange::of(state.folded.snapshot().iter().map(|known| known.id.text()));
    let mut edges = Edges::default();
    let mut pages = pin!(read_ahead(ranges.clone(), |key_range| {
        let log = state.log.clone();
        async move { log.read_findings(generation, key_range).await }
    }));
    while let Some(found) = pages.try_next().await? {
        let found: Vec<_> = found.into_iter().map(|(id, found)| edges.restore(now, &id, found)).collect();
        show(state, found.iter().map(|(id, findings)| (id, Some(&**findings))));
    }
    let mut pages = pin!(read_ahead(ranges, |key_range| {
        let log = state.log.clone();
        async move { log.read_open_edges(generation, key_range).await }
    }));
    while let Some(found) = pages.try_next().await? {
        edges.restore_edges(found);
    }
    edges.restored(now);
    Ok(edges)
}

/// Lets pipelines and search see what was found about aggregates, or that nothing is any more.
pub fn show<'a>(state: &State, found: impl Iterator<Item = (&'a AggregateId, Option<&'a EnrichmentFacts>)> + Clone) {
    let facts = found.clone().map(|(id, findings)| (id.clone(), findings.map_or_else(no_facts, facts_of)));
    state.folded.set_facts(facts);
    for (id, findings) in found {
        let labels = findings.into_iter().flat_map(|findings| findings.values()).flat_map(|finding| &finding.labels);
        state.search.labels.set_further(id, labels.cloned().collect());
    }
}
