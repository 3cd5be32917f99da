//! What follows an append: the consumer reads the log after its checkpoints and keeps what is derived from it.
//!
//! Two followers, each with a checkpoint of its own. `nodes` writes the snapshots of folded states. `graph` takes every
//! event through enrichment, projection and dispatch; its effects are committed together with the checkpoint that
//! says so, so after a crash it resumes there, and whatever runs twice makes the same again.

mod attempt;
pub mod circuit;
mod dispatch;
pub mod dry_run;
mod enrich;
pub mod event_context;
mod labels;
mod nodes;
mod parking;
mod project;
pub mod rebuild;
pub mod replay;
mod roster;
mod steps;
mod vectors;
mod work;
pub mod worker;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Mutex, watch};
use tokio::time::Instant;

use crate::core::append::Appender;
use crate::core::{GRAPH, NODES, State};
use crate::error::Result;
use worker::Worker;

/// A pause between the writes of snapshots, while appends go on, lets many events of one aggregate become one write.
const PAUSE: Duration = Duration::from_millis(300);
/// A shorter one, near the log's end, lets appends that come one by one become one batch.
const GATHER: Duration = Duration::from_millis(10);
/// Events for which a batch is worth its while.
const FAR: u64 = 256;
/// Waits after failures grow from the first to the last.
const FIRST_WAIT: Duration = Duration::from_millis(50);
const LONGEST_WAIT: Duration = Duration::from_secs(10);
/// How long the consumer goes on after it was told to stop, to leave little for the next start to do again.
const STOP_WITHIN: Duration = Duration::from_secs(2);

/// A follower that has not ended by then is ended where it stands.
const END_WITHIN: Duration = Duration::from_secs(4);

/// The followers of one open workspace.
pub struct Consumer {
    stop: watch::Sender<bool>,
    tasks: [tokio::task::JoinHandle<()>; 3],
    vectors: tokio::task::JoinHandle<()>,
}

/// The follower that grows the graph, once it has taken up its work. Whoever holds it holds the follower up.
pub type Working = Arc<Mutex<Option<Worker>>>;

impl Consumer {
    pub fn start(state: Arc<State>, appender: Appender, working: Working) -> Consumer {
        let (stop, stopped) = watch::channel(false);
        let labels = tokio::spawn(labels::follow(state.clone(), stopped.clone()));
        let vectors = tokio::spawn(vectors::follow(state.clone(), stopped.clone()));
        let nodes =
            follow(state.clone(), NODES, Rest::WhileAppending(PAUSE), stopped.clone(), async |state: Arc<State>| {
                nodes::step(&state).await
            });
        let graph = follow(state, GRAPH, Rest::NearTheEnd(GATHER), stopped, async move |state: Arc<State>| {
            work_on(state, &appender, &working).await
        });
        Consumer { stop, tasks: [tokio::spawn(nodes), tokio::spawn(graph), labels], vectors }
    }

    /// Lets the followers come as close to the log's end as they do in [`STOP_WITHIN`], and ends them.
    pub async fn stop(self) {
        self.stop.send_replace(true);
        // A model may take its time; what it leaves undone is found at the next start.
        self.vectors.abort();
        let end = Instant::now() + END_WITHIN;
        for mut task in self.tasks {
            match tokio::time::timeout_at(end, &mut task).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => tracing::error!(%error, "a follower of the log did not end well"),
                // It waits for a plugin. What it had not committed is done again at the next start.
                Err(_) => task.abort(),
            }
        }
    }
}

/// When a follower rests.
#[derive(Clone, Copy)]
enum Rest {
    /// After each step while others append.
    WhileAppending(Duration),
    /// Where it is not [`FAR`] behind the log's end.
    NearTheEnd(Duration),
}

/// A step of the follower that grows the graph.
async fn work_on(state: Arc<State>, appender: &Appender, working: &Working) -> Result<u64> {
    let mut working = working.lock().await;
    let worker = match &mut *working {
        Some(worker) => worker,
        none => none.insert(Worker::resume(state, appender.clone()).await?),
    };
    worker.step().await
}

/// Steps behind the log's end for as long as it is not told to stop. A step answers the position that it came to.
async fn follow(
    state: Arc<State>,
    name: &'static str,
    rest: Rest,
    mut stopped: watch::Receiver<bool>,
    step: impl AsyncFn(Arc<State>) -> Result<u64>,
) {
    let mut head = state.folded.head().follow();
    let (Rest::WhileAppending(pause) | Rest::NearTheEnd(pause)) = rest;
    let mut wait = pause;
    let mut stop_at = None;
    loop {
        let lag = match step(state.clone()).await {
            Ok(reached) => {
                wait = pause;
                let lag = head.borrow_and_update().saturating_sub(reached);
                metrics::gauge!("foldwork_consumer_lag_events", "consumer" => name).set(lag as f64);
                lag
            }
            Err(error) => {
                tracing::warn!(%error, consumer = name, "step failed, will be tried again");
                wait = (wait * 2).clamp(FIRST_WAIT, LONGEST_WAIT);
                u64::MAX
            }
        };
        if *stopped.borrow() {
            let end = *stop_at.get_or_insert_with(|| Instant::now() + STOP_WITHIN);
            if lag == 0 || wait > pause || Instant::now() >= end {
                return;
            }
            continue;
        }
        if lag == 0 {
            tokio::select! {
                changed = head.changed() => if changed.is_err() { return },
                _ = stopped.changed() => {}
            }
        }
        let hurries = wait == pause
            && match rest {
                Rest::WhileAppending(_) => lag > 0 && !head.has_changed().unwrap_or(true),
                Rest::NearTheEnd(_) => lag >= FAR,
            };
        if !hurries {
            self::rest(&mut stopped, wait).await;
        }
    }
}

/// Waits, but no longer than until the consumer is told to stop.
async fn rest(stopped: &mut watch::Receiver<bool>, time: Duration) {
    if !*stopped.borrow() {
        tokio::select! {
            () = tokio::time::sleep(time) => {}
            _ = stopped.changed() => {}
        }
    }
}
