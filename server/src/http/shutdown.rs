//! The shutdown of the server: whether it has begun, and what its end waits for.

use std::sync::Arc;

use tokio::sync::watch;

/// The shutdown signal of the server, shared by all tasks that depend on it.
#[derive(Clone, Default)]
pub struct Shutdown {
    begun: Arc<watch::Sender<bool>>,
    /// The number of [`Held`] values that delay the end.
    held: Arc<watch::Sender<usize>>,
}

/// Delays the server's end until it is dropped. An upgraded connection needs this, because the server no longer waits
/// for it.
pub struct Held(Arc<watch::Sender<usize>>);

impl Shutdown {
    pub fn begin(&self) {
        self.begun.send_replace(true);
    }

    pub fn has_begun(&self) -> bool {
        *self.begun.borrow()
    }

    /// Delays the server's end until the result is dropped.
    pub fn hold(&self) -> Held {
        self.held.send_modify(|held| *held += 1);
        Held(self.held.clone())
    }

    /// Waits until nothing delays the server's end.
    pub async fn released(&self) {
        // `self` owns the sender, so waiting cannot fail.
        let _ = self.held.subscribe().wait_for(|held| *held == 0).await;
    }

    /// Waits until the shutdown begins.
    pub async fn begun(self) {
        // `self` owns the sender, so waiting cannot fail.
        let _ = self.begun.subscribe().wait_for(|begun| *begun).await;
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.0.send_modify(|held| *held -= 1);
    }
}
