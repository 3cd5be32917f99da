//! How far something has come in the log, for whoever waits for it.

use tokio::sync::watch;

/// A position that others watch.
pub struct Progress {
    position: watch::Sender<u64>,
}

impl Default for Progress {
    fn default() -> Progress {
        Progress { position: watch::Sender::new(0) }
    }
}

impl Progress {
    pub fn position(&self) -> u64 {
        *self.position.borrow()
    }

    /// Says where it is now, and wakes who waits.
    pub fn set(&self, position: u64) {
        self.position.send_replace(position);
    }

    /// Moves on to a position, and wakes who waits. One that is behind changes nothing.
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
