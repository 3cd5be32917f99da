//! The reasons why a step of the log's follower ends early.

use crate::error::Error;

/// The error for calls of a plugin whose outcome is unknown, because the threads of the plugins have ended.
#[derive(Debug)]
pub struct Interrupted;

pub enum Ended {
    /// The threads of the plugins have ended.
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
