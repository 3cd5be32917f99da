//! The reasons why a step of the log's follower ends early.

use crate::error::Error;

/// The error for calls of a plugin whose outcome is unknown, because the threads of the plugins have ended.
#[derive(Debug)]
pub struct Interruption;

pub enum StepEnd {
    /// The threads of the plugins have ended.
    Interrupted,
    /// Another server has processed these events. The result of that server is kept.
    Overtaken,
    Failed(Error),
}

impl From<Error> for StepEnd {
    fn from(error: Error) -> StepEnd {
        StepEnd::Failed(error)
    }
}

impl From<Interruption> for StepEnd {
    fn from(_: Interruption) -> StepEnd {
        StepEnd::Interrupted
    }
}
