//! The question of an agent that waits for a person's answer. The agent may restrict the answers with a JSON Schema.

use super::content::Message;
use super::review::{compile, plain};
use crate::model::value::Value;
use crate::model::violation::Violation;

/// Checks that a schema for answers can be compiled.
pub fn check_schema(schema: &Value) -> Result<(), Violation> {
    compile(schema).map(drop)
}

/// Checks an answer against the schema of a question and returns the violations. Checks the data of the first part that
/// has data, or the text if no part has data. `question` is the stored form. If the schema of an older question does
/// not compile, every answer is allowed.
pub fn violations(question: &Value, answer: &Message) -> Vec<Violation> {
    let Some(schema) = question.get("schema").filter(|schema| !schema.is_null()) else { return Vec::new() };
    let Ok(schema) = compile(schema) else { return Vec::new() };
    let data = |(number, part): (usize, &Value)| Some((format!("/parts/{number}/data"), plain(part.get("data")?)));
    let (at, value) = answer.parts.iter().enumerate().find_map(data).unwrap_or_else(|| {
        let at = answer.at.clone().unwrap_or_else(|| "/parts".to_owned());
        (at, answer.text().into())
    });
    let below = |wrong: Violation| Violation { pointer: format!("{at}{}", wrong.pointer), ..wrong };
    schema.violations(&value).into_iter().map(below).collect()
}
