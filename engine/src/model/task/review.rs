//! What a task's maker says of its review, in `metadata.review`: which decisions there are, and what an edit must be like.

use jsonschema::{PatternOptions, Validator};

use super::act::Action;
use crate::model::value::Value;
use crate::model::violation::Violation;

/// Bytes that a schema may have: it is compiled for each edit.
const MAX_SCHEMA_BYTES: usize = 64 << 10;
/// Mistakes of one value that are told.
const MAX_MISTAKES: usize = 20;

/// `metadata.review` of a task.
#[derive(Debug, Clone, Copy, Default)]
pub struct Review<'a> {
    allowed: Option<&'a [Value]>,
    schema: Option<&'a Value>,
}

impl<'a> Review<'a> {
    pub fn of(metadata: Option<&'a Value>) -> Review<'a> {
        let part = |name: &str| metadata?.get("review")?.get(name).filter(|value| !value.is_null());
        Review { allowed: part("allowed_decisions").and_then(Value::as_array), schema: part("arguments_schema") }
    }

    /// Whether the review has this action. What decides nothing is always there.
    pub fn allows(&self, action: Action) -> bool {
        let named = |allowed: &[Value]| allowed.iter().any(|name| name.as_str() == Some(action.name()));
        !action.is_decision() || self.allowed.is_none_or(named)
    }

    /// Whether there is a schema for what an edit makes.
    pub fn has_schema(&self) -> bool {
        self.schema.is_some()
    }

    /// What is wrong with an edited value, at places below `at`; nothing where there is no schema.
    pub fn mistakes(&self, value: &Value, at: &str) -> Vec<Violation> {
        let Some(schema) = self.schema else { return Vec::new() };
        let validator = match compile(schema) {
            Ok(validator) => validator,
            Err(message) => return vec![Violation { pointer: at.to_owned(), message }],
        };
        let value = plain(value);
        let mistakes = validator.iter_errors(&value).take(MAX_MISTAKES);
        let told = mistakes.map(|mistake| Violation {
            pointer: format!("{at}{}", mistake.instance_path()),
            message: mistake.masked().to_string(),
        });
        told.collect()
    }
}

/// What is wrong with the review in the metadata of a task that is to be made.
pub fn check(metadata: &Value) -> Vec<Violation> {
    let mut wrong = Vec::new();
    let mut add = |place: &str, message: String| {
        wrong.push(Violation { pointer: format!("/metadata/review{place}"), message });
    };
    let Some(review) = metadata.get("review").filter(|review| !review.is_null()) else { return wrong };
    if review.as_object().is_none() {
        add("", "expected an object".into());
        return wrong;
    }
    if let Some(allowed) = review.get("allowed_decisions").filter(|allowed| !allowed.is_null()) {
        let is_decision = |name: &Value| name.as_str().and_then(Action::parse).is_some_and(Action::is_decision);
        if !allowed.as_array().is_some_and(|names| names.iter().all(is_decision)) {
            add("/allowed_decisions", "expected an array of approve, edit, reject, defer and ask".into());
        }
    }
    if let Some(schema) = review.get("arguments_schema").filter(|schema| !schema.is_null())
        && let Err(message) = compile(schema)
    {
        add("/arguments_schema", message);
    }
    wrong
}

/// A validator that fetches nothing, and whose patterns take time in proportion to what they look at.
fn compile(schema: &Value) -> Result<Validator, String> {
    if schema.size_bytes() > MAX_SCHEMA_BYTES {
        return Err(format!("the schema is larger than {MAX_SCHEMA_BYTES} bytes"));
    }
    let options = jsonschema::options().with_pattern_options(PatternOptions::regex().size_limit(1 << 20)).offline();
    options.build(&plain(schema)).map_err(|error| format!("the schema cannot be used: {}", error.masked()))
}

/// The value as the validator reads it.
pub(super) fn plain(value: &Value) -> serde_json::Value {
    serde_json::to_value(value).unwrap_or_default()
}
