//! Operators that trim the ends of a string.

use rustc_hash::FxHashSet;

use super::operator::ArgumentForm::Named as ByName;
use super::operator::{ExprOperator, NamedArguments, OperatorCall, name_table};
use super::{Answer, Env, NULL, some};
use crate::model::excerpt::excerpt;
use crate::model::value::Value;
use crate::pipeline::value::error::{Error, Result};

pub(super) static OPERATORS: &[ExprOperator] = name_table! { ExprOperator::new:
    /// Removes white space, or the given characters, from the start of the string.
    "$ltrim"("input: string, chars?: string") [r#"{"$ltrim":{"input":"  a "}}"#, "{}", r#""a ""#]:
        ByName(&TRIM), |call, env| trim(call, env, [true, false]);
    /// Removes white space, or the given characters, from the end of the string.
    "$rtrim"("input: string, chars?: string") [r#"{"$rtrim":{"input":" a  "}}"#, "{}", r#"" a""#]:
        ByName(&TRIM), |call, env| trim(call, env, [false, true]);
    /// Removes white space, or the given characters, from both ends of the string.
    "$trim"("input: string, chars?: string") [r#"{"$trim":{"input":"xxaxx","chars":"x"}}"#, "{}", r#""a""#]:
        ByName(&TRIM), |call, env| trim(call, env, [true, true]);
};

static TRIM: NamedArguments =
    NamedArguments { not_object: 50696, unknown: 50694, fields: &[("input", Some(50695)), ("chars", None)] };

/// Returns whether MongoDB treats a character as white space.
fn is_white(char: char) -> bool {
    matches!(char, '\0' | '\t'..='\r' | ' ' | '\u{a0}' | '\u{1680}' | '\u{2000}'..='\u{200a}')
}

fn trim(call: &OperatorCall, env: &Env, [start, end]: [bool; 2]) -> Answer {
    let Some(text) = text(call, 0, "input", 50699, env)? else { return NULL };
    let chars = if call.has_argument(1) {
        match self::text(call, 1, "chars", 50700, env)? {
            Some(chars) => Some(chars),
            None => return NULL,
        }
    } else {
        None
    };
    let chars: Option<FxHashSet<char>> = chars.map(|chars| chars.chars().collect());
    let is_cut = |char: char| chars.as_ref().map_or_else(|| is_white(char), |chars| chars.contains(&char));
    let mut kept: &str = &text;
    if start {
        kept = kept.trim_start_matches(is_cut);
    }
    if end {
        kept = kept.trim_end_matches(is_cut);
    }
    env.query.charge(kept.len())?;
    some(kept)
}

fn text(call: &OperatorCall, index: usize, what: &str, code: i32, env: &Env) -> Result<Option<std::sync::Arc<str>>> {
    match call.value(index, env)? {
        Value::Null => Ok(None),
        Value::String(text) => Ok(Some(text)),
        other => {
            let (name, found) = (call.name(), other.type_name());
            let message = format!(
                "{name} requires its {what} to be a string, got {} (of type {found}) instead.",
                excerpt(&other)
            );
            Err(Error::new(code, message))
        }
    }
}
