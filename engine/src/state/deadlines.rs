//! The next deadline of a workspace, as reported by its timers, or by the worker for the retries of parked steps.

use tokio::sync::watch;

/// The last report about the deadlines.
#[derive(Clone, Copy)]
struct Outlook {
    /// The position up to which the log has been processed.
    position: u64,
    next: Option<i64>,
}

/// The next deadline of a workspace.
pub struct Deadlines {
    outlook: watch::Sender<Option<Outlook>>,
}

impl Default for Deadlines {
    fn default() -> Deadlines {
        Deadlines { outlook: watch::Sender::new(None) }
    }
}

impl Deadlines {
    /// Reports that all deadlines due have been processed up to a position of the log. `next` is the time of the next
    /// deadline, in milliseconds since the epoch.
    pub fn report(&self, position: u64, next: Option<i64>) {
        self.outlook.send_replace(Some(Outlook { position, next }));
    }

    /// Returns whether a deadline is pending. Returns `true` before the first report.
    pub fn is_awaited(&self) -> bool {
        self.outlook.borrow().is_none_or(|outlook| outlook.next.is_some())
    }

    /// Waits until all deadlines due at `now_ms` have been processed, up to a position of the log.
    pub async fn passed(&self, position: u64, now_ms: i64) {
        let passed = |outlook: &Option<Outlook>| {
            outlook.is_some_and(|outlook| outlook.position >= position && outlook.next.is_none_or(|next| next > now_ms))
        };
        // Waiting never fails, because the sender lives as long as the workspace.
        let _ = self.outlook.subscribe().wait_for(passed).await;
    }
}
