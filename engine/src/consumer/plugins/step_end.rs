//! The reasons why a step of the log's follower ends early.

use crate::error::Error;
use crate::store;

/// The error for calls of a plugin whose outcome is unknown, because the threads of the plugins have ended.
#[derive(Debug)]
pub struct Interruption;

pub enum StepEnd {
    /// The threads of the plugins have ended.
    Interrupted,
    /// The store has rejected a write, because another server has taken over or has processed these events. The result
    /// of that server is kept.
    Overtaken,
    Failed(Error),
}

impl From<Error> for StepEnd {
    fn from(error: Error) -> StepEnd {
        match error {
            Error::Unavailable(store::Error::Conflict) => StepEnd::Overtaken,
            error => StepEnd::Failed(error),
        }
    }
}

impl From<Interruption> for StepEnd {
    fn from(_: Interruption) -> StepEnd {
        StepEnd::Interrupted
    }
}
