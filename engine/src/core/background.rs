//! Background tasks of an open workspace: how they are told to end, and what ends them when nobody holds them any more.

use tokio::sync::watch;
use tokio::task::{JoinError, JoinHandle};

/// Tells tasks to end. Dropping it tells them as well: a task whose owner is gone must not go on.
pub struct Stop(watch::Sender<bool>);

/// The receiving end of a [`Stop`].
#[derive(Clone)]
pub struct Stopped(watch::Receiver<bool>);

impl Stop {
    pub fn new() -> (Stop, Stopped) {
        let (sender, receiver) = watch::channel(false);
        (Stop(sender), Stopped(receiver))
    }

    /// Tells the tasks to end.
    pub fn begin(&self) {
        self.0.send_replace(true);
    }
}

impl Stopped {
    /// Whether the task has to end.
    pub fn has_begun(&self) -> bool {
        *self.0.borrow() || self.0.has_changed().is_err()
    }

    /// Returns once the task has to end.
    pub async fn begun(&mut self) {
        // An error means that the sender is gone, which is the same.
        let _ = self.0.wait_for(|begun| *begun).await;
    }
}

/// A task that is aborted when its handle is dropped.
pub struct Background(JoinHandle<()>);

impl Background {
    pub fn spawn(task: impl Future<Output = ()> + Send + 'static) -> Background {
        Background(tokio::spawn(task))
    }

    /// Returns when the task has ended by itself.
    pub async fn ended(&mut self) -> Result<(), JoinError> {
        (&mut self.0).await
    }

    pub fn abort(&self) {
        self.0.abort();
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.0.abort();
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use futures_util::poll;

    use super::*;

    #[tokio::test]
    async fn a_dropped_stop_means_stop() {
        let (stop, mut stopped) = Stop::new();
        assert!(!stopped.has_begun());
        assert!(poll!(pin!(stopped.clone().begun())).is_pending());
        let other = stopped.clone();
        drop(stop);
        assert!(stopped.has_begun() && other.has_begun());
        stopped.begun().await;
    }

    #[tokio::test]
    async fn a_dropped_handle_ends_its_task() {
        let (kept, mut gone) = watch::channel(());
        let task = Background::spawn(async move {
            let _kept = kept;
            std::future::pending::<()>().await;
        });
        tokio::task::yield_now().await;
        drop(task);
        assert!(gone.changed().await.is_err(), "the task was dropped with all it held");
    }
}
