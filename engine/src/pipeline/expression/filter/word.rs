//! The tables of query operators. Operators such as `$or` stand next to the fields of a query document. Operators such
//! as `$gt` apply to the values of one field.

use std::convert::identity;

use crate::pipeline::value::documentation::{NameDocumentation, name_table};

/// Operators that a query document contains beside its fields, such as `$or`.
pub static TOP_LEVEL: &[NameDocumentation] = name_table! { identity:
    /// All filters match.
    "$and"("filters: array")
        [r#"{"$and":[{"a":{"$gt":1}},{"b":1}]}"#, r#"[{"a":2,"b":1},{"a":2}]"#, r#"[{"a":2,"b":1}]"#];
    /// At least one of the filters matches.
    "$or"("filters: array") [r#"{"$or":[{"a":1},{"b":1}]}"#, r#"[{"a":1},{"b":1},{"a":2}]"#, r#"[{"a":1},{"b":1}]"#];
    /// None of the filters matches.
    "$nor"("filters: array") [r#"{"$nor":[{"a":1},{"b":1}]}"#, r#"[{"a":1},{"b":1},{"a":2}]"#, r#"[{"a":2}]"#];
    /// The expression is true for the row.
    "$expr"("expression: any")
        [r#"{"$expr":{"$gt":["$a","$b"]}}"#, r#"[{"a":1,"b":2},{"a":3,"b":2}]"#, r#"[{"a":3,"b":2}]"#];
    /// The row is valid under a JSON schema of draft 4.
    "$jsonSchema"("schema: object") [
        r#"{"$jsonSchema":{"required":["a"],"properties":{"a":{"type":"string"}}}}"#,
        r#"[{"a":"x"},{"a":1},{}]"#,
        r#"[{"a":"x"}]"#,
    ];
    /// Selects each row at random with the given probability, from 0 to 1.
    "$sampleRate"("rate: number") [r#"{"$sampleRate":1}"#, r#"[{"a":1},{"a":2}]"#, r#"[{"a":1},{"a":2}]"#]
        .remark("All pages of one result use the same random selection.");
    /// Every row matches.
    "$alwaysTrue"("one: integer") [r#"{"$alwaysTrue":1}"#, r#"[{"a":1}]"#, r#"[{"a":1}]"#];
    /// No row matches.
    "$alwaysFalse"("one: integer") [r#"{"$alwaysFalse":1}"#, r#"[{"a":1}]"#, "[]"];
};

/// Operators on the values of a field, such as `$gt`.
pub static OF_FIELD: &[NameDocumentation] = name_table! { identity:
    /// The value, or an item of the array, equals the operand; null also matches a missing field.
    "$eq"("value: any") [r#"{"a":{"$eq":1}}"#, r#"[{"a":1},{"a":[1,2]},{"a":2}]"#, r#"[{"a":1},{"a":[1,2]}]"#]
        .remark("Values may be written as Extended JSON; an `$oid` becomes a string of its hexadecimal digits.");
    /// Neither the value nor an item of the array equals the operand.
    "$ne"("value: any") [r#"{"a":{"$ne":1}}"#, r#"[{"a":1},{"a":2},{"b":1}]"#, r#"[{"a":2},{"b":1}]"#];
    /// The value, or an item of the array, is greater than the operand and of the same type; all numbers count as one
    /// type.
    "$gt"("value: any") [r#"{"a":{"$gt":1}}"#, r#"[{"a":1},{"a":2},{"a":"x"}]"#, r#"[{"a":2}]"#];
    /// The value, or an item of the array, is greater than or equal to the operand and of the same type; all numbers
    /// count as one type.
    "$gte"("value: any") [r#"{"a":{"$gte":2}}"#, r#"[{"a":1},{"a":2}]"#, r#"[{"a":2}]"#];
    /// The value, or an item of the array, is less than the operand and of the same type; all numbers count as one
    /// type.
    "$lt"("value: any") [r#"{"a":{"$lt":2}}"#, r#"[{"a":1},{"a":2}]"#, r#"[{"a":1}]"#];
    /// The value, or an item of the array, is less than or equal to the operand and of the same type; all numbers count
    /// as one type.
    "$lte"("value: any") [r#"{"a":{"$lte":1}}"#, r#"[{"a":1},{"a":2}]"#, r#"[{"a":1}]"#];
    /// The value, or an item of the array, equals one of the operands or matches one of the patterns.
    "$in"("values: array") [r#"{"a":{"$in":[1,3]}}"#, r#"[{"a":1},{"a":2},{"a":[3]}]"#, r#"[{"a":1},{"a":[3]}]"#];
    /// Neither the value nor an item of the array equals one of the operands or matches one of the patterns.
    "$nin"("values: array") [r#"{"a":{"$nin":[1,3]}}"#, r#"[{"a":1},{"a":2}]"#, r#"[{"a":2}]"#];
    /// Not all of the operators match.
    "$not"("operators: object") [r#"{"a":{"$not":{"$gt":1}}}"#, r#"[{"a":1},{"a":2},{"b":1}]"#, r#"[{"a":1},{"b":1}]"#];
    /// The field exists, even if it is null; with `false`, the field is missing.
    "$exists"("wanted: boolean") [r#"{"a":{"$exists":true}}"#, r#"[{"a":null},{"b":1}]"#, r#"[{"a":null}]"#];
    /// The value, or an item of the array, has the type.
    "$type"("type: string | number | array")
        [r#"{"a":{"$type":"number"}}"#, r#"[{"a":1},{"a":"x"},{"a":1.5}]"#, r#"[{"a":1},{"a":1.5}]"#];
    /// The string matches a regular expression.
    "$regex"("pattern: string") [r#"{"a":{"$regex":"^x"}}"#, r#"[{"a":"xy"},{"a":"yx"}]"#, r#"[{"a":"xy"}]"#]
        .remark("The pattern is a JSON string; the `/pattern/` syntax is not available.");
    /// The string matches a pattern with options; also allowed in `$not` and as an item of `$in`, `$nin` and `$all`.
    "$regularExpression"("regex: object") [
        r#"{"a":{"$in":[1,{"$regularExpression":{"pattern":"^x","options":"i"}}]}}"#,
        r#"[{"a":"Xy"},{"a":"yx"},{"a":1}]"#,
        r#"[{"a":"Xy"},{"a":1}]"#,
    ];
    /// Sets the options of the adjacent `$regex`: `i`, `m`, `s` and `x`.
    "$options"("options: string")
        [r#"{"a":{"$regex":"^x","$options":"i"}}"#, r#"[{"a":"Xy"},{"a":"yx"}]"#, r#"[{"a":"Xy"}]"#];
    /// The remainder of the division by the first number equals the second number.
    "$mod"("operands: array") [r#"{"a":{"$mod":[4,1]}}"#, r#"[{"a":5},{"a":6}]"#, r#"[{"a":5}]"#];
    /// Each operand equals the value or an item of the array; an operand may also be a pattern or an `$elemMatch`.
    "$all"("values: array") [r#"{"a":{"$all":[1,2]}}"#, r#"[{"a":[2,1,3]},{"a":[1]}]"#, r#"[{"a":[2,1,3]}]"#];
    /// At least one item of the array matches the whole filter.
    "$elemMatch"("filter: object") [
        r#"{"a":{"$elemMatch":{"x":1,"y":2}}}"#,
        r#"[{"a":[{"x":1,"y":2}]},{"a":[{"x":1},{"y":2}]}]"#,
        r#"[{"a":[{"x":1,"y":2}]}]"#,
    ];
    /// The array has exactly this number of items.
    "$size"("length: integer") [r#"{"a":{"$size":2}}"#, r#"[{"a":[1,2]},{"a":[1]}]"#, r#"[{"a":[1,2]}]"#];
    /// All of the bits are 1.
    "$bitsAllSet"("bits: integer | array") [r#"{"a":{"$bitsAllSet":[0,2]}}"#, r#"[{"a":5},{"a":4}]"#, r#"[{"a":5}]"#];
    /// All of the bits are 0.
    "$bitsAllClear"("bits: integer | array") [r#"{"a":{"$bitsAllClear":5}}"#, r#"[{"a":2},{"a":4}]"#, r#"[{"a":2}]"#];
    /// At least one of the bits is 1.
    "$bitsAnySet"("bits: integer | array") [r#"{"a":{"$bitsAnySet":5}}"#, r#"[{"a":2},{"a":4}]"#, r#"[{"a":4}]"#];
    /// At least one of the bits is 0.
    "$bitsAnyClear"("bits: integer | array")
        [r#"{"a":{"$bitsAnyClear":[0,2]}}"#, r#"[{"a":5},{"a":4}]"#, r#"[{"a":4}]"#];
    /// Adds a comment next to fields, or next to the operators of a field; comments have no effect.
    "$comment"("comment: string") [r#"{"a":1,"$comment":"the first ones"}"#, r#"[{"a":1},{"a":2}]"#, r#"[{"a":1}]"#];
};

/// Returns all query operators.
pub fn words() -> impl Iterator<Item = &'static NameDocumentation> {
    TOP_LEVEL.iter().chain(OF_FIELD)
}
