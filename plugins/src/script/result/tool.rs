//! Reads and checks the result of the hook `tool`.

use foldwork_engine::model::json_schema::Schema;
use foldwork_engine::model::value::{Object, Value};

use super::kind;

/// Reads a map. If the manifest has a schema for the result, the map must match the schema.
pub(in crate::script) fn read(value: &Value, schema: Option<&Schema>) -> Result<Object, String> {
    let Some(answer) = value.as_object() else { return Err(format!("result is {}, not a map", kind(value))) };
    let Some(schema) = schema else { return Ok(answer.clone()) };
    let json = serde_json::to_value(answer).map_err(|error| error.to_string())?;
    match schema.violations(&json).into_iter().next() {
        Some(wrong) => Err(format!("result{} does not match [tool.output]: {}", wrong.pointer, wrong.message)),
        None => Ok(answer.clone()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::of_json;
    use super::*;

    #[test]
    fn mistakes_are_reported_with_their_paths() {
        let schema = json!({"type": "object", "properties": {"n": {"type": "array", "items": {"type": "integer"}}}});
        let schema = Schema::compile(&schema).expect("a schema");
        let refused = |json: &str| read(&of_json(json), Some(&schema)).expect_err("refused");
        assert_eq!(refused("[]"), "result is an array, not a map");
        let wrong = "result/n/1 does not match [tool.output]: \"two\" is not of type \"integer\"";
        assert_eq!(refused(r#"{"n": [1, "two"]}"#), wrong);
    }
}
