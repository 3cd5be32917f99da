//! Output that a person has sent back for changes. An approval of such output needs an explicit flag, so that a person
//! does not approve the old output by accident while the agent works on the changes.

use super::command::ApprovalOverrides;
use crate::error::{Error, ErrorCode, Result};
use crate::model::excerpt::excerpt_of;
use crate::model::task::Task;
use crate::model::value::{Object, Value};

/// Fails if one of the artifacts to approve was delivered before the last request for changes, unless `accepted` allows
/// superseded artifacts.
pub fn check(task: &Task<'_>, artifacts: &[&Object], accepted: ApprovalOverrides) -> Result<()> {
    let sent_back: Vec<&str> = task.sent_back().filter_map(|artifact| artifact.text("id")).collect();
    let is_old = |artifact: &&&Object| artifact.text("id").is_some_and(|id| sent_back.contains(&id));
    let old: Vec<&&Object> = artifacts.iter().filter(is_old).collect();
    if old.is_empty() || accepted.superseded {
        return Ok(());
    }
    let ids: Vec<Value> = old.iter().filter_map(|artifact| artifact.get("id").cloned()).collect();
    let names: Vec<&str> = old.iter().filter_map(|artifact| artifact.text("name")).collect();
    let message = format!(
        "output of the task was delivered before changes were requested: {}; \"accept_superseded\": true approves the \
         output anyway",
        excerpt_of(names.join(", "))
    );
    Err(Error::conflict_with(ErrorCode::Superseded, message, Object::from_iter([("artifact_ids", ids)])))
}
