//! What waits for a time in this workspace, for whoever asks: its timers say when the next one is.

use tokio::sync::watch;

/// What the timers said last.
#[derive(Clone, Copy)]
struct Outlook {
    /// Up to where they know the log.
    position: u64,
    next: Option<i64>,
}

/// When the next deadline of a workspace is.
pub struct Deadlines {
    outlook: watch::Sender<Option<Outlook>>,
}

impl Default for Deadlines {
    fn default() -> Deadlines {
        Deadlines { outlook: watch::Sender::new(None) }
    }
}

impl Deadlines {
    /// Says that everything due was seen to, as of a position, and when the next deadline is.
    pub fn tell(&self, position: u64, next: Option<i64>) {
        self.outlook.send_replace(Some(Outlook { position, next }));
    }

    /// Whether anything waits for its time. What is not known yet may.
    pub fn is_awaited(&self) -> bool {
        self.outlook.borrow().is_none_or(|told| told.next.is_some())
    }

    /// Returns when all that was due at a time, as of a position, was seen to.
    pub async fn passed(&self, position: u64, now_ms: i64) {
        let passed = |told: &Option<Outlook>| {
            told.is_some_and(|told| told.position >= position && told.next.is_none_or(|next| next > now_ms))
        };
        // The sender lives as long as the workspace.
        let _ = self.outlook.subscribe().wait_for(passed).await;
    }
}
