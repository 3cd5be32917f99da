//! The worker: the follower of the log that enriches, projects and dispatches one batch of events after another.

use std::pin::pin;
use std::sync::Arc;

use futures_util::TryStreamExt;
use futures_util::future::join_all;

use super::event_context::{ContextBatch, EventContext, FollowerView, observe, restore_states};
use super::graph::checkpointer::{Checkpointer, show};
use super::graph::project::GraphProjection;
use super::graph::settling::{Basis, RemainingEdges};
use super::plugins::agent_registration::register_scripted;
use super::plugins::attempt::RetryPolicy;
use super::plugins::circuit::{self, CallSubject};
use super::plugins::circuits::Circuits;
use super::plugins::dispatch::{self, Dispatcher};
use super::plugins::enrich::{EnrichOutcome, Enricher};
use super::plugins::parking::ParkingBuffer;
use super::plugins::retries::Retries;
use super::plugins::route::Router;
use super::plugins::scripted_agents::ScriptedAgents;
use super::plugins::step_end::StepEnd;
use crate::append::appender::Appender;
use crate::error::{Error, Result};
use crate::hook::Hook;
use crate::mailbox::members::Members;
use crate::model::event::{Event, NewEvent};
use crate::model::facts::{Assignee, Facts, Priority};
use crate::model::graph::EnrichmentFacts;
use crate::model::value::Object;
use crate::resident::graph::Edges;
use crate::state::State;
use crate::state::batches::BATCH;
use crate::state::leadership::Lead;
use crate::state::plugins::{PluginIndex, PluginMap};
use crate::state::releases::AdoptedVersion;
use crate::store;
use crate::store::control::servers::WorkspaceProgress;
use crate::store::key_range::read_ahead;
use crate::store::workspace::parked::StepId;

/// The worker of one workspace, which processes the log in steps. A workspace has one worker at a time.
pub struct Worker {
    pub(super) state: Arc<State>,
    pub(super) circuits: Circuits,
    pub(super) projection: GraphProjection,
    pub(super) router: Router,
    pub(super) scripted_agents: ScriptedAgents,
    pub(super) parking: ParkingBuffer,
    pub(super) dispatcher: Dispatcher,
    checkpointer: Checkpointer,
    settling: RemainingEdges,
    members: Members,
    /// The aggregates at the follower's position were folded after this number of type redefinitions.
    redefinitions: u64,
    /// Whether the stored checkpoint names the versions that the workspace has adopted.
    is_adopted: bool,
}

/// The result of a step.
pub struct WorkerStep {
    /// The position of the last event that was processed or passed over.
    pub position: u64,
    /// Whether some edges may not have been compared yet with the current definitions and the enabled plugins.
    pub is_settling: bool,
}

/// The events that a plugin derived from one event and that are to be appended.
struct DerivedEvents {
    plugin: PluginIndex,
    context: Arc<EventContext>,
    /// The derived events. Empty if the chain of derived events has reached its maximum length.
    events: Vec<NewEvent>,
}

impl Worker {
    /// Resumes from the stored checkpoint, with the aggregates as of the checkpoint's position.
    pub async fn resume(state: Arc<State>, appender: Appender, members: Members, lead: Lead) -> Result<Worker> {
        let checkpoint = state.db.read_graph_checkpoint().await?;
        // The checkpoint of another server may include events that this server has not read yet.
        state.refresh().await?;
        let redefinitions = state.types.redefined.position();
        state.folded.follower.clear();
        restore_states(&state, checkpoint.position).await?;
        let view = FollowerView::new(&state);
        let basis = Basis::current(&state);
        state.graph.replace(restored(&view, checkpoint.generation).await?, checkpoint.position);
        let settling = RemainingEdges::new(&state, basis, checkpoint.basis.as_ref());
        let projection = GraphProjection::new(&state, &view);
        state.graph_progress.advance(checkpoint.position);
        let circuits = Circuits::restore(&state, &checkpoint.circuits);
        circuits.publish();
        let retries = Retries::restore(&state).await?;
        Ok(Worker {
            circuits,
            projection,
            router: Router::new(&state, members.clone()),
            members,
            scripted_agents: ScriptedAgents::new(&state),
            parking: ParkingBuffer::new(&state, retries),
            checkpointer: Checkpointer::new(&state, appender.database(), lead, checkpoint),
            dispatcher: Dispatcher::new(appender, lead),
            settling,
            redefinitions,
            is_adopted: false,
            state,
        })
    }

    /// Returns the worker's right to process the log.
    pub fn lead(&self) -> Lead {
        self.checkpointer.lead
    }

