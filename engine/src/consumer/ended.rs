//! The reasons why a step of the log's follower ends early.

use crate::error::Error;

/// The error for a plugin's retries that ended because another task needs the worker.
#[derive(Debug)]
pub struct Interrupted;

pub enum Ended {
    /// Another task needs the worker while a plugin is being retried.
    Interrupted,
    /// Another server has processed these events. The result of that server is kept.
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
