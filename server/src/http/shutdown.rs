//! The shutdown of the server: whether it has begun, and what holds its end back.

use std::sync::Arc;

use tokio::sync::watch;

/// Whether the server is on its way down. Shared by whoever must know.
#[derive(Clone, Default)]
pub struct Shutdown {
    begun: Arc<watch::Sender<bool>>,
    /// How many hold the end back.
    held: Arc<watch::Sender<usize>>,
}

/// Holds the end back for a while: what was upgraded is no connection any more that anybody else waits for.
pub struct Held(Arc<watch::Sender<usize>>);

impl Shutdown {
    pub fn begin(&self) {
        self.begun.send_replace(true);
    }

    pub fn has_begun(&self) -> bool {
        *self.begun.borrow()
    }

    /// Something that has an end of its own begins.
    pub fn hold(&self) -> Held {
        self.held.send_modify(|held| *held += 1);
        Held(self.held.clone())
    }

    /// Returns when nothing holds the end back.
    pub async fn released(&self) {
        // The sender is held here, so waiting cannot fail.
        let _ = self.held.subscribe().wait_for(|held| *held == 0).await;
    }

    /// Returns once it has begun: what else would stay open ends then.
    pub async fn begun(self) {
        // The sender is held here, so waiting cannot fail.
        let _ = self.begun.subscribe().wait_for(|begun| *begun).await;
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.0.send_modify(|held| *held -= 1);
    }
}
