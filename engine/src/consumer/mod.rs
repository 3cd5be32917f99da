//! The consumer: follows the log after its checkpoints and maintains what is derived from events.
//!
//! There are two followers, each with its own checkpoint. `nodes` writes the snapshots of folded states. `graph` takes
//! every event through enrichment, projection and dispatch. The effects are committed together with the checkpoint, so
//! the follower resumes there after a crash. Work that runs twice has the same result.

mod attempt;
mod checkpointer;
pub mod circuit;
mod circuits;
mod dispatch;
pub mod dry_run;
mod ended;
mod enrich;
pub mod event_context;
mod follow;
mod interrupt;
mod labels;
pub mod late_steps;
mod mentions;
mod nodes;
mod parking;
mod project;
pub mod rebuild;
pub mod replay;
mod roster;
mod route;
mod vectors;
mod waiting;
mod work;
mod worker;
mod working;
mod workshop;

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::core::append::Appender;
use crate::core::background::{Background, Stop};
use crate::core::{GRAPH, NODES, State};
use crate::error::Result;
use ended::Ended;
use follow::{Rest, Stepped, follow};
pub use working::{WorkerTurn, Working};

/// Pause between the writes of snapshots during appends. Lets several events of one aggregate become one write.
const PAUSE: Duration = Duration::from_millis(300);
/// Shorter pause near the log's end. Lets single appends become one batch.
const GATHER: Duration = Duration::from_millis(10);
/// A follower that has not ended by then is aborted.
const END_WITHIN: Duration = Duration::from_secs(2);

/// The followers of one open workspace.
pub struct Consumer {
    stop: Stop,
    working: Working,
    tasks: [Background; 3],
    vectors: Background,
}

impl Consumer {
    pub fn start(state: Arc<State>, appender: Appender, working: Working) -> Consumer {
        let (stop, stopped) = Stop::new();
        let labels = Background::spawn(labels::follow(state.clone(), stopped.clone()));
        let vectors = Background::spawn(vectors::follow(state.clone(), stopped.clone()));
        let stopping = stopped.clone();
        let nodes = follow(
            state.clone(),
            NODES,
            Rest::WhileAppending(PAUSE),
            stopped.clone(),
            async move |state: Arc<State>| {
                if stopping.has_begun() {
                    state.folded.hurry_dirty();
                }
                nodes::step(&state).await
            },
        );
        let kept = working.clone();
        let graph = follow(state, GRAPH, Rest::NearTheEnd(GATHER), stopped, async move |state: Arc<State>| {
            work_on(&state, &appender, &working).await
        });
        Consumer { stop, working: kept, tasks: [Background::spawn(nodes), Background::spawn(graph), labels], vectors }
    }

    /// Gives the followers a short time to approach the log's end, then ends them.
    pub async fn stop(self) {
        self.stop.begin();
        let _hurry = self.working.hurry();
        // A model may be slow; the next start resumes what is left.
        self.vectors.abort();
        let end = Instant::now() + END_WITHIN;
        for mut task in self.tasks {
            match tokio::time::timeout_at(end, task.ended()).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => tracing::error!(%error, "a follower of the log did not end cleanly"),
                // The follower waits for a plugin. Uncommitted work is repeated at the next start.
                Err(_) => task.abort(),
            }
        }
        match tokio::time::timeout_at(end, self.working.settle()).await {
            Ok(Ok(())) | Err(_) => {}
            Ok(Err(error)) => tracing::warn!(%error, "the position of the graph's follower was not written"),
        }
    }
}

/// Runs a step of the graph's follower. A step that ended early is repeated from the stored state.
async fn work_on(state: &Arc<State>, appender: &Appender, working: &Working) -> Result<Stepped> {
    let mut turn = working.next_step(state, appender).await?;
    match turn.step().await {
        Ok(position) => {
            turn.keep();
            Ok(Stepped::To(position))
        }
        Err(Ended::Interrupted) => Ok(Stepped::MadeWay),
        Err(Ended::Overtaken) => {
            tracing::debug!("another server has processed these events");
            Ok(Stepped::MadeWay)
        }
        Err(Ended::Failed(error)) => Err(error),
    }
}
