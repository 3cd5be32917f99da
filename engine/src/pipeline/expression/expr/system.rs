//! The predefined variables of expressions.

use std::convert::identity;

use crate::pipeline::value::documentation::{NameDocumentation, name_table};

const CUT: &str = r#"[{"a":{"secret":true,"x":1},"b":{"x":2}}]"#;

pub static VARIABLES: &[NameDocumentation] = name_table! { identity:
    /// The whole row.
    "$$ROOT"("") [r#""$$ROOT""#, r#"{"a":1}"#, r#"{"a":1}"#];
    /// The value in which field paths such as `$a` begin: the row, unless `$$CURRENT` is bound to another value.
    "$$CURRENT"("") [r#""$$CURRENT.a""#, r#"{"a":1}"#, "1"];
    /// The time of the query, which is constant for the whole query.
    "$$NOW"("") [r#"{"$type":"$$NOW"}"#, "{}", r#""date""#]
        .remark("All pages of one result use the time of the first page.");
    /// The missing value; a field with this value is removed.
    "$$REMOVE"("") [r#"{"$ifNull":["$$REMOVE","none"]}"#, "{}", r#""none""#];
    /// The caller, as an object with `id`.
    "$$USER"("") [r#"{"$type":"$$USER.id"}"#, "{}", r#""string""#].remark("Not in MongoDB.");
    /// The workspace of the query, as an object with `id`.
    "$$WORKSPACE"("") [r#"{"$type":"$$WORKSPACE.id"}"#, "{}", r#""string""#].remark("Not in MongoDB.");
    /// In `$map`, `$filter` and `$reduce` without `arrayIndexAs`: the index of the item, from 0.
    "$$IDX"("") [r#"{"$map":{"input":"$a","in":["$$IDX","$$this"]}}"#, r#"{"a":["x","y"]}"#, r#"[[0,"x"],[1,"y"]]"#];
    /// In `$redact`: keeps the object's fields and evaluates the expression again for each object inside the object.
    "$$DESCEND"("") [r#"{"$cond":["$secret","$$PRUNE","$$DESCEND"]}"#, CUT, r#"[{"b":{"x":2}}]"#];
    /// In `$redact`: removes the object.
    "$$PRUNE"("") [r#"{"$cond":["$secret","$$PRUNE","$$DESCEND"]}"#, CUT, r#"[{"b":{"x":2}}]"#];
    /// In `$redact`: keeps the whole object.
    "$$KEEP"("") [r#""$$KEEP""#, r#"[{"a":{"secret":true}}]"#, r#"[{"a":{"secret":true}}]"#];
};

/// The names of the variables that only `$redact` defines.
pub const OF_REDACT: [&str; 3] = ["DESCEND", "PRUNE", "KEEP"];

/// The default name of the index variable of `$map`, `$filter` and `$reduce`.
pub const INDEX: &str = "IDX";

/// Returns the names of the variables that every expression can use, without their dollar signs.
pub fn names<'n>() -> impl Iterator<Item = &'n str> {
    let names = VARIABLES.iter().map(|word| word.name.trim_start_matches('$'));
    names.filter(|name| !OF_REDACT.contains(name) && *name != INDEX)
}
