//! The consumer: follows the log from its checkpoints and maintains the data that is derived from events.
//!
//! Two followers have their own checkpoints. `nodes` writes the snapshots of folded states. `graph` passes every event
//! through enrichment, projection and dispatch. The effects are committed together with the checkpoint, so the follower
//! resumes at the checkpoint after a crash. Repeated work has the same result. Two further followers keep the indexes
//! of the search current (`search/labels.rs`, `search/vectors.rs`).
//!
//! `nodes` lags by design: a busy aggregate is written once for many events. After each write, a large aggregate is not
//! written again for a time that depends on its size: one second for each 8 KiB, and at most five minutes. The wait
//! ends early after 16,384 events or 16 MiB of events, and when the workspace closes. After a crash, the next start
//! folds the events that the snapshots lack, so the start takes longer, but no event is lost.
//!
//! # How plugins process an event
//!
//! The worker reads up to 512 events, or 4 MiB, after its checkpoint, and folds the state right after each event. A
//! batch that is read from the store ends at the end of a commit, so it may have more than 512 events. The events then
//! pass through the following steps. Each step is a type with its own state:
//!
//! 1. **Enrichment** (`enrich.rs`) calls the plugins whose manifests match the events. Different plugins run
//!    concurrently, and each plugin gets its events in order, in small portions, so that other plugins and workspaces
//!    are not delayed. A failed call is retried immediately (`attempt.rs`), unless the plugin is already failing for
//!    the same aggregate. With `on_error = "skip"`, the failure is ignored. With `on_error = "retry"`, the step is
//!    instead set aside with the time of its retry (`retries.rs`) and retried between two later batches, so nothing
//!    waits for the retry. After failures for five different aggregates in a row, the circuit opens, and the owner gets
//!    a task.
//! 2. **Projection** (`project.rs`) maintains the graph and the roster. New facts replace the plugin's earlier facts
//!    about the aggregate. Edges are then opened and closed so that the open edges match the facts and the existing
//!    targets (`resident/graph/reconcile.rs`). Edges therefore do not depend on the order of writes. A redefinition,
//!    and a change of the enabled plugins, change the targets of edges without an event: `settling.rs` compares the
//!    affected edges page by page, and new events are processed between two pages. Facts of plugins that are not
//!    enabled are kept separately and open no edges. Failed steps are parked with their reason, and the follower
//!    continues.
//! 3. **Derived events and work**: `dispatch.rs` appends derived events, `route.rs` assigns work to agents and users
//!    (the plugin's manifest determines whether a hook receives all agents, or only the agents that subscribe to a
//!    trait of the type), and `scripted_agents.rs` runs scripted agents. A repeated run appends its events only once. A
//!    chain of events that cause further events ends after eight events. The metadata of each derived event contains
//!    the length of its chain. Export and import keep this length (`model/derivation.rs`). Nothing is appended to a
//!    deleted aggregate.
//! 4. **The checkpoint** (`checkpointer.rs`): one transaction writes facts, edges, parked steps, circuits and the
//!    checkpoint. The transaction fails if the position, generation or plugin versions of the stored checkpoint are not
//!    as expected, or if another server has taken over. After the transaction, the field `_facts` of rows contains the
//!    new facts, and search finds aggregates by the names in the new facts.
//!
//! Only one task uses the worker at a time: the follower, or an operation that replays, resumes or rebuilds. A turn
//! that fails or is canceled drops the worker, and the next turn starts from the stored state. A rebuild writes a new
//! generation of facts and edges while the old generation stays in use. One transaction then replaces the old
//! generation. A server runs only one rebuild of a workspace at a time. Of two concurrent rebuilds on different
//! servers, the first to complete is used.

pub mod event_context;
mod follow;
pub mod graph;
mod nodes;
pub mod plugins;
mod search;
mod worker;
mod worker_slot;

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::append::appender::Appender;
use crate::error::{Error, Result};
use crate::metric;
use crate::state::background::{Background, Stop};
use crate::state::{GRAPH, NODES, State};
use crate::store;
use follow::{FollowPause, StepOutcome, follow};
pub use plugins::dispatch::derived_id;
use plugins::step_end::StepEnd;
pub use plugins::work::ANSWERS;
use worker::{Worker, WorkerStep};
pub use worker_slot::{WorkerSlot, WorkerTurn};

/// The pause between two writes of snapshots during appends. Several events of one aggregate during the pause cause
/// only one write.
const PAUSE: Duration = Duration::from_millis(300);
/// The pause between two steps of the graph's follower near the log's end. The events of all appends during the pause
/// are processed as one batch.
const GATHER: Duration = Duration::from_millis(10);
/// The time after which followers that have not ended are aborted when the consumer stops.
const END_WITHIN: Duration = Duration::from_secs(2);

