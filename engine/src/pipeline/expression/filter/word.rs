//! The query operators' tables: those of a whole row, and those of a field.

use crate::pipeline::value::word::Word;

/// Operators in the place of a field's name.
pub static TOP_LEVEL: &[Word] = &[
    Word::new(
        "$and",
        "filters: array",
        "All filters match.",
        [r#"{"$and":[{"a":{"$gt":1}},{"b":1}]}"#, r#"[{"a":2,"b":1},{"a":2}]"#, r#"[{"a":2,"b":1}]"#],
    ),
    Word::new(
        "$or",
        "filters: array",
        "One of the filters matches.",
        [r#"{"$or":[{"a":1},{"b":1}]}"#, r#"[{"a":1},{"b":1},{"a":2}]"#, r#"[{"a":1},{"b":1}]"#],
    ),
    Word::new(
        "$nor",
        "filters: array",
        "None of the filters matches.",
        [r#"{"$nor":[{"a":1},{"b":1}]}"#, r#"[{"a":1},{"b":1},{"a":2}]"#, r#"[{"a":2}]"#],
    ),
    Word::new(
        "$expr",
        "expression: any",
        "An expression over the row is true.",
        [r#"{"$expr":{"$gt":["$a","$b"]}}"#, r#"[{"a":1,"b":2},{"a":3,"b":2}]"#, r#"[{"a":3,"b":2}]"#],
    ),
    Word::new(
        "$jsonSchema",
        "schema: object",
        "The row is valid under a JSON schema of draft 4.",
        [
            r#"{"$jsonSchema":{"required":["a"],"properties":{"a":{"type":"string"}}}}"#,
            r#"[{"a":"x"},{"a":1},{}]"#,
            r#"[{"a":"x"}]"#,
        ],
    ),
    Word::new(
        "$sampleRate",
        "rate: number",
        "About this share of the rows, from 0 to 1, each drawn by itself.",
        [r#"{"$sampleRate":1}"#, r#"[{"a":1},{"a":2}]"#, r#"[{"a":1},{"a":2}]"#],
    )
    .remark("All pages of one answer draw alike."),
    Word::new(
        "$alwaysTrue",
        "one: integer",
        "Every row matches.",
        [r#"{"$alwaysTrue":1}"#, r#"[{"a":1}]"#, r#"[{"a":1}]"#],
    ),
    Word::new("$alwaysFalse", "one: integer", "No row matches.", [r#"{"$alwaysFalse":1}"#, r#"[{"a":1}]"#, "[]"]),
];

/// Operators over the values of a field.
pub static OF_FIELD: &[Word] = &[
    Word::new(
        "$eq",
        "value: any",
        "The value, or an item of the array, is equal; null is equal to missing too.",
        [r#"{"a":{"$eq":1}}"#, r#"[{"a":1},{"a":[1,2]},{"a":2}]"#, r#"[{"a":1},{"a":[1,2]}]"#],
    )
    .remark("Values may be written as Extended JSON, here as everywhere; an `$oid` is the text of its digits."),
    Word::new(
        "$ne",
        "value: any",
        "Neither the value nor an item of the array is equal.",
        [r#"{"a":{"$ne":1}}"#, r#"[{"a":1},{"a":2},{"b":1}]"#, r#"[{"a":2},{"b":1}]"#],
    ),
    Word::new(
        "$gt",
        "value: any",
        "Greater, and of the same type.",
        [r#"{"a":{"$gt":1}}"#, r#"[{"a":1},{"a":2},{"a":"x"}]"#, r#"[{"a":2}]"#],
    ),
    Word::new(
        "$gte",
        "value: any",
        "Greater or equal, and of the same type.",
        [r#"{"a":{"$gte":2}}"#, r#"[{"a":1},{"a":2}]"#, r#"[{"a":2}]"#],
    ),
    Word::new(
        "$lt",
        "value: any",
        "Less, and of the same type.",
        [r#"{"a":{"$lt":2}}"#, r#"[{"a":1},{"a":2}]"#, r#"[{"a":1}]"#],
    ),
    Word::new(
        "$lte",
        "value: any",
        "Less or equal, and of the same type.",
        [r#"{"a":{"$lte":1}}"#, r#"[{"a":1},{"a":2}]"#, r#"[{"a":1}]"#],
    ),
    Word::new(
        "$in",
        "values: array",
        "Equal to one of the values, or matched by one of the patterns.",
        [r#"{"a":{"$in":[1,3]}}"#, r#"[{"a":1},{"a":2},{"a":[3]}]"#, r#"[{"a":1},{"a":[3]}]"#],
    ),
    Word::new(
        "$nin",
        "values: array",
        "Equal to none of the values, and matched by none of the patterns.",
        [r#"{"a":{"$nin":[1,3]}}"#, r#"[{"a":1},{"a":2}]"#, r#"[{"a":2}]"#],
    ),
    Word::new(
        "$not",
        "operators: object",
        "The operators do not match.",
        [r#"{"a":{"$not":{"$gt":1}}}"#, r#"[{"a":1},{"a":2},{"b":1}]"#, r#"[{"a":1},{"b":1}]"#],
    ),
    Word::new(
        "$exists",
        "wanted: boolean",
        "The field is there, if only as null.",
        [r#"{"a":{"$exists":true}}"#, r#"[{"a":null},{"b":1}]"#, r#"[{"a":null}]"#],
    ),
    Word::new(
        "$type",
        "type: string | number | array",
        "The value, or an item of the array, is of the type.",
        [r#"{"a":{"$type":"number"}}"#, r#"[{"a":1},{"a":"x"},{"a":1.5}]"#, r#"[{"a":1},{"a":1.5}]"#],
    ),
    Word::new(
        "$regex",
        "pattern: string",
        "The text matches a regular expression.",
        [r#"{"a":{"$regex":"^x"}}"#, r#"[{"a":"xy"},{"a":"yx"}]"#, r#"[{"a":"xy"}]"#],
    )
    .remark("The pattern is written in JSON; there is no `/pattern/`."),
    Word::new(
        "$regularExpression",
        "regex: object",
        "The text matches a pattern with its options, also as an item of `$in`, `$nin` and `$all`, and in `$not`.",
        [
            r#"{"a":{"$in":[1,{"$regularExpression":{"pattern":"^x","options":"i"}}]}}"#,
            r#"[{"a":"Xy"},{"a":"yx"},{"a":1}]"#,
            r#"[{"a":"Xy"},{"a":1}]"#,
        ],
    ),
    Word::new(
        "$options",
        "options: string",
        "How `$regex` beside it is read: `i`, `m`, `s` and `x`.",
        [r#"{"a":{"$regex":"^x","$options":"i"}}"#, r#"[{"a":"Xy"},{"a":"yx"}]"#, r#"[{"a":"Xy"}]"#],
    ),
    Word::new(
        "$mod",
        "operands: array",
        "Divided by the first number, the second is left over.",
        [r#"{"a":{"$mod":[4,1]}}"#, r#"[{"a":5},{"a":6}]"#, r#"[{"a":5}]"#],
    ),
    Word::new(
        "$all",
        "values: array",
        "The array holds all of the values.",
        [r#"{"a":{"$all":[1,2]}}"#, r#"[{"a":[2,1,3]},{"a":[1]}]"#, r#"[{"a":[2,1,3]}]"#],
    ),
    Word::new(
        "$elemMatch",
        "filter: object",
        "One item of the array matches the whole filter.",
        [
            r#"{"a":{"$elemMatch":{"x":1,"y":2}}}"#,
            r#"[{"a":[{"x":1,"y":2}]},{"a":[{"x":1},{"y":2}]}]"#,
            r#"[{"a":[{"x":1,"y":2}]}]"#,
        ],
    ),
    Word::new(
        "$size",
        "length: integer",
        "The array has so many items.",
        [r#"{"a":{"$size":2}}"#, r#"[{"a":[1,2]},{"a":[1]}]"#, r#"[{"a":[1,2]}]"#],
    ),
    Word::new(
        "$bitsAllSet",
        "bits: integer | array",
        "All of the bits are 1.",
        [r#"{"a":{"$bitsAllSet":[0,2]}}"#, r#"[{"a":5},{"a":4}]"#, r#"[{"a":5}]"#],
    ),
    Word::new(
        "$bitsAllClear",
        "bits: integer | array",
        "All of the bits are 0.",
        [r#"{"a":{"$bitsAllClear":5}}"#, r#"[{"a":2},{"a":4}]"#, r#"[{"a":2}]"#],
    ),
    Word::new(
        "$bitsAnySet",
        "bits: integer | array",
        "One of the bits is 1.",
        [r#"{"a":{"$bitsAnySet":5}}"#, r#"[{"a":2},{"a":4}]"#, r#"[{"a":4}]"#],
    ),
    Word::new(
        "$bitsAnyClear",
        "bits: integer | array",
        "One of the bits is 0.",
        [r#"{"a":{"$bitsAnyClear":[0,2]}}"#, r#"[{"a":5},{"a":4}]"#, r#"[{"a":4}]"#],
    ),
    Word::new(
        "$comment",
        "comment: string",
        "Says something to whoever reads the pipeline; it may stand beside fields too.",
        [r#"{"a":1,"$comment":"the first ones"}"#, r#"[{"a":1},{"a":2}]"#, r#"[{"a":1}]"#],
    ),
];

/// All of them.
pub fn words() -> impl Iterator<Item = &'static Word> {
    TOP_LEVEL.iter().chain(OF_FIELD)
}
