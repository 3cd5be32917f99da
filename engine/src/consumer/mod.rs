//! What follows an append: the consumer reads the log after its checkpoint and keeps what is derived from it.
//!
//! A step takes events, and its effects are committed together with the checkpoint that says so; after a crash it
//! resumes there, and whatever runs twice writes the same again. The steps in their order are: enrich, project,
//! dispatch, notify. Of these, `nodes` (the snapshots that projection begins with) is here; enrichment puts its facts
//! before it and dispatch its tasks after it, each under a checkpoint of its own name.

mod nodes;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use crate::workspace::state::Open;

/// Name of the checkpoint behind which the node records stand.
pub const NODES: &str = "nodes";

/// A pause between steps lets many events of one aggregate become one write.
const PAUSE: Duration = Duration::from_millis(100);
/// Waits after failures grow up to this.
const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// The consumer of one open workspace.
pub struct Consumer {
    stop: watch::Sender<bool>,
    task: tokio::task::JoinHandle<()>,
}

impl Consumer {
    pub fn start(open: Arc<Open>) -> Consumer {
        let (stop, stopped) = watch::channel(false);
        let task = tokio::spawn(follow(open, stopped));
        Consumer { stop, task }
    }

    /// Lets the consumer finish what is in the log and ends it.
    pub async fn stop(self) {
        self.stop.send_replace(true);
        if let Err(error) = self.task.await {
            tracing::error!(%error, "the consumer did not end well");
        }
    }
}

async fn follow(open: Arc<Open>, mut stopped: watch::Receiver<bool>) {
    let mut head = open.follow();
    let mut wait = PAUSE;
    let mut position = None;
    loop {
        let step = match position {
            None => open.log.checkpoint(NODES).await.map_err(Into::into),
            Some(position) => nodes::step(&open, position).await,
        };
        match step {
            Ok(reached) => {
                wait = PAUSE;
                let first = position.replace(reached).is_none();
                metrics::gauge!("foldwork_consumer_lag_events", "consumer" => NODES)
                    .set(open.resident.position().saturating_sub(reached) as f64);
                if first || reached < *head.borrow_and_update() {
                    pause(&mut stopped, if first { Duration::ZERO } else { wait }).await;
                    continue;
                }
            }
            Err(error) => {
                tracing::warn!(%error, consumer = NODES, "step failed, will be tried again");
                wait = (wait * 2).min(LONGEST_WAIT);
                if *stopped.borrow() {
                    return;
                }
                pause(&mut stopped, wait).await;
                continue;
            }
        }
        if *stopped.borrow() {
            return;
        }
        tokio::select! {
            changed = head.changed() => if changed.is_err() { return },
            _ = stopped.changed() => {}
        }
        pause(&mut stopped, PAUSE).await;
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
