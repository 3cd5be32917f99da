//! The follower of the log that enriches, projects and dispatches: one batch of events after another.

use std::pin::pin;
use std::sync::Arc;

use futures_util::TryStreamExt;

use super::circuit::Circuit;
use super::enrich;
use super::roster::Roster;
use super::world::{Now, Seen, look_back, observe};
use crate::error::Result;
use crate::model::aggregate::no_facts;
use crate::model::event::Event;
use crate::model::graph::{Findings, facts_of};
use crate::model::id::AggregateId;
use crate::model::value::Object;
use crate::resident::graph::{Changes, Edges, World};
use crate::store;
use crate::store::graph::{Effects, Stand};
use crate::store::stretch::{Stretch, read_ahead};
use crate::workspace::append::Appender;
use crate::workspace::state::Open;

/// Events of one batch.
const BATCH: usize = 512;
/// Events that changed nothing are passed without writing that down, up to so many.
const UNSTORED: u64 = 4_096;

/// What follows the log of one workspace. There is one at a time.
pub struct Worker {
    pub open: Arc<Open>,
    pub appender: Appender,
    /// Where it stands; what is stored may be behind, by events that changed nothing.
    pub stand: Stand,
    stored: u64,
    pub circuits: Vec<Circuit>,
    pub roster: Roster,
    /// In the graph already, and not yet stored.
    pub unwritten: Effects,
    /// Plugins whose circuit opened, and the event with which it did.
    pub opened: Vec<(usize, Arc<Event>)>,
}

impl Worker {
    /// Takes up the work where it was left.
    pub async fn resume(open: Arc<Open>, appender: Appender) -> Result<Worker> {
        let mut worker = Worker {
            appender,
            stand: Stand::default(),
            stored: 0,
            circuits: Vec::new(),
            roster: Roster::default(),
            unwritten: Effects::default(),
            opened: Vec::new(),
            open,
        };
        worker.load().await?;
        Ok(worker)
    }

    /// Reads what is stored, and sees the aggregates as they were there.
    async fn load(&mut self) -> Result<()> {
        let open = &self.open;
        let stand = open.log.read_stand().await?;
        open.behind.clear();
        look_back(open, stand.position).await?;
        let now = Now::new(open);
        open.graph.replace(restored(&now, stand.generation).await?);
        let mut roster = Roster::default();
        now.aggregates().for_each(|aggregate| roster.observe(&aggregate));
        let circuit = |name: &str| Circuit::restore(stand.circuits.get(name));
        self.circuits = open.plugins.about().map(|about| circuit(&about.name)).collect();
        self.roster = roster;
        self.unwritten = Effects::default();
        open.worked.send_replace(stand.position);
        self.stored = stand.position;
        self.stand = stand;
        Ok(())
    }

    /// Takes the next events in. Answers the position that the worker has come to.
    pub async fn step(&mut self) -> Result<u64> {
        if self.open.plugins.is_empty() && self.open.graph.is_empty() {
            return Ok(self.pass_over());
        }
        let events = self.open.events_after(self.stand.position, BATCH).await?;
        let Some(last) = events.last() else { return Ok(self.stand.position) };
        let position = last.position;
        let seen: Vec<Arc<Seen>> = observe(&self.open, &events).into_iter().map(Arc::new).collect();
        let plugins = self.open.plugins.clone();
        let enriched = enrich::enrich(&self.open, &plugins, &mut self.circuits, &seen).await;
        let asked = self.project(&seen, enriched);
        self.append_derived(asked.appends).await?;
        for (place, routings) in asked.routings {
            self.route(place, routings).await?;
        }
        for (place, jobs) in asked.jobs {
            self.work(place, jobs).await?;
        }
        self.commit(position).await?;
        self.open.behind.pass(&self.open.resident, seen.iter().map(|seen| seen.after.clone()));
        Ok(position)
    }

    /// With nobody to call and nothing to keep up, events are not even read. A plugin that is enabled later begins
    /// where the last one ended.
    fn pass_over(&mut self) -> u64 {
        self.open.behind.clear();
        let position = self.open.resident.position();
        self.open.worked.send_replace(position);
        position
    }

