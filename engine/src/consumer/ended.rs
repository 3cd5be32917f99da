//! The reasons why a step of the follower ends early.

use crate::error::Error;

/// The waits for a plugin ended because another task requested the worker.
#[derive(Debug)]
pub struct Interrupted;

pub enum Ended {
    /// Another task requested the worker while a plugin was being retried.
    Interrupted,
    /// Another server has processed these events. What that server wrote counts.
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
