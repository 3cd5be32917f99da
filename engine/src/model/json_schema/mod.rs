//! JSON Schemas from clients: compiled within size limits, and applied to values within a limited number of steps.
//!
//! A running validator cannot be interrupted, so its work is counted in advance. [`graph`] reads the schema, and
//! rejects references that would cause endless or too many evaluations of one value. [`meter`] traverses a value in the
//! same way as the validator, and counts the steps.

mod graph;
mod meter;

use jsonschema::error::ValidationErrorKind;
use jsonschema::{PatternOptions, ValidationError, Validator};
use serde_json::Value;

use self::graph::{Graph, MAX_PATTERN_BYTES};
pub use self::meter::SchemaMeter;
use super::excerpt::cut;
use super::violation::Violation;

/// The maximum size of a schema as JSON, in bytes. The size is limited because a schema is compiled for each use.
const MAX_BYTES: usize = 64 << 10;
/// The maximum number of reported violations of one value.
const MAX_VIOLATIONS: usize = 20;
/// The maximum number of evaluations of a check that reports each violation. A check with more evaluations reports only
/// whether the value is valid. The reason is that the validator creates the errors of all violations before it returns
/// the first error.
const MAX_LISTED: u64 = 20_000;
/// The maximum length of a value in an error message, in characters.
const MAX_SHOWN: usize = 100;
/// The maximum length of an error message, in characters.
const MAX_MESSAGE: usize = 500;
/// The stack size for compiling a schema and for checking a value, in bytes. Both are recursive. [`graph`] and
/// [`meter`] limit the depth of the recursion.
const STACK_BYTES: usize = 16 << 20;

/// A compiled schema.
#[derive(Debug)]
pub struct Schema {
    validator: Validator,
    graph: Graph,
}

impl Schema {
    /// Compiles a schema. Rejects references to other documents, and schemas that exceed a limit. The time to match a
    /// compiled pattern is linear in the length of the text.
    ///
    /// The pointer in the error is relative to the schema.
    pub fn compile(schema: &Value) -> Result<Schema, Violation> {
        if !is_within(schema, MAX_BYTES) {
            return Err(refused("", format!("the schema is larger than {MAX_BYTES} bytes")));
        }
        let graph = Graph::read(schema)?;
        let patterns = PatternOptions::regex().size_limit(MAX_PATTERN_BYTES).dfa_size_limit(MAX_PATTERN_BYTES);
        let options = jsonschema::options().with_pattern_options(patterns).offline();
        let compiled = stacker::grow(STACK_BYTES, || options.build(schema));
        let validator = compiled.map_err(|error| refused(error.instance_path().as_str(), message(&error)))?;
        Ok(Schema { validator, graph })
    }

    /// Checks a value against the schema and returns the violations, with pointers relative to the value.
    ///
    /// A value that would take too many steps to check is also reported as a violation.
    pub fn violations(&self, value: &Value) -> Vec<Violation> {
        self.violations_within(value, &mut SchemaMeter::default())
    }

    /// Returns the violations, as [`Schema::violations`] does. All values that are checked with the same `meter` share
    /// one limit on steps.
    pub fn violations_within(&self, value: &Value, meter: &mut SchemaMeter) -> Vec<Violation> {
        stacker::grow(STACK_BYTES, || self.counted(value, meter))
    }

    fn counted(&self, value: &Value, meter: &mut SchemaMeter) -> Vec<Violation> {
        let before = meter.evaluations;
        if let Err(reason) = meter.evaluate(&self.graph, value) {
            return vec![refused("", reason.into())];
        }
        if meter.evaluations - before > MAX_LISTED {
            return match self.validator.is_valid(value) {
                true => Vec::new(),
                false => vec![refused("", "the value does not match the schema".into())],
            };
        }
        let errors = self.validator.iter_errors(value).take(MAX_VIOLATIONS);
        errors.map(|error| refused(error.instance_path().as_str(), message(&error))).collect()
    }
}

fn refused(pointer: &str, message: String) -> Violation {
    Violation { pointer: pointer.to_owned(), message }
}