    /// Writes what the batch changed, with the checkpoint that says so, and shows it.
    ///
    /// The graph in memory is ahead until that succeeds; a step that is tried again finds nothing new and writes this.
    pub async fn commit(&mut self, position: u64) -> Result<()> {
        for (place, event) in std::mem::take(&mut self.opened) {
            self.tell_owner(place, &event).await?;
        }
        let unchanged = self.unwritten.is_empty() && self.circuits_stored() == self.stand.circuits;
        if unchanged && position.saturating_sub(self.stored) < UNSTORED {
            self.stand.position = position;
            self.open.worked.send_replace(position);
            return Ok(());
        }
        self.commit_now(position).await
    }

    fn circuits_stored(&self) -> Object {
        let circuits = self.open.plugins.about().zip(&self.circuits);
        circuits.filter_map(|(about, circuit)| Some((about.name.clone(), circuit.stored()?))).collect()
    }

    /// Answers whether the circuit was open.
    pub async fn close_circuit(&mut self, place: usize) -> Result<bool> {
        let Some(circuit) = self.circuits.get_mut(place) else { return Ok(false) };
        let was_open = std::mem::take(circuit).is_open();
        self.commit(self.stand.position).await?;
        Ok(was_open)
    }

    pub async fn commit_now(&mut self, position: u64) -> Result<()> {
        let after = Stand { position, generation: self.stand.generation, circuits: self.circuits_stored() };
        let open = &self.open;
        match open.log.write_effects(&self.unwritten, self.stored, &after).await {
            Ok(()) => {}
            Err(store::Error::Conflict) if !open.exclusive => {
                // Another process took these events in: what it found is what counts.
                return self.load().await;
            }
            Err(error) => return Err(error.into()),
        }
        let changed = std::mem::take(&mut self.unwritten).findings;
        show(open, changed.iter().map(|(id, findings)| (id, findings.as_deref())));
        self.stand = after;
        self.stored = position;
        open.worked.send_replace(position);
        Ok(())
    }

    /// Notes what is to be written.
    pub fn note(&mut self, changes: Changes) {
        for id in changes.nodes {
            let findings = self.open.graph.findings(id.as_str());
            match self.unwritten.findings.iter_mut().find(|(known, _)| *known == id) {
                Some(known) => known.1 = findings,
                None => self.unwritten.findings.push((id, findings)),
            }
        }
        self.unwritten.edges.extend(changes.edges);
    }
}

/// The graph as it is stored; what was found is shown as it is read.
async fn restored(now: &Now<'_>, generation: u64) -> Result<Edges> {
    let open = now.open;
    let stretches = Stretch::of(open.resident.snapshot().iter().map(|known| known.id.text()));
    let mut edges = Edges::default();
    let mut pages = pin!(read_ahead(stretches.clone(), |stretch| {
        let log = open.log.clone();
        async move { log.read_findings(generation, stretch).await }
    }));
    while let Some(found) = pages.try_next().await? {
        let found: Vec<_> = found.into_iter().map(|(id, found)| edges.restore(now, &id, found)).collect();
        show(open, found.iter().map(|(id, findings)| (id, Some(&**findings))));
    }
    let mut pages = pin!(read_ahead(stretches, |stretch| {
        let log = open.log.clone();
        async move { log.read_open_edges(generation, stretch).await }
    }));
    while let Some(found) = pages.try_next().await? {
        edges.restore_edges(found);
    }
    edges.restored(now);
    Ok(edges)
}

/// Lets pipelines and search see what was found about aggregates, or that nothing is any more.
pub fn show<'a>(open: &Open, found: impl Iterator<Item = (&'a AggregateId, Option<&'a Findings>)> + Clone) {
    let facts = found.clone().map(|(id, findings)| (id.clone(), findings.map_or_else(no_facts, facts_of)));
    open.resident.set_facts(facts);
    for (id, findings) in found {
        let labels = findings.into_iter().flat_map(|findings| findings.values()).flat_map(|finding| &finding.labels);
        open.labels.set_further(id, labels.cloned().collect());
    }
}
