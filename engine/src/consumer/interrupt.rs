//! Lets long waits of the follower end early where somebody wants the worker.

use std::sync::Arc;

use tokio::sync::watch;

/// How many want the worker between two of its steps.
#[derive(Clone, Default)]
pub struct Interrupt {
    waiting: Arc<watch::Sender<usize>>,
}

/// Somebody wants the worker until this is dropped.
pub struct Wanted {
    waiting: Arc<watch::Sender<usize>>,
}

impl Interrupt {
    pub fn want(&self) -> Wanted {
        self.waiting.send_modify(|waiting| *waiting += 1);
        Wanted { waiting: self.waiting.clone() }
    }

    /// Returns once somebody wants the worker.
    pub async fn wanted(&self) {
        // The sender lives as long as this.
        let _ = self.waiting.subscribe().wait_for(|waiting| *waiting > 0).await;
    }
}

impl Drop for Wanted {
    fn drop(&mut self) {
        self.waiting.send_modify(|waiting| *waiting = waiting.saturating_sub(1));
    }
}
