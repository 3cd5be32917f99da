//! Ends long waits of the log's follower early when another task needs the worker.

use std::sync::Arc;

use tokio::sync::watch;

/// The number of tasks that are requesting the worker. The worker serves these tasks between two of the follower's
/// steps.
#[derive(Clone, Default)]
pub struct Interrupt {
    waiting: Arc<watch::Sender<usize>>,
}

/// A request for the worker. Dropping it ends the request.
pub struct InterruptRequest {
    waiting: Arc<watch::Sender<usize>>,
}

impl Interrupt {
    pub fn request(&self) -> InterruptRequest {
        self.waiting.send_modify(|waiting| *waiting += 1);
        InterruptRequest { waiting: self.waiting.clone() }
    }

    /// Waits until a task requests the worker.
    pub async fn requested(&self) {
        // Waiting never fails, because the sender lives as long as `self`.
        let _ = self.waiting.subscribe().wait_for(|waiting| *waiting > 0).await;
    }
}

impl Drop for InterruptRequest {
    fn drop(&mut self) {
        self.waiting.send_modify(|waiting| *waiting = waiting.saturating_sub(1));
    }
}
