//! Registers host functions with their documentation, and creates the errors that host functions return.

use rhai::{EvalAltResult, FuncRegistration, Position};

/// An error that a host function returns.
pub type Refused = Box<EvalAltResult>;

/// Begins the registration of a function. The last item of `signature` is the return type. `example` is an expression
/// that must be true.
pub fn function(name: &str, signature: &[&str], sentence: &str, example: &str) -> FuncRegistration {
    let comments = [format!("/// {sentence}"), "///".to_owned(), format!("/// `{example}`")];
    FuncRegistration::new(name).with_params_info(signature).with_comments(comments)
}

/// Returns an error that a script can catch.
pub fn thrown(message: impl Into<String>) -> Refused {
    EvalAltResult::ErrorRuntime(message.into().into(), Position::NONE).into()
}

/// Returns an error for a value that exceeds a size limit. `what` begins the message, as in `a pattern is`.
pub fn too_large(what: impl Into<String>) -> Refused {
    EvalAltResult::ErrorDataTooLarge(what.into(), Position::NONE).into()
}
