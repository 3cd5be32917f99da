//! The shutdown of the server: a signal that the shutdown has begun, and guards that delay the end of the process.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// The shutdown signal of the server. All clones share the signal.
#[derive(Clone, Default)]
pub struct Shutdown {
    /// Whether the shutdown will begin soon.
    announced: Arc<AtomicBool>,
    begun: CancellationToken,
    /// The number of [`ShutdownGuard`] values that delay the server's end.
    held: Arc<watch::Sender<usize>>,
}

/// A guard that delays the server's end until the guard is dropped. Upgraded connections hold a guard, because the HTTP
/// server does not wait for these connections.
pub struct ShutdownGuard(Arc<watch::Sender<usize>>);

impl Shutdown {
    /// Announces that the shutdown will begin soon. Until the shutdown begins, requests are still served.
    pub fn announce(&self) {
        self.announced.store(true, Ordering::Release);
    }

    /// Returns whether the shutdown has begun or was announced.
    pub fn is_announced(&self) -> bool {
        self.announced.load(Ordering::Acquire) || self.has_begun()
    }

    pub fn begin(&self) {
        self.begun.cancel();
    }

    pub fn has_begun(&self) -> bool {
        self.begun.is_cancelled()
    }

    /// Returns a guard that delays the server's end until the guard is dropped.
    pub fn hold(&self) -> ShutdownGuard {
        self.held.send_modify(|held| *held += 1);
        ShutdownGuard(self.held.clone())
    }

    /// Waits until all guards are dropped.
    pub async fn released(&self) {
        // `self` owns the sender, so waiting cannot fail.
        let _ = self.held.subscribe().wait_for(|held| *held == 0).await;
    }

    /// Waits until the shutdown begins.
    pub async fn begun(self) {
        self.begun.cancelled().await;
    }
}

impl Drop for ShutdownGuard {
    fn drop(&mut self) {
        self.0.send_modify(|held| *held -= 1);
    }
}
