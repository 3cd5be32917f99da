//! What follows an append: the consumer reads the log after its checkpoint and keeps what is derived from it.
//!
//! A step takes events, and its effects are committed together with the checkpoint that says so; after a crash it
//! resumes there, and whatever runs twice writes the same again. The steps in their order are: enrich, project,
//! dispatch, notify. Of these, `nodes` (the snapshots that projection begins with) is here; enrichment puts its facts
//! before it and dispatch its tasks after it, each under a checkpoint of its own name.

mod labels;
mod nodes;
mod vectors;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

use crate::workspace::state::Open;

/// Name of the checkpoint behind which the node records stand.
pub const NODES: &str = "nodes";

/// A pause between steps lets many events of one aggregate become one write.
const PAUSE: Duration = Duration::from_millis(300);
/// Waits after failures grow up to this.
const LONGEST_WAIT: Duration = Duration::from_secs(10);
/// How long the consumer goes on after it was told to stop, to leave little for the next start to fold again.
const STOP_WITHIN: Duration = Duration::from_secs(2);

/// The consumer of one open workspace.
pub struct Consumer {
    stop: watch::Sender<bool>,
    task: tokio::task::JoinHandle<()>,
    labels: tokio::task::JoinHandle<()>,
    vectors: tokio::task::JoinHandle<()>,
}

impl Consumer {
    pub fn start(open: Arc<Open>) -> Consumer {
        let (stop, stopped) = watch::channel(false);
        let labels = tokio::spawn(labels::follow(open.clone(), stopped.clone()));
        let vectors = tokio::spawn(vectors::follow(open.clone(), stopped.clone()));
        let task = tokio::spawn(follow(open, stopped));
        Consumer { stop, task, labels, vectors }
    }

    /// Lets the consumer come as close to the log's end as it does in [`STOP_WITHIN`], and ends it.
    pub async fn stop(self) {
        self.stop.send_replace(true);
        // A model may take its time; what it leaves undone is found at the next start.
        self.vectors.abort();
        for task in [self.task, self.labels] {
            if let Err(error) = task.await {
                tracing::error!(%error, "the consumer did not end well");
            }
        }
    }
}

async fn follow(open: Arc<Open>, mut stopped: watch::Receiver<bool>) {
    let mut head = open.follow();
    let mut wait = PAUSE;
    let mut stop_at = None;
    loop {
        let behind = match nodes::step(&open).await {
            Ok(reached) => {
                wait = PAUSE;
                let behind = head.borrow_and_update().saturating_sub(reached);
                metrics::gauge!("foldwork_consumer_lag_events", "consumer" => NODES).set(behind as f64);
                behind > 0
            }
            Err(error) => {
                tracing::warn!(%error, consumer = NODES, "step failed, will be tried again");
                wait = (wait * 2).min(LONGEST_WAIT);
                true
            }
        };
        if *stopped.borrow() {
            let end = *stop_at.get_or_insert_with(|| Instant::now() + STOP_WITHIN);
            if !behind || wait > PAUSE || Instant::now() >= end {
                return;
            }
            continue;
        }
        if !behind {
            tokio::select! {
                changed = head.changed() => if changed.is_err() { return },
                _ = stopped.changed() => {}
            }
        }
        pause(&mut stopped, wait).await;
    }
}

/// Waits, but no longer than until the consumer is told to stop.
async fn pause(stopped: &mut watch::Receiver<bool>, time: Duration) {
    if !*stopped.borrow() {
        tokio::select! {
            () = tokio::time::sleep(time) => {}
            _ = stopped.changed() => {}
        }
    }
}