    /// Returns the position of the last processed event.
    pub fn position(&self) -> u64 {
        self.checkpointer.checkpoint().position
    }

    /// Returns the number of writes to the graph, as of the worker's checkpoint.
    pub fn writes(&self) -> u64 {
        self.checkpointer.checkpoint().writes
    }

    /// Fails if another server has taken over since the worker began, according to this server's last read of the
    /// store.
    pub(super) fn check_lead(&self) -> Result<()> {
        let newest = self.state.seen_writes().epoch;
        match self.lead().epoch {
            Some(epoch) if epoch < newest => Err(Error::Unavailable(store::Error::Conflict)),
            _ => Ok(()),
        }
    }

    /// Runs one step. Adopts new plugin versions, and folds the aggregates again if types were redefined. If edges are
    /// left to compare, compares the edges of one page of aggregates. Then processes the next events.
    ///
    /// After an error, the worker must not be used for another step, because its state in memory may be ahead of the
    /// store.
    pub async fn step(&mut self) -> Result<WorkerStep, StepEnd> {
        self.adopt_versions().await?;
        self.refold().await?;
        let is_settling = self.settle_page().await?;
        let position = self.process().await?;
        Ok(WorkerStep { position, is_settling })
    }

    /// Processes the next events, or passes over all events if the worker is idle. Returns the position of the last
    /// event that was processed or passed over.
    async fn process(&mut self) -> Result<u64, StepEnd> {
        if self.is_idle() {
            return Ok(self.pass_over());
        }
        // The store may already contain events that are not folded yet.
        let end = self.state.folded.position();
        let mut events = self.state.batch_after(self.position(), BATCH).await?;
        events.retain(|event| event.position <= end);
        if events.is_empty() {
            return Ok(self.position());
        }
        let earlier = |id: &str| self.state.folded.at_follower(id);
        let ContextBatch { contexts, position, bytes } = observe(&self.state, &events, BATCH.bytes, earlier);
        self.checkpointer.pass(bytes);
        drop(events);
        let enricher = Enricher::new(&self.state, RetryPolicy::Later(&self.parking.retries));
        let enriched = enricher.enrich(&mut self.circuits, &contexts).await?;
        let derived = self.project(&contexts, enriched);
        self.append_derived(derived).await?;
        let Worker { circuits, projection, router, scripted_agents, parking, dispatcher, .. } = self;
        router.run(circuits, &projection.roster, parking, dispatcher).await?;
        scripted_agents.run(circuits, parking, dispatcher).await?;
        self.notify_owner().await?;
        self.commit(position).await?;
        self.state.folded.pass_follower(contexts.iter().map(|context| context.after.clone()));
        Ok(position)
    }

    /// Adopts the newest versions of the plugins for the events after the current position.
    ///
    /// Stores the new versions in the checkpoint before the worker adopts these versions. Only the versions in the
    /// stored checkpoint may process the next events: a worker that has adopted other versions cannot write the
    /// checkpoint.
    pub(super) async fn adopt_versions(&mut self) -> Result<()> {
        if self.is_adopted && self.state.plugins.is_newest() {
            return Ok(());
        }
        let state = self.state.clone();
        let newest = || PluginMap::new(&state.plugins, |plugin| state.plugins.newest(plugin));
        let mut versions = newest();
        let mut changed = AdoptedVersion::changed(&self.checkpointer.checkpoint().versions, &versions, self.position());
        if changed.is_some() && !state.is_exclusive() {
            // Another server may have released the versions that the checkpoint names, or newer versions.
            state.plugins.releases.refresh().await?;
            versions = newest();
            changed = AdoptedVersion::changed(&self.checkpointer.checkpoint().versions, &versions, self.position());
        }
        if let Some(changed) = changed {
            self.checkpointer.set_versions(changed);
            self.commit(self.position()).await?;
        }
        if state.plugins.adopt(&versions) {
            self.projection.roster.set_plugins(state.plugins.with_agents());
            register_scripted(&state, &self.dispatcher.appender).await?;
        }
        self.is_adopted = true;
        Ok(())
    }

    /// Folds the aggregates at the follower's position again after types were redefined. Without this step, the next
    /// events would be folded into states of the earlier definitions, and plugins would get states that mix both
    /// definitions.
    async fn refold(&mut self) -> Result<()> {
        let redefinitions = self.state.types.redefined.position();
        if redefinitions == self.redefinitions || self.is_idle() {
            return Ok(());
        }
        self.state.folded.follower.clear();
        restore_states(&self.state, self.position()).await?;
        self.redefinitions = redefinitions;
        self.scripted_agents.forget_mentions();
        self.settling.readdress();
        Ok(())
    }