/// The followers of one open workspace.
pub struct Consumer {
    workspace_id: Arc<str>,
    stop: Stop,
    slot: Arc<WorkerSlot>,
    tasks: [Background; 3],
    vectors: Background,
}

impl Consumer {
    pub fn start(state: Arc<State>, appender: Appender, slot: Arc<WorkerSlot>) -> Consumer {
        let (stop, stopped) = Stop::new();
        let workspace_id = state.record.id.clone();
        let labels = Background::spawn(search::labels::follow(state.clone(), stopped.clone()));
        let vectors =
            Background::spawn(search::vectors::follow(state.clone(), appender.database().clone(), stopped.clone()));
        let (stopping, db) = (stopped.clone(), appender.database().clone());
        let nodes = follow(
            state.clone(),
            NODES,
            FollowPause::WhileAppending(PAUSE),
            stopped.clone(),
            async move |state: Arc<State>| {
                if stopping.has_begun() {
                    state.folded.dirty.skip_pauses();
                }
                match state.leadership.acquire(false).await? {
                    Some(lead) => nodes::step(&state, &db, lead).await,
                    None => Ok(StepOutcome::Following),
                }
            },
        );
        let kept = slot.clone();
        let graph = follow(state, GRAPH, FollowPause::NearTheEnd(GATHER), stopped, async move |state: Arc<State>| {
            run_graph_step(&state, &appender, &slot).await
        });
        let tasks = [Background::spawn(nodes), Background::spawn(graph), labels];
        Consumer { workspace_id, stop, slot: kept, tasks, vectors }
    }

    /// Gives the followers a short time to process the end of the log, then ends the followers and writes the
    /// checkpoint of the graph. If no time is left, the checkpoint may stay unwritten. Ends the embedding of labels at
    /// once.
    pub async fn stop(self) {
        self.stop.begin();
        // The embedding model may be slow. The next start embeds the labels that are left.
        self.vectors.abort();
        let end = Instant::now() + END_WITHIN;
        let workspace = &*self.workspace_id;
        for mut task in self.tasks {
            match tokio::time::timeout_at(end, task.ended()).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => {
                    tracing::error!(%error, workspace, "a task that processes the log did not end cleanly")
                }
                // The follower is still waiting for a plugin. The next start repeats the uncommitted work.
                Err(_) => task.abort(),
            }
        }
        match tokio::time::timeout_at(end, self.slot.write_checkpoint()).await {
            Ok(Ok(())) | Err(_) => {}
            Ok(Err(error)) => {
                tracing::warn!(%error, workspace, "failed to write the position up to which the graph is built")
            }
        }
    }
}

/// Processes the next events, then retries the failed steps that are due. Returns the time of the next retry as well.
async fn step(worker: &mut Worker) -> Result<(WorkerStep, Option<i64>), StepEnd> {
    let step = worker.step().await?;
    let retry_at = plugins::late_retries::retry_due(worker, step.position).await?;
    Ok((step, retry_at))
}

/// Runs one step of the graph's follower. If another server leads, applies that server's changes instead. If a step
/// ends early, the next step starts again from the stored state.
async fn run_graph_step(state: &Arc<State>, appender: &Appender, slot: &WorkerSlot) -> Result<StepOutcome> {
    let Some(mut turn) = slot.next_step(state, appender).await? else {
        slot.mirror.step(state).await?;
        state.plugins.retries.report_elsewhere(u64::MAX, None);
        return Ok(StepOutcome::Following);
    };
    match step(&mut turn.worker).await {
        Ok((WorkerStep { position, is_settling }, retry_at)) => {
            turn.keep();
            let is_due = retry_at.is_some_and(|at_ms| at_ms <= state.clock.now_ms());
            Ok(match retry_at {
                _ if is_settling || is_due => StepOutcome::Unfinished,
                Some(at_ms) => StepOutcome::Retrying { reached: position, at_ms },
                None => StepOutcome::Reached(position),
            })
        }
        Err(StepEnd::Interrupted) => Ok(StepOutcome::Interrupted),
        Err(StepEnd::Overtaken) if state.is_exclusive() => Err(Error::Unavailable(store::Error::Conflict)),
        Err(StepEnd::Overtaken) => {
            let workspace = &*state.record.id;
            tracing::debug!(workspace, "another server has already processed the events of the step");
            metric::CONFLICTS.add(&["graph"], 1);
            state.leadership.forget();
            Ok(StepOutcome::Interrupted)
        }
        Err(StepEnd::Failed(error)) => Err(error),
    }
}
