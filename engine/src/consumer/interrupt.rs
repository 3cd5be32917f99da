//! Ends long waits of the follower early when another task requests the worker.

use std::sync::Arc;

use tokio::sync::watch;

/// Counts the tasks that request the worker between two of its steps.
#[derive(Clone, Default)]
pub struct Interrupt {
    waiting: Arc<watch::Sender<usize>>,
}

/// A request for the worker. Dropping it ends the request.
pub struct Wanted {
    waiting: Arc<watch::Sender<usize>>,
}

impl Interrupt {
    pub fn want(&self) -> Wanted {
        self.waiting.send_modify(|waiting| *waiting += 1);
        Wanted { waiting: self.waiting.clone() }
    }

    /// Returns once the worker is requested.
    pub async fn wanted(&self) {
        // The sender lives as long as this value.
        let _ = self.waiting.subscribe().wait_for(|waiting| *waiting > 0).await;
    }
}

impl Drop for Wanted {
    fn drop(&mut self) {
        self.waiting.send_modify(|waiting| *waiting = waiting.saturating_sub(1));
    }
}
