//! The reasons why a step of the log's follower ends early.

use crate::error::Error;
use crate::store;

/// The error of plugin calls with an unknown outcome. The outcome is unknown if the threads of the plugins have ended.
#[derive(Debug)]
pub struct Interruption;

pub enum StepEnd {
    /// The threads of the plugins have ended.
    Interrupted,
    /// The step failed with a conflict, because another server has taken over or has processed the events of the step.
    /// The result of the other server is kept.
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
