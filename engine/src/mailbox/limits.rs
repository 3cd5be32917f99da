//! The limits of a task's content. The limits exist because every read of a task loads all of its content, and because
//! one append contains all effects of an approval.

use rustc_hash::FxHashSet;

use crate::error::{Error, ErrorCode, Result};
use crate::model::event::MAX_EVENTS_PER_APPEND;
use crate::model::task::Task;
use crate::model::task::content::Message;
use crate::model::value::{Object, Value};

/// The maximum number of artifacts of a task, not counting earlier versions.
pub const MAX_ARTIFACTS: usize = 500;
/// The maximum number of versions of all artifacts of a task.
pub const MAX_VERSIONS: usize = 2_000;
/// The maximum number of messages of a task.
pub const MAX_MESSAGES: usize = 1_000;
/// The maximum total size of a task's messages and artifacts in bytes, including earlier versions of the artifacts.
pub const MAX_CONTENT_BYTES: usize = 16 << 20;
/// The maximum number of effects that an approval appends.
pub const MAX_EFFECTS: usize = 500;
/// The maximum total size of the effects' payloads in one approval, in bytes.
pub const MAX_EFFECT_BYTES: usize = 4 << 20;

const _: () = assert!(MAX_EFFECTS < MAX_EVENTS_PER_APPEND);

/// The number of effects of artifacts, and the size of the payloads of these effects, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct EffectTotal {
    count: usize,
    bytes: usize,
}

impl EffectTotal {
    fn of<'a>(artifacts: impl Iterator<Item = &'a Object>) -> EffectTotal {
        let stored = artifacts.filter_map(|artifact| artifact.given("effect"));
        stored.fold(EffectTotal::default(), |sum, effect| EffectTotal {
            count: sum.count + 1,
            bytes: sum.bytes + effect.get("payload").map_or(0, Value::size_bytes),
        })
    }
}

/// Returns the approximate size of the events that an approval of a task appends, in bytes.
pub fn approval_bytes(task: &Task<'_>) -> usize {
    EffectTotal::of(task.current_artifacts().into_iter()).bytes
}

/// Checks that the effects of the approved artifacts fit into one append.
pub(super) fn check_approval(artifacts: &[&Object]) -> Result<()> {
    let EffectTotal { count, bytes } = EffectTotal::of(artifacts.iter().copied());
    if count <= MAX_EFFECTS && bytes <= MAX_EFFECT_BYTES {
        return Ok(());
    }
    let message = format!(
        "the approval would append {count} effects with {bytes} bytes; at most {MAX_EFFECTS} effects with \
         {MAX_EFFECT_BYTES} bytes are allowed; reject the task, and create several smaller tasks"
    );
    Err(Error::conflict(ErrorCode::ApprovalTooLarge, message)
        .with_detail("effects", count as i64)
        .with_detail("max_effects", MAX_EFFECTS as i64)
        .with_detail("bytes", bytes as i64)
        .with_detail("max_bytes", MAX_EFFECT_BYTES as i64))
}

/// Checks that the new versions of artifacts fit into their task. `task` is `None` if the task does not exist yet, and
/// `current` are the artifacts that the task has.
pub(super) fn check_artifacts(task: Option<&Task<'_>>, current: &[&Object], new: &[Object]) -> Result<()> {
    let versions = task.map_or(0, |task| task.artifacts().len()) + new.len();
    check_limit("versions of artifacts", versions, MAX_VERSIONS, NEW_TASK_ADVICE)?;
    let replaced: FxHashSet<&str> = new.iter().filter_map(|entry| entry.text("supersedes")).collect();
    let is_kept = |artifact: &&Object| artifact.text("id").is_none_or(|id| !replaced.contains(id));
    let after: Vec<&Object> = current.iter().copied().filter(is_kept).chain(new).collect();
    check_limit("artifacts", after.len(), MAX_ARTIFACTS, REPLACE_ADVICE)?;
    let effects = EffectTotal::of(after.iter().copied());
    check_limit("effects", effects.count, MAX_EFFECTS, REPLACE_ADVICE)?;
    check_limit("bytes of effects", effects.bytes, MAX_EFFECT_BYTES, REPLACE_ADVICE)?;
    let new_bytes = new.iter().map(Object::size_bytes).sum::<usize>();
    check_limit("bytes of content", task.map_or(0, content_bytes) + new_bytes, MAX_CONTENT_BYTES, NEW_TASK_ADVICE)
}

