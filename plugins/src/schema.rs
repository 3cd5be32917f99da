//! JSON Schemas: compiled once, and what of a value they do not allow, with its place.

use foldwork_engine::model::violation::Violation;
use jsonschema::{PatternOptions, Validator};
use serde::Serialize;
use serde_json::Value;

/// Violations that are told at most.
const MOST: usize = 20;

/// A schema that was compiled.
#[derive(Debug)]
pub(crate) struct Schema(Validator);

impl Schema {
    /// Compiles a schema. References to other places are not followed.
    pub fn compile(schema: &impl Serialize) -> Result<Schema, String> {
        let schema = serde_json::to_value(schema).map_err(|error| error.to_string())?;
        // Patterns take time that grows with the text alone.
        let options = jsonschema::options().with_pattern_options(PatternOptions::regex());
        let compiled = options.build(&schema).map(Schema);
        compiled.map_err(|error| match error.instance_path().as_str() {
            "" => error.to_string(),
            place => format!("{place}: {error}"),
        })
    }

    /// What is wrong with a value.
    pub fn violations(&self, value: &Value) -> Vec<Violation> {
        let wrong = self.0.iter_errors(value).take(MOST);
        wrong
            .map(|error| Violation { pointer: error.instance_path().to_string(), message: error.to_string() })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_wrong_is_told_with_its_place() {
        let schema = json!({"type": "object", "properties": {"a": {"type": "array", "items": {"type": "integer"}}}});
        let schema = Schema::compile(&schema).expect("a schema");
        assert!(schema.violations(&json!({"a": [1, 2]})).is_empty());
        let wrong = schema.violations(&json!({"a": [1, "x"]}));
        assert_eq!(wrong.len(), 1);
        assert_eq!(wrong[0].pointer, "/a/1");
        assert_eq!(wrong[0].message, "\"x\" is not of type \"integer\"");
    }

    #[test]
    fn what_is_no_schema_is_refused_with_its_place() {
        let refused = Schema::compile(&json!({"properties": {"a": {"type": "text"}}})).expect_err("refused");
        assert!(refused.starts_with("/properties/a/type: "), "{refused}");
        Schema::compile(&json!({"$ref": "https://example.org/schema"})).expect_err("nothing is fetched");
    }
}
