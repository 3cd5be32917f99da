//! Background tasks of an open workspace: signals to stop them, and handles that abort them when dropped.

use tokio::sync::watch;
use tokio::task::{JoinError, JoinHandle};

/// A signal for tasks to stop. Dropping this value sends the signal as well, because a task must not outlive its owner.
pub struct Stop(watch::Sender<bool>);

/// The receiving end of a [`Stop`].
#[derive(Clone)]
pub struct StopSignal(watch::Receiver<bool>);

impl Stop {
    pub fn new() -> (Stop, StopSignal) {
        let (sender, receiver) = watch::channel(false);
        (Stop(sender), StopSignal(receiver))
    }

    /// Signals the tasks to stop.
    pub fn begin(&self) {
        self.0.send_replace(true);
    }
}

impl StopSignal {
    /// Returns whether the task must stop.
    pub fn has_begun(&self) -> bool {
        *self.0.borrow() || self.0.has_changed().is_err()
    }

    /// Waits until the task must stop.
    pub async fn begun(&mut self) {
        // An error means that the sender was dropped, so the task must stop as well.
        let _ = self.0.wait_for(|begun| *begun).await;
    }
}

/// A task that is aborted when its handle is dropped.
pub struct Background(JoinHandle<()>);

impl Background {
    pub fn spawn(task: impl Future<Output = ()> + Send + 'static) -> Background {
        Background(tokio::spawn(task))
    }

    /// Waits until the task has ended. Does not abort the task.
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
    async fn dropping_the_stop_handle_signals_tasks_to_stop() {
        let (stop, mut stopped) = Stop::new();
        assert!(!stopped.has_begun());
        assert!(poll!(pin!(stopped.clone().begun())).is_pending());
        let other = stopped.clone();
        drop(stop);
        assert!(stopped.has_begun() && other.has_begun());
        stopped.begun().await;
    }

    #[tokio::test]
    async fn dropping_a_handle_ends_its_task() {
        let (kept, mut gone) = watch::channel(());
        let task = Background::spawn(async move {
            let _kept = kept;
            std::future::pending::<()>().await;
        });
        tokio::task::yield_now().await;
        drop(task);
        assert!(gone.changed().await.is_err(), "the task still exists");
    }
}
