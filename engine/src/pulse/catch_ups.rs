//! The catch-ups of open workspaces. A catch-up reads the events and definitions that other servers have added. Each
//! workspace runs at most one catch-up at a time.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::store::control::servers::WorkspaceProgress;

/// The pause after a failed catch-up.
const PAUSE: Duration = Duration::from_secs(1);

/// The cause of a catch-up.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Cause {
    /// The log is checked without a report from another server, in case a report is late or missing.
    Check,
    /// Other servers have reported progress.
    Progress(WorkspaceProgress),
}

/// The catch-ups that run or wait, by workspace id.
#[derive(Default)]
pub struct CatchUps(Mutex<HashMap<Arc<str>, CatchUp>>);

#[derive(Default)]
struct CatchUp {
    is_running: bool,
    waiting: Option<PendingCatchUp>,
}

/// A catch-up that waits for the end of the running catch-up, and for the end of the pause after a failed catch-up.
struct PendingCatchUp {
    cause: Cause,
    not_before: Option<Instant>,
}

impl PendingCatchUp {
    fn is_due(&self, now: Instant) -> bool {
        self.not_before.is_none_or(|not_before| not_before <= now)
    }
}

impl CatchUps {
    /// Adds a catch-up of a workspace. If a catch-up of the workspace already waits, merges the causes of both.
    pub fn add(&self, id: &Arc<str>, cause: Cause) {
        self.0.lock().entry(id.clone()).or_default().add(cause);
    }

    /// Returns whether a catch-up is due.
    pub fn has_due(&self, now: Instant) -> bool {
        self.0.lock().values().any(|catch_up| catch_up.due(now).is_some())
    }

    /// Begins the catch-up of a workspace, and returns its cause. Returns `None` if no catch-up is due.
    pub fn begin(&self, id: &str, now: Instant) -> Option<Cause> {
        let mut catch_ups = self.0.lock();
        let catch_up = catch_ups.get_mut(id)?;
        let cause = catch_up.due(now)?.cause;
        *catch_up = CatchUp { is_running: true, waiting: None };
        Some(cause)
    }

    /// Ends the catch-up of a workspace. If the catch-up failed, `failed` is the cause with which the catch-up began,
    /// and the catch-up is repeated with this cause after a pause. If the catch-up succeeded, `failed` is `None`.
    pub fn end(&self, id: &Arc<str>, failed: Option<Cause>, now: Instant) {
        let mut catch_ups = self.0.lock();
        if let Some(catch_up) = catch_ups.get_mut(id) {
            catch_up.is_running = false;
            if let Some(cause) = failed {
                catch_up.add(cause).not_before = Some(now + PAUSE);
            }
        }
        catch_ups.retain(|_, catch_up| catch_up.is_running || catch_up.waiting.is_some());
    }

    /// Removes the catch-ups that are due but did not begin, because their workspaces were closed. If a catch-up ends
    /// between the calls of `begin` and this call, also removes the next catch-up of its workspace, which is open.
    pub fn remove_due(&self, now: Instant) {
        self.0.lock().retain(|_, catch_up| catch_up.due(now).is_none());
    }
}

impl CatchUp {
    /// Adds a cause to the waiting catch-up, and returns the waiting catch-up. If no catch-up waits, creates one.
    fn add(&mut self, cause: Cause) -> &mut PendingCatchUp {
        let waiting = self.waiting.get_or_insert(PendingCatchUp { cause, not_before: None });
        waiting.cause = match (waiting.cause, cause) {
            (Cause::Progress(known), Cause::Progress(progress)) => Cause::Progress(known.merged(progress)),
            (Cause::Check, cause) | (cause, Cause::Check) => cause,
        };
        waiting
    }

    /// Returns the waiting catch-up if it may begin.
    fn due(&self, now: Instant) -> Option<&PendingCatchUp> {
        self.waiting.as_ref().filter(|waiting| !self.is_running && waiting.is_due(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn writes(writes: u64) -> Cause {
        Cause::Progress(WorkspaceProgress { writes, ..WorkspaceProgress::default() })
    }

    #[test]
    fn progress_that_arrives_during_a_catch_up_waits_until_the_catch_up_ends() {
        let (catch_ups, id, now): (_, Arc<str>, _) = (CatchUps::default(), "a".into(), Instant::now());
        assert_eq!(catch_ups.begin(&id, now), None);
        catch_ups.add(&id, writes(1));
        assert_eq!(catch_ups.begin(&id, now), Some(writes(1)));
        catch_ups.add(&id, writes(3));
        catch_ups.add(&id, Cause::Check);
        catch_ups.add(&id, writes(2));
        assert!(!catch_ups.has_due(now));
        assert_eq!(catch_ups.begin(&id, now), None);
        catch_ups.end(&id, None, now);
        assert_eq!(catch_ups.begin(&id, now), Some(writes(3)));
        catch_ups.end(&id, None, now);
        assert!(catch_ups.0.lock().is_empty());
    }

    #[test]
    fn a_failed_catch_up_is_repeated_after_a_pause() {
        let (catch_ups, id, now): (_, Arc<str>, _) = (CatchUps::default(), "a".into(), Instant::now());
        catch_ups.add(&id, writes(1));
        let failed = catch_ups.begin(&id, now);
        catch_ups.add(&id, writes(2));
        catch_ups.end(&id, failed, now);
        assert!(!catch_ups.has_due(now));
        catch_ups.remove_due(now);
        assert_eq!(catch_ups.begin(&id, now + PAUSE), Some(writes(2)));
    }

    #[test]
    fn a_catch_up_of_a_closed_workspace_is_removed() {
        let (catch_ups, now) = (CatchUps::default(), Instant::now());
        catch_ups.add(&"running".into(), Cause::Check);
        assert_eq!(catch_ups.begin("running", now), Some(Cause::Check));
        catch_ups.add(&"running".into(), writes(1));
        catch_ups.add(&"closed".into(), writes(1));
        catch_ups.remove_due(now);
        assert!(!catch_ups.has_due(now));
        catch_ups.end(&"running".into(), None, now);
        assert_eq!(catch_ups.begin("running", now), Some(writes(1)));
    }
}