    /// Opens and closes edges until all edges match the redefined types and the enabled plugins.
    pub(super) async fn settle_edges(&mut self) -> Result<()> {
        while self.settle_page().await? {}
        Ok(())
    }

    /// Opens and closes the edges of one page of aggregates. [`Worker::step`] processes new events between two pages.
    /// Returns `false` if no page was left.
    async fn settle_page(&mut self) -> Result<bool> {
        self.settling.refresh();
        if let Some(changes) = self.settling.next_page(self.position()) {
            self.checkpointer.record(changes);
            self.commit(self.position()).await?;
            return Ok(true);
        }
        if let Some(basis) = self.settling.take_basis() {
            self.checkpointer.set_basis(basis);
            if !self.state.graph.is_empty() {
                self.commit(self.position()).await?;
            }
        }
        self.settling.report();
        Ok(false)
    }

    /// Returns whether the workspace has no plugins and its graph is empty.
    fn is_idle(&self) -> bool {
        self.state.plugins.is_empty() && self.state.graph.is_empty()
    }

    /// Skips to the log's end without reading events, because there are no plugins and no graph. Does not store the new
    /// position, so a plugin that is enabled later begins at the last stored checkpoint.
    fn pass_over(&self) -> u64 {
        self.state.folded.follower.clear();
        let position = self.state.folded.position();
        self.state.graph_progress.set(position);
        self.state.report(WorkspaceProgress { consumed: position, ..WorkspaceProgress::default() });
        position
    }

    /// Applies the events and their facts to the graph one after the other, and records the calls that the events
    /// require. Returns the events that the plugins derived.
    fn project(&mut self, contexts: &[Arc<EventContext>], enriched: Vec<Vec<EnrichOutcome>>) -> Vec<DerivedEvents> {
        let state = self.state.clone();
        let mut derived = Vec::new();
        let mut view = FollowerView::new(&state);
        for (context, enriched) in contexts.iter().zip(enriched) {
            let mut found = Vec::new();
            for EnrichOutcome { plugin, attempt } in enriched {
                let received = self.parking.receive(&mut self.circuits, plugin, Hook::Enrich, context, attempt);
                if let Some(mut facts) = received {
                    let events = std::mem::take(&mut facts.events);
                    if !events.is_empty() {
                        let (workspace, name) = (&*state.record.id, state.plugins.name(plugin));
                        let events = dispatch::derived_events(workspace, context, name, events);
                        derived.push(DerivedEvents { plugin, context: context.clone(), events });
                    }
                    found.push((plugin, facts));
                }
            }
            view.changed.insert(context.after.id.clone(), context.after.clone());
            self.checkpointer.record(self.projection.take(&view, context, found));
            self.router.record(&mut self.projection.roster, context);
            self.scripted_agents.record(&view, &self.projection.roster, context);
        }
        derived
    }

    /// Sends the appends of all derived events in order, then waits for the results. A rejected event counts as a
    /// failure of the step that derived the event.
    async fn append_derived(&mut self, derived: Vec<DerivedEvents>) -> Result<()> {
        let Worker { state, dispatcher, circuits, parking, .. } = self;
        let appends = derived.into_iter().map(|DerivedEvents { plugin, context, events }| {
            let append = dispatcher.append(state.plugins.name(plugin), events);
            async move { (plugin, context, append.await) }
        });
        for (plugin, context, result) in join_all(appends).await {
            let aggregate_id = context.event.aggregate_id.as_str();
            let subject = CallSubject { event: &context.event, aggregate_id };
            parking.settle(circuits, plugin, Hook::Enrich, subject, result?);
        }
        Ok(())
    }

    /// Creates a task for the workspace's owner for each plugin whose circuit opened since the last commit.
    pub(super) async fn notify_owner(&mut self) -> Result<()> {
        for (plugin, event) in self.circuits.take_opened() {
            let task = self.stopped_task(plugin, &event, self.members.owner().await?);
            // The worker continues even if the task for the owner cannot be created.
            if let Err(failure) = self.dispatcher.append(self.state.plugins.name(plugin), vec![task]).await? {
                let (workspace, plugin) = (&*self.state.record.id, self.state.plugins.name(plugin));
                tracing::error!(
                    workspace, %plugin, %failure, "failed to create the owner's task about a stopped plugin"
                );
            }
        }
        Ok(())
    }

    fn stopped_task(&self, plugin: PluginIndex, event: &Event, owner_id: Arc<str>) -> NewEvent {
        let name = self.state.plugins.name(plugin);
        let content = dispatch::TaskContent {
            reason: dispatch::TaskReason::Stopped,
            title: format!("The plugin {name} is stopped: it failed for {} aggregates in a row", circuit::FAILURES)
                .into(),
            assignee: Assignee::User(owner_id),
            priority: Priority::High,
            due_at: None,
        };
        dispatch::new_task(event, None, name, content, Object::from_iter([("plugin", name.clone())]))
    }

