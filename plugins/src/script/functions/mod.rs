//! The host functions: what scripts can do beyond the language. Each function is documented by a sentence and an
//! example.
//!
//! Host functions only compute. They limit their arguments before they start, because the interpreter cannot interrupt
//! them. Functions that list things return `#{items, more}` if the caller limits the number of items.

mod json;
mod language;
mod listing;
mod log;
mod markdown;
mod path;
mod pattern;
mod text;
mod time;

use rhai::{Engine, EvalAltResult, FuncRegistration, Position};

pub(super) use json::written;

type Refused = Box<EvalAltResult>;

/// Registers all host functions for a plugin.
pub(super) fn register(engine: &mut Engine, plugin: &str) {
    text::register(engine);
    markdown::register(engine);
    pattern::register(engine);
    json::register(engine);
    time::register(engine);
    path::register(engine);
    log::register(engine, plugin);
}

/// Begins a function's registration. The last item of `signature` is the return type, and `example` is an expression
/// that is true.
fn function(name: &str, signature: &[&str], sentence: &str, example: &str) -> FuncRegistration {
    let comments = [format!("/// {sentence}"), "///".to_owned(), format!("/// `{example}`")];
    FuncRegistration::new(name).with_params_info(signature).with_comments(comments)
}

/// Returns an error that a script can catch.
fn thrown(message: impl Into<String>) -> Refused {
    EvalAltResult::ErrorRuntime(message.into().into(), Position::NONE).into()
}

/// Returns an error for something that exceeds a size limit.
fn too_large(what: impl Into<String>) -> Refused {
    EvalAltResult::ErrorDataTooLarge(what.into(), Position::NONE).into()
}
