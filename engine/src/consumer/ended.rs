//! Why a step of the follower ended early.

use crate::error::Error;

/// The waits of a plugin ended, since somebody wants the worker.
#[derive(Debug)]
pub struct Interrupted;

pub enum Ended {
    /// Somebody wants the worker, while a plugin is tried again and again.
    Interrupted,
    /// Another process took these events in; what it wrote is what counts.
    Overtaken,
    Failed(Error),
}

impl From<Error> for Ended {
    fn from(error: Error) -> Ended {
        Ended::Failed(error)
    }
}

impl From<Interrupted> for Ended {
    fn from(_: Interrupted) -> Ended {
        Ended::Interrupted
    }
}
