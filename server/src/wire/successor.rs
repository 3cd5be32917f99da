//! The successor in requests: the agent or user that takes over the tasks of a removed agent or user.

use foldwork_engine::Error;
use foldwork_engine::model::facts::Assignee;

/// Parses a successor. `wrong` creates the error from a description of the allowed values.
pub fn read_successor(
    text: Option<&str>,
    wrong: impl FnOnce(&'static str) -> Error,
) -> Result<Option<Assignee>, Error> {
    text.map(|text| Assignee::parse(text).ok_or_else(|| wrong("expected agent:ID or user:ID"))).transpose()
}

/// Returns the error for an invalid query parameter `reassign_to`. `allowed` describes the allowed values.
pub fn successor_parameter(allowed: &'static str) -> Error {
    Error::invalid(format!("reassign_to is not valid: {allowed}"))
}
