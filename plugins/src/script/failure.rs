//! Converts an error of the interpreter into a failure that the author of the plugin can understand.

use std::any::Any;

use foldwork_engine::hook::{Failure, FailureKind};
use rhai::{Dynamic, EvalAltResult, Position};

use super::absent::ScriptNames;
use super::guard::StopReason;
use crate::limits::CallLimits;

/// The maximum length of a message, in bytes. A longer message is cut to this length, and `…` is added.
const MAX_BYTES: usize = 2_000;

/// Returns the failure of a call that ended with an error. If an absent value caused the error, the message contains
/// the name of this value, unless `names` finds no name.
pub(super) fn of_error(error: EvalAltResult, limits: &CallLimits, names: &ScriptNames<'_>) -> Failure {
    let error = innermost(error);
    let position = error.position();
    let (kind, message) = match error {
        EvalAltResult::ErrorTooManyOperations(_) => {
            (FailureKind::Operations, format!("the call was stopped after {} operations", limits.operations))
        }
        EvalAltResult::ErrorTerminated(token, _) => match token.try_cast::<StopReason>() {
            Some(StopReason::Memory) => {
                (FailureKind::Memory, format!("the call used more than {} bytes of memory", limits.memory_bytes))
            }
            _ => (FailureKind::Deadline, format!("the call was stopped after {} ms", limits.deadline_ms)),
        },
        EvalAltResult::ErrorDataTooLarge(what, _) => (FailureKind::Size, size_text(&what.to_lowercase(), limits)),
        EvalAltResult::ErrorTooManyVariables(_) => {
            (FailureKind::Size, format!("the call used more than {} variables", limits.variables))
        }
        EvalAltResult::ErrorStackOverflow(_) => {
            (FailureKind::Depth, format!("the call exceeded the limit of {} nested calls", limits.call_levels))
        }
        EvalAltResult::ErrorRuntime(thrown, _) => (FailureKind::Thrown, thrown_text(&thrown)),
        mut error => {
            let message = names.message(&error).unwrap_or_else(|| {
                error.set_position(Position::NONE);
                lowered(&error.to_string())
            });
            (FailureKind::Thrown, message)
        }
    };
    Failure { kind, message: cut(message), line: line(position), column: column(position) }
}

/// Returns the message for a value that exceeds a size limit. `what` is a lower-case text: rhai's name for the exceeded
/// size, or the beginning of a host function's message.
fn size_text(what: &str, limits: &CallLimits) -> String {
    let (limit, unit) = match what {
        "length of string" => (limits.string_bytes, "bytes"),
        "size of object map" => (limits.map_items, "fields"),
        "size of array/blob" | "size of blob" => (limits.array_items, "items"),
        other => return format!("{other} over the limit"),
    };
    format!("{what} over the limit of {limit} {unit}")
}

/// Returns the failure of a call in which a host function panicked.
pub(super) fn of_panic(payload: &(dyn Any + Send)) -> Failure {
    let text = payload.downcast_ref::<&str>().copied().or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    let message = format!("a host function failed: {}", text.unwrap_or("no message"));
    Failure { kind: FailureKind::Panic, message: cut(message), line: None, column: None }
}

/// Returns the failure of a call whose result is invalid.
pub(super) fn of_result(message: String) -> Failure {
    Failure { kind: FailureKind::Result, message: cut(message), line: None, column: None }
}

fn innermost(mut error: EvalAltResult) -> EvalAltResult {
    loop {
        match error {
            EvalAltResult::ErrorInFunctionCall(_, _, inner, _) | EvalAltResult::ErrorInModule(_, inner, _) => {
                error = *inner
            }
            error => return error,
        }
    }
}

fn thrown_text(thrown: &Dynamic) -> String {
    match thrown.as_immutable_string_ref() {
        Ok(text) => cut(text.to_string()),
        Err(_) if thrown.is_map() || thrown.is_array() => format!("threw a value of type {}", thrown.type_name()),
        Err(_) => thrown.to_string(),
    }
}

/// Returns the message with its first letter in lower case.
pub(super) fn lowered(message: &str) -> String {
    let mut rest = message.chars();
    let first = rest.next().map(|first| first.to_ascii_lowercase());
    first.into_iter().chain(rest).collect()
}

fn cut(mut message: String) -> String {
    if message.len() > MAX_BYTES {
        message.truncate(message.floor_char_boundary(MAX_BYTES));
        message.push('…');
    }
    message
}

pub(super) fn line(position: Position) -> Option<u32> {
    position.line().and_then(|line| u32::try_from(line).ok())
}

pub(super) fn column(position: Position) -> Option<u32> {
    position.position().and_then(|column| u32::try_from(column).ok())
}