/// Checks that a message fits into its task.
pub(super) fn check_message(task: &Task<'_>, message: &Message) -> Result<()> {
    check_limit("messages", task.messages().len() + 1, MAX_MESSAGES, NEW_TASK_ADVICE)?;
    check_limit("bytes of content", content_bytes(task) + message.size_bytes(), MAX_CONTENT_BYTES, NEW_TASK_ADVICE)
}

/// The advice in the error message if the task may get no further content of the limited kind.
const NEW_TASK_ADVICE: &str = "finish this task, and continue in another one";
/// The advice in the error message if the task may still get new versions of its artifacts.
const REPLACE_ADVICE: &str = "send new versions of existing artifacts, or put the rest into another task";

fn content_bytes(task: &Task<'_>) -> usize {
    task.messages().iter().chain(task.artifacts()).map(Value::size_bytes).sum()
}

fn check_limit(what: &'static str, count: usize, maximum: usize, instead: &str) -> Result<()> {
    if count <= maximum {
        return Ok(());
    }
    let message = format!("the task would have {count} {what}; at most {maximum} are allowed; instead, {instead}");
    Err(Error::conflict(ErrorCode::TaskFull, message)
        .with_detail("limit", what)
        .with_detail("count", count as i64)
        .with_detail("maximum", maximum as i64))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn artifact(id: &str, supersedes: Option<&str>, payload: &str) -> Object {
        let effect = Object::from_iter([("payload", Object::from_iter([("text", payload)]))]);
        let mut entry = Object::from_iter([("id", Value::from(id)), ("effect", effect.into())]);
        if let Some(before) = supersedes {
            entry.push("supersedes", before);
        }
        entry
    }

    fn code(outcome: Result<()>) -> Option<ErrorCode> {
        match outcome {
            Err(Error::Conflict { code, .. }) => Some(code),
            _ => None,
        }
    }

    #[test]
    fn a_task_with_the_maximum_number_of_artifacts_accepts_only_new_versions() {
        let full: Vec<Object> = (0..MAX_ARTIFACTS).map(|id| artifact(&id.to_string(), None, "")).collect();
        let current: Vec<&Object> = full.iter().collect();
        assert_eq!(code(check_artifacts(None, &current, &[artifact("next", Some("7"), "")])), None);
        assert_eq!(code(check_artifacts(None, &current, &[artifact("more", None, "")])), Some(ErrorCode::TaskFull));
    }

    #[test]
    fn effects_are_limited_in_number_and_bytes() {
        let small: Vec<Object> = (0..=MAX_EFFECTS).map(|id| artifact(&id.to_string(), None, "")).collect();
        let small: Vec<&Object> = small.iter().collect();
        assert_eq!(code(check_approval(&small[1..])), None);
        assert_eq!(code(check_approval(&small)), Some(ErrorCode::ApprovalTooLarge));
        let half = "x".repeat(MAX_EFFECT_BYTES / 2);
        let large = [artifact("a", None, &half), artifact("b", None, &half)];
        assert_eq!(code(check_approval(&[&large[0]])), None);
        assert_eq!(code(check_approval(&[&large[0], &large[1]])), Some(ErrorCode::ApprovalTooLarge));
        assert_eq!(code(check_artifacts(None, &[&large[0]], &large[1..])), Some(ErrorCode::TaskFull));
    }
}
