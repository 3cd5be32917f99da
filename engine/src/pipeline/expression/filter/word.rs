//! The tables of query operators: operators at the level of fields, and operators of a field.

use crate::pipeline::value::documentation::NameDocumentation;

/// Operators at the level of fields.
pub static TOP_LEVEL: &[NameDocumentation] = &[
    NameDocumentation::new(
        "$and",
        "filters: array",
        "All filters match.",
        [r#"{"$and":[{"a":{"$gt":1}},{"b":1}]}"#, r#"[{"a":2,"b":1},{"a":2}]"#, r#"[{"a":2,"b":1}]"#],
    ),
    NameDocumentation::new(
        "$or",
        "filters: array",
        "At least one of the filters matches.",
        [r#"{"$or":[{"a":1},{"b":1}]}"#, r#"[{"a":1},{"b":1},{"a":2}]"#, r#"[{"a":1},{"b":1}]"#],
    ),
    NameDocumentation::new(
        "$nor",
        "filters: array",
        "None of the filters matches.",
        [r#"{"$nor":[{"a":1},{"b":1}]}"#, r#"[{"a":1},{"b":1},{"a":2}]"#, r#"[{"a":2}]"#],
    ),
    NameDocumentation::new(
        "$expr",
        "expression: any",
        "The expression is true for the row.",
        [r#"{"$expr":{"$gt":["$a","$b"]}}"#, r#"[{"a":1,"b":2},{"a":3,"b":2}]"#, r#"[{"a":3,"b":2}]"#],
    ),
    NameDocumentation::new(
        "$jsonSchema",
        "schema: object",
        "The row is valid under a JSON schema of draft 4.",
        [
            r#"{"$jsonSchema":{"required":["a"],"properties":{"a":{"type":"string"}}}}"#,
            r#"[{"a":"x"},{"a":1},{}]"#,
            r#"[{"a":"x"}]"#,
        ],
    ),
    NameDocumentation::new(
        "$sampleRate",
        "rate: number",
        "Selects about this share of the rows at random, from 0 to 1, each row independently.",
        [r#"{"$sampleRate":1}"#, r#"[{"a":1},{"a":2}]"#, r#"[{"a":1},{"a":2}]"#],
    )
    .remark("All pages of one result use the same random selection."),
    NameDocumentation::new(
        "$alwaysTrue",
        "one: integer",
        "Every row matches.",
        [r#"{"$alwaysTrue":1}"#, r#"[{"a":1}]"#, r#"[{"a":1}]"#],
    ),
    NameDocumentation::new(
        "$alwaysFalse",
        "one: integer",
        "No row matches.",
        [r#"{"$alwaysFalse":1}"#, r#"[{"a":1}]"#, "[]"],
    ),
];

/// Operators over the values of a field.
pub static OF_FIELD: &[NameDocumentation] = &[
    NameDocumentation::new(
        "$eq",
        "value: any",
        "The value, or an item of the array, equals the operand; null also matches a missing field.",
        [r#"{"a":{"$eq":1}}"#, r#"[{"a":1},{"a":[1,2]},{"a":2}]"#, r#"[{"a":1},{"a":[1,2]}]"#],
    )
    .remark("Values may be written as Extended JSON, as everywhere; an `$oid` becomes the string of its digits."),
    NameDocumentation::new(
        "$ne",
        "value: any",
        "Neither the value nor an item of the array equals the operand.",
        [r#"{"a":{"$ne":1}}"#, r#"[{"a":1},{"a":2},{"b":1}]"#, r#"[{"a":2},{"b":1}]"#],
    ),
    NameDocumentation::new(
        "$gt",
        "value: any",
        "The value is greater than the operand and of the same type.",
        [r#"{"a":{"$gt":1}}"#, r#"[{"a":1},{"a":2},{"a":"x"}]"#, r#"[{"a":2}]"#],
    ),
    NameDocumentation::new(
        "$gte",
        "value: any",
        "The value is greater than or equal to the operand and of the same type.",
        [r#"{"a":{"$gte":2}}"#, r#"[{"a":1},{"a":2}]"#, r#"[{"a":2}]"#],
    ),
    NameDocumentation::new(
        "$lt",
        "value: any",
        "The value is less than the operand and of the same type.",
        [r#"{"a":{"$lt":2}}"#, r#"[{"a":1},{"a":2}]"#, r#"[{"a":1}]"#],
    ),
    NameDocumentation::new(
        "$lte",
        "value: any",
        "The value is less than or equal to the operand and of the same type.",
        [r#"{"a":{"$lte":1}}"#, r#"[{"a":1},{"a":2}]"#, r#"[{"a":1}]"#],
    ),
    NameDocumentation::new(
        "$in",
        "values: array",
        "The value equals one of the operands or matches one of the patterns.",
        [r#"{"a":{"$in":[1,3]}}"#, r#"[{"a":1},{"a":2},{"a":[3]}]"#, r#"[{"a":1},{"a":[3]}]"#],
    ),
    NameDocumentation::new(
        "$nin",
        "values: array",
        "The value equals none of the operands and matches none of the patterns.",
        [r#"{"a":{"$nin":[1,3]}}"#, r#"[{"a":1},{"a":2}]"#, r#"[{"a":2}]"#],
    ),
    NameDocumentation::new(
        "$not",
        "operators: object",
        "The operators do not match.",
        [r#"{"a":{"$not":{"$gt":1}}}"#, r#"[{"a":1},{"a":2},{"b":1}]"#, r#"[{"a":1},{"b":1}]"#],
    ),
    NameDocumentation::new(
        "$exists",
        "wanted: boolean",
        "The field exists, even if it is null; with `false`, the field is missing.",
        [r#"{"a":{"$exists":true}}"#, r#"[{"a":null},{"b":1}]"#, r#"[{"a":null}]"#],
    ),
    NameDocumentation::new(
        "$type",
        "type: string | number | array",
        "The value, or an item of the array, has the type.",
        [r#"{"a":{"$type":"number"}}"#, r#"[{"a":1},{"a":"x"},{"a":1.5}]"#, r#"[{"a":1},{"a":1.5}]"#],
    ),
    NameDocumentation::new(
        "$regex",
        "pattern: string",
        "The string matches a regular expression.",
        [r#"{"a":{"$regex":"^x"}}"#, r#"[{"a":"xy"},{"a":"yx"}]"#, r#"[{"a":"xy"}]"#],
    )
    .remark("The pattern is a JSON string; the `/pattern/` syntax is not available."),
    NameDocumentation::new(
        "$regularExpression",
        "regex: object",
        "The string matches a pattern with options; also allowed in `$not` and as an item of `$in`, `$nin` and `$all`.",
        [
            r#"{"a":{"$in":[1,{"$regularExpression":{"pattern":"^x","options":"i"}}]}}"#,
            r#"[{"a":"Xy"},{"a":"yx"},{"a":1}]"#,
            r#"[{"a":"Xy"},{"a":1}]"#,
        ],
    ),
    NameDocumentation::new(
        "$options",
        "options: string",
        "Sets the options of the adjacent `$regex`: `i`, `m`, `s` and `x`.",
        [r#"{"a":{"$regex":"^x","$options":"i"}}"#, r#"[{"a":"Xy"},{"a":"yx"}]"#, r#"[{"a":"Xy"}]"#],
    ),
    NameDocumentation::new(
        "$mod",
        "operands: array",
        "The remainder of the division by the first number equals the second number.",
        [r#"{"a":{"$mod":[4,1]}}"#, r#"[{"a":5},{"a":6}]"#, r#"[{"a":5}]"#],
    ),
    NameDocumentation::new(
        "$all",
        "values: array",
        "The array contains all of the values.",
        [r#"{"a":{"$all":[1,2]}}"#, r#"[{"a":[2,1,3]},{"a":[1]}]"#, r#"[{"a":[2,1,3]}]"#],
    ),
    NameDocumentation::new(
        "$elemMatch",
        "filter: object",
        "At least one item of the array matches the whole filter.",
        [
            r#"{"a":{"$elemMatch":{"x":1,"y":2}}}"#,
            r#"[{"a":[{"x":1,"y":2}]},{"a":[{"x":1},{"y":2}]}]"#,
            r#"[{"a":[{"x":1,"y":2}]}]"#,
        ],
    ),
    NameDocumentation::new(
        "$size",
        "length: integer",
        "The array has exactly this number of items.",
        [r#"{"a":{"$size":2}}"#, r#"[{"a":[1,2]},{"a":[1]}]"#, r#"[{"a":[1,2]}]"#],
    ),
    NameDocumentation::new(
        "$bitsAllSet",
        "bits: integer | array",
        "All of the bits are 1.",
        [r#"{"a":{"$bitsAllSet":[0,2]}}"#, r#"[{"a":5},{"a":4}]"#, r#"[{"a":5}]"#],
    ),
    NameDocumentation::new(
        "$bitsAllClear",
        "bits: integer | array",
        "All of the bits are 0.",
        [r#"{"a":{"$bitsAllClear":5}}"#, r#"[{"a":2},{"a":4}]"#, r#"[{"a":2}]"#],
    ),
    NameDocumentation::new(
        "$bitsAnySet",
        "bits: integer | array",
        "At least one of the bits is 1.",
        [r#"{"a":{"$bitsAnySet":5}}"#, r#"[{"a":2},{"a":4}]"#, r#"[{"a":4}]"#],
    ),
    NameDocumentation::new(
        "$bitsAnyClear",
        "bits: integer | array",
        "At least one of the bits is 0.",
        [r#"{"a":{"$bitsAnyClear":[0,2]}}"#, r#"[{"a":5},{"a":4}]"#, r#"[{"a":4}]"#],
    ),
    NameDocumentation::new(
        "$comment",
        "comment: string",
        "Adds a comment without effect, next to fields or next to the operators of a field.",
        [r#"{"a":1,"$comment":"the first ones"}"#, r#"[{"a":1},{"a":2}]"#, r#"[{"a":1}]"#],
    ),
];

/// Returns all query operators.
pub fn words() -> impl Iterator<Item = &'static NameDocumentation> {
    TOP_LEVEL.iter().chain(OF_FIELD)
}
