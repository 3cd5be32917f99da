//! The functions of the host: what scripts can do beyond the language. Each is documented by a sentence and an example.
//!
//! They compute and touch nothing. Arguments are bounded before the work begins, since no call inside one of them is
//! seen by the interpreter. Functions that list things return `#{items, more}` where the caller says how many it takes.

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

/// Registers all of them, for one plugin.
pub(super) fn register(engine: &mut Engine, plugin: &str) {
    text::register(engine);
    markdown::register(engine);
    pattern::register(engine);
    json::register(engine);
    time::register(engine);
    path::register(engine);
    log::register(engine, plugin);
}

/// Begins a function: its name, its parameters and at their end what it returns, what it does, and an expression that
/// is true.
fn function(name: &str, signature: &[&str], sentence: &str, example: &str) -> FuncRegistration {
    let comments = [format!("/// {sentence}"), "///".to_owned(), format!("/// `{example}`")];
    FuncRegistration::new(name).with_params_info(signature).with_comments(comments)
}

/// An error that a script can catch.
fn thrown(message: impl Into<String>) -> Refused {
    EvalAltResult::ErrorRuntime(message.into().into(), Position::NONE).into()
}

/// What is larger than a function works on.
fn too_large(what: impl Into<String>) -> Refused {
    EvalAltResult::ErrorDataTooLarge(what.into(), Position::NONE).into()
}
