//! A counter, such as a position in the log. Tasks can wait for changes of the counter.

use tokio::sync::watch;

/// A counter, such as a position in the log, whose changes tasks can wait for.
#[derive(Default)]
pub struct Progress {
    position: watch::Sender<u64>,
}

impl Progress {
    pub fn position(&self) -> u64 {
        *self.position.borrow()
    }

    /// Sets the counter and wakes all waiters.
    pub fn set(&self, position: u64) {
        self.position.send_replace(position);
    }

    /// Adds 1 to the counter and wakes all waiters.
    pub fn increment(&self) {
        self.position.send_modify(|position| *position += 1);
    }

    /// Advances to a position and wakes all waiters. Has no effect if the position is not higher than the current
    /// position.
    pub fn advance(&self, position: u64) {
        self.position.send_if_modified(|known| {
            let is_ahead = position > *known;
            *known = position.max(*known);
            is_ahead
        });
    }

    pub fn follow(&self) -> watch::Receiver<u64> {
        self.position.subscribe()
    }
}

/// The progress of updating edges after the definitions or the enabled plugins have changed. Such a change affects
/// edges although no event is appended.
#[derive(Default)]
pub struct EdgeProgress {
    /// The number of redefinitions that the edges already reflect, as counted by
    /// [`Types::redefined`](super::types::Types::redefined).
    pub redefinitions: Progress,
    /// The number of aggregates whose edges have yet to be compared with the definitions and plugins.
    pub remaining: Progress,
}