/// Returns the validator's error message. The value in the message, and the message as a whole, are cut to their
/// maximum lengths.
fn message(error: &ValidationError<'_>) -> String {
    let value = cut(MAX_SHOWN, error.instance());
    match error.kind() {
        // The validator would list only the first of many allowed values.
        ValidationErrorKind::Enum { options } if options.is_array() => {
            let allowed: Vec<String> =
                options.as_array().into_iter().flatten().map(|option| cut(MAX_SHOWN, option)).collect();
            cut(MAX_MESSAGE, format_args!("{value} is not one of {}", allowed.join(", ")))
        }
        _ => cut(MAX_MESSAGE, error.masked_with(value)),
    }
}

/// Returns whether the JSON text of a value has at most `max` bytes.
fn is_within(value: &Value, max: usize) -> bool {
    serde_json::to_writer(vec![0; max].as_mut_slice(), value).is_ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Returns a schema with `levels` definitions, each of which refers to the next one `times` times, and a last
    /// definition without references.
    fn levels(levels: usize, times: usize) -> Value {
        let mut definitions = serde_json::Map::new();
        for level in 0..levels {
            let next = json!({"$ref": format!("#/$defs/l{}", level + 1)});
            definitions.insert(format!("l{level}"), json!({"allOf": vec![next; times]}));
        }
        definitions.insert(format!("l{levels}"), json!({"type": "string"}));
        json!({"$ref": "#/$defs/l0", "$defs": definitions})
    }

    fn reason(schema: &Value) -> String {
        let refused = Schema::compile(schema).expect_err("a schema that is rejected");
        format!("{}: {}", refused.pointer, refused.message)
    }

    #[test]
    fn violations_have_paths_and_are_limited_in_number_and_length() {
        let schema = json!({"type": "object", "properties": {"a": {"type": "array", "items": {"type": "integer"}}}});
        let schema = Schema::compile(&schema).expect("a schema");
        assert_eq!(schema.violations(&json!({"a": [1, 2]})), []);
        let found = schema.violations(&json!({"a": [1, "x"]}));
        assert_eq!(found, [refused("/a/1", "\"x\" is not of type \"integer\"".into())]);
        let words = Schema::compile(&json!({"enum": ["a", "b", "c", "d", "e", "f"]})).expect("a schema");
        let allowed = "\"g\" is not one of \"a\", \"b\", \"c\", \"d\", \"e\", \"f\"";
        assert_eq!(words.violations(&json!("g")), [refused("", allowed.into())]);
        let long = schema.violations(&json!({"a": ["y".repeat(1 << 20)]}));
        assert!(long[0].message.len() < 2 * MAX_SHOWN, "{}", long[0].message.len());
        assert_eq!(schema.violations(&json!({"a": vec!["x"; 1_000]})).len(), MAX_VIOLATIONS);
    }

    #[test]
    fn an_invalid_schema_is_rejected_with_its_path() {
        let wrong = reason(&json!({"properties": {"a": {"type": "text"}}}));
        assert!(wrong.starts_with("/properties/a/type: "), "{wrong}");
        assert!(reason(&json!({"$ref": "https://example.org/schema"})).starts_with("/$ref: "));
        assert!(reason(&json!({"properties": {"a": {"$ref": "#/$defs/nowhere"}}})).starts_with("/properties/a/$ref: "));
        assert!(reason(&json!({"$defs": {"a": {"$id": "https://example.org/a"}}})).starts_with("/$defs/a/$id: "));
        assert!(reason(&json!({"description": "x".repeat(MAX_BYTES)})).contains("larger than"));
    }

    #[test]
    fn schemas_with_too_many_or_too_deeply_nested_evaluations_are_not_compiled() {
        assert!(reason(&levels(12, 2)).contains("evaluations"));
        assert!(reason(&levels(29, 2)).contains("nested"));
        let schema = Schema::compile(&levels(6, 2)).expect("a schema with few evaluations");
        assert_eq!(schema.violations(&json!("text")), []);
        assert_eq!(schema.violations(&json!(1)).len(), MAX_VIOLATIONS);
        assert!(reason(&levels(graph::MAX_NESTED, 1)).contains("nested"));
    }

    #[test]
    fn a_recursive_schema_is_rejected_only_if_it_applies_itself_to_the_same_value() {
        assert!(reason(&json!({"$ref": "#"})).contains("refers to itself"));
        let through =
            json!({"$defs": {"a": {"anyOf": [{"type": "null"}, {"not": {"$ref": "#/$defs/a"}}]}}, "$ref": "#/$defs/a"});
        assert!(reason(&through).contains("refers to itself"));
        // Below a property, the reference applies to another value.
        let list = json!({"properties": {"value": {"type": "integer"}, "next": {"$ref": "#"}}});
        let schema = Schema::compile(&list).expect("a recursive schema");
        assert_eq!(schema.violations(&json!({"value": 1, "next": {"value": 2}})), []);
        assert_eq!(schema.violations(&json!({"next": {"next": {"value": "x"}}}))[0].pointer, "/next/next/value");
    }

    #[test]
    fn a_validation_whose_steps_grow_exponentially_ends_at_the_step_limit() {
        let twice = json!({"allOf": [{"properties": {"a": {"$ref": "#"}}}, {"properties": {"a": {"$ref": "#"}}}]});
        let schema = Schema::compile(&twice).expect("a schema");
        let nested = |depth: usize| (0..depth).fold(json!(1), |value, _| json!({"a": value}));
        assert_eq!(schema.violations(&nested(5)), []);
        let found = schema.violations(&nested(40));
        assert!(found[0].message.contains("steps"), "{found:?}");
    }

    #[test]
    fn a_value_nested_too_deeply_for_the_validator_is_a_violation() {
        let schema = Schema::compile(&json!({"additionalProperties": {"$ref": "#"}})).expect("a schema");
        let nested = |depth: usize| (0..depth).fold(json!({}), |value, _| json!({"a": value}));
        assert_eq!(schema.violations(&nested(20)), []);
        assert!(schema.violations(&nested(1_000))[0].message.contains("nested"));
    }

    #[test]
    fn the_number_the_size_and_the_search_steps_of_patterns_are_limited() {
        let patterns = |count: usize, pattern: &str| {
            let properties = (0..count).map(|number| (format!("p{number}"), json!({"pattern": pattern})));
            json!({"properties": properties.collect::<serde_json::Map<_, _>>()})
        };
        Schema::compile(&patterns(32, "^[a-z]+$")).expect("a schema");
        assert!(reason(&patterns(33, "^[a-z]+$")).contains("patterns"));
        assert!(reason(&patterns(1, "(((a{100}){100}){100}){100}")).starts_with("/properties/p0/pattern: "));
        assert!(reason(&patterns(1, "(a")).starts_with("/properties/p0/pattern: "));
        let schema = Schema::compile(&patterns(1, r"^(\w+\s?){1,3}$")).expect("a schema");
        assert_eq!(schema.violations(&json!({"p0": "some words"})), []);
        let found = schema.violations(&json!({"p0": "a".repeat(1 << 20)}));
        assert!(found[0].message.contains("steps"), "{found:?}");
        let schema = Schema::compile(&patterns(1, "^[a-z]+$")).expect("a schema");
        assert_eq!(schema.violations(&json!({"p0": "a".repeat(1 << 20)})), []);
    }

    #[test]
    fn long_values_are_validated_to_their_end() {
        let schema = json!({"type": "array", "uniqueItems": true, "items": {"type": "integer", "minimum": 0}});
        let schema = Schema::compile(&schema).expect("a schema");
        let numbers: Vec<usize> = (0..100_000).collect();
        assert_eq!(schema.violations(&json!(numbers)), []);
        let repeated: Vec<usize> = numbers.iter().copied().chain(numbers.last().copied()).collect();
        assert_eq!(schema.violations(&json!(repeated)), [refused("", "the value does not match the schema".into())]);
    }

    #[test]
    fn unevaluated_keywords_are_limited_in_number() {
        let mut schema = json!({"type": "object"});
        for _ in 0..5 {
            schema = json!({"allOf": [schema], "unevaluatedProperties": false});
        }
        assert!(reason(&schema).contains("unevaluated"));
    }
}
