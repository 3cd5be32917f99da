//! What follows an append: the consumer reads the log after its checkpoints and keeps what is derived from it.
//!
//! Two followers, each with a checkpoint of its own. `nodes` writes the snapshots of folded states. `graph` takes every
//! event through enrichment, projection and dispatch; its effects are committed together with the checkpoint that
//! says so, so after a crash it resumes there, and whatever runs twice makes the same again.

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

/// A pause between the writes of snapshots, while appends go on, lets many events of one aggregate become one write.
const PAUSE: Duration = Duration::from_millis(300);
/// A shorter one, near the log's end, lets appends that come one by one become one batch.
const GATHER: Duration = Duration::from_millis(10);
/// A follower that has not ended by then is ended where it stands.
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

    /// Lets the followers come as close to the log's end as they do in a short while, and ends them.
    pub async fn stop(self) {
        self.stop.begin();
        let _hurry = self.working.hurry();
        // A model may take its time; what it leaves undone is found at the next start.
        self.vectors.abort();
        let end = Instant::now() + END_WITHIN;
        for mut task in self.tasks {
            match tokio::time::timeout_at(end, task.ended()).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => tracing::error!(%error, "a follower of the log did not end well"),
                // It waits for a plugin. What it had not committed is done again at the next start.
                Err(_) => task.abort(),
            }
        }
        match tokio::time::timeout_at(end, self.working.settle()).await {
            Ok(Ok(())) | Err(_) => {}
            Ok(Err(error)) => tracing::warn!(%error, "where the graph's follower stands was not written"),
        }
    }
}

/// A step of the follower that grows the graph. One that ends early is taken again from what is stored.
async fn work_on(state: &Arc<State>, appender: &Appender, working: &Working) -> Result<Stepped> {
    let mut turn = working.next_step(state, appender).await?;
    match turn.step().await {
        Ok(position) => {
            turn.keep();
            Ok(Stepped::To(position))
        }
        Err(Ended::Interrupted) => Ok(Stepped::MadeWay),
        Err(Ended::Overtaken) => {
            tracing::debug!("another server took these events in");
            Ok(Stepped::MadeWay)
        }
        Err(Ended::Failed(error)) => Err(error),
    }
}
