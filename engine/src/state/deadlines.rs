//! The next deadline of a workspace. Timers report the deadlines of tasks, and the worker reports the retries of parked
//! steps.

use tokio::sync::watch;

/// The last report about the deadlines.
#[derive(Clone, Copy)]
struct Outlook {
    /// The position up to which the log has been processed.
    position: u64,
    next: Option<i64>,
    /// Whether another server processes the deadlines that are due.
    is_elsewhere: bool,
}

/// The next deadline of a workspace.
#[derive(Default)]
pub struct Deadlines {
    outlook: watch::Sender<Option<Outlook>>,
}

impl Deadlines {
    /// Reports that the log has been processed up to a position, and that all deadlines before `next` have been
    /// processed. `next` is the earliest deadline that is left, in milliseconds since the epoch. This deadline may
    /// already be due.
    pub fn report(&self, position: u64, next: Option<i64>) {
        self.outlook.send_replace(Some(Outlook { position, next, is_elsewhere: false }));
    }

    /// Reports that another server, which leads the workspace, processes the deadlines that are due. `next` is the time
    /// of the next deadline, in milliseconds since the epoch.
    pub fn report_elsewhere(&self, position: u64, next: Option<i64>) {
        self.outlook.send_replace(Some(Outlook { position, next, is_elsewhere: true }));
    }

    /// Returns whether a deadline is pending. Also returns `true` before the first call of [`Deadlines::report`] or
    /// [`Deadlines::report_elsewhere`], because the next deadline is not known yet.
    pub fn is_awaited(&self) -> bool {
        self.outlook.borrow().is_none_or(|outlook| outlook.next.is_some())
    }

    /// Waits until the log has been processed up to a position, and until all deadlines due at `now_ms` have been
    /// processed or are left to another server.
    pub async fn passed(&self, position: u64, now_ms: i64) {
        let passed = |outlook: &Option<Outlook>| {
            outlook.is_some_and(|outlook| {
                let is_done = outlook.is_elsewhere || outlook.next.is_none_or(|next| next > now_ms);
                outlook.position >= position && is_done
            })
        };
        // Waiting never fails, because the sender lives as long as the workspace.
        let _ = self.outlook.subscribe().wait_for(passed).await;
    }
}