    /// Closes the circuit of a plugin. Returns whether the circuit was open.
    pub async fn close_circuit(&mut self, plugin: PluginIndex) -> Result<bool> {
        let was_open = self.circuits.close(plugin);
        self.commit(self.position()).await?;
        Ok(was_open)
    }

    /// Removes parked steps without calling their plugins again.
    pub async fn release_steps(&mut self, steps: &[StepId]) -> Result<()> {
        steps.iter().for_each(|step| self.parking.release(step.clone()));
        self.commit(self.position()).await
    }

    /// Writes the checkpoint if earlier steps left it unwritten. The next start resumes at this checkpoint.
    pub(super) async fn write_checkpoint(&mut self) -> Result<()> {
        self.checkpointer.settle(self.circuits.stored(), &mut self.parking).await
    }

    /// Writes the changes together with the checkpoint, and makes the changes visible to pipelines and search.
    pub(super) async fn commit(&mut self, position: u64) -> Result<()> {
        self.checkpointer.commit(position, self.circuits.stored(), &mut self.parking).await?;
        self.circuits.publish();
        Ok(())
    }

    /// Applies facts that a plugin found in an event. The event itself was applied earlier. Returns three numbers: the
    /// number of aggregates whose facts changed, the number of opened edges, and the number of closed edges.
    pub(super) fn amend(&mut self, plugin: PluginIndex, event: &Event, facts: Facts) -> (u64, u64, u64) {
        let changes = self.projection.amend(plugin, event, facts, self.position());
        let closed = changes.edges.iter().filter(|edge| edge.valid_to.is_some()).count() as u64;
        let tally = (changes.nodes.len() as u64, changes.edges.len() as u64 - closed, closed);
        self.checkpointer.record(changes);
        tally
    }

    /// Puts a rebuilt graph into use. First writes the rebuilt generation to the checkpoint, then replaces the graph in
    /// memory. `basis` contains the definitions and plugins at the start of the rebuild.
    pub(super) async fn swap(&mut self, edges: &mut Edges, generation: u64, basis: Basis) -> Result<()> {
        let digest = basis.digest.clone();
        self.checkpointer.swap(generation, digest, self.circuits.stored(), &mut self.parking).await?;
        self.settling.begin_at(basis);
        let before = self.state.graph.replace(std::mem::take(edges), self.checkpointer.checkpoint().position);
        show(&self.state, before.iter().map(|id| (id, None)));
        let found = self.state.graph.all_facts();
        show(&self.state, found.iter().map(|(id, facts)| (id, Some(&**facts))));
        Ok(())
    }
}

/// Reads the stored graph, and makes the stored facts of enabled plugins visible to pipelines and search.
pub(super) async fn restored(view: &FollowerView<'_>, generation: u64) -> Result<Edges> {
    let state = view.state;
    let mut edges = Edges::default();
    let is_enabled = |plugin: &str| state.plugins.find(plugin).is_some();
    let mut pages = pin!(read_ahead(state.db.fact_ranges(generation).await?, |key_range| {
        let log = state.db.clone();
        async move { log.read_facts(generation, key_range).await }
    }));
    while let Some(found) = pages.try_next().await? {
        let readable = found.into_iter().filter_map(|(id, found)| Some((readable(state, &id, found)?, id)));
        let found: Vec<_> = readable.map(|(found, id)| edges.restore(view, &id, found, &is_enabled)).collect();
        show(state, found.iter().map(|(id, facts)| (id, Some(&**facts))));
    }
    let mut pages = pin!(read_ahead(state.db.edge_ranges(generation).await?, |key_range| {
        let log = state.db.clone();
        async move { log.read_open_edges(generation, key_range).await }
    }));
    while let Some(found) = pages.try_next().await? {
        edges.restore_edges(found);
    }
    edges.restored(view);
    Ok(edges)
}

/// Returns the stored facts of an aggregate, or `None` if the facts cannot be read. Facts that cannot be read are
/// replaced at the aggregate's next event or by a rebuild.
pub(super) fn readable(state: &State, id: &str, found: store::Result<EnrichmentFacts>) -> Option<EnrichmentFacts> {
    let log = |error: &store::Error| {
        let workspace = &*state.record.id;
        tracing::error!(%error, workspace, aggregate = %id, "skipped stored facts that cannot be read");
    };
    found.inspect_err(log).ok()
}
