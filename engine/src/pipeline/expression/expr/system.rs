//! The variables that every pipeline can use, and the variables of `$redact`.

use crate::pipeline::value::documentation::NameDocumentation;

const CUT: &str = r#"[{"a":{"secret":true,"x":1},"b":{"x":2}}]"#;

pub static VARIABLES: &[NameDocumentation] = &[
    NameDocumentation::new("$$ROOT", "", "The whole row.", [r#""$$ROOT""#, r#"{"a":1}"#, r#"{"a":1}"#]),
    NameDocumentation::new(
        "$$CURRENT",
        "",
        "The start of field paths: the row, unless another value is bound to the variable.",
        [r#""$$CURRENT.a""#, r#"{"a":1}"#, "1"],
    ),
    NameDocumentation::new(
        "$$NOW",
        "",
        "The time of the query, the same throughout the query.",
        [r#"{"$type":"$$NOW"}"#, "{}", r#""date""#],
    )
    .remark("All pages of one result use the time of the first page."),
    NameDocumentation::new(
        "$$REMOVE",
        "",
        "No value: a field that evaluates to it is removed.",
        [r#"{"$ifNull":["$$REMOVE","none"]}"#, "{}", r#""none""#],
    ),
    NameDocumentation::new(
        "$$USER",
        "",
        "The caller, as an object with `id`.",
        [r#"{"$type":"$$USER.id"}"#, "{}", r#""string""#],
    )
    .remark("Not in MongoDB."),
    NameDocumentation::new(
        "$$WORKSPACE",
        "",
        "The workspace of the query, as an object with `id`.",
        [r#"{"$type":"$$WORKSPACE.id"}"#, "{}", r#""string""#],
    )
    .remark("Not in MongoDB."),
    NameDocumentation::new(
        "$$IDX",
        "",
        "In `$map`, `$filter` and `$reduce` without `arrayIndexAs`: the index of the item, from 0.",
        [r#"{"$map":{"input":"$a","in":["$$IDX","$$this"]}}"#, r#"{"a":["x","y"]}"#, r#"[[0,"x"],[1,"y"]]"#],
    ),
    NameDocumentation::new(
        "$$DESCEND",
        "",
        "In `$redact`: keeps the object's fields and evaluates the expression again for each object in it.",
        [r#"{"$cond":["$secret","$$PRUNE","$$DESCEND"]}"#, CUT, r#"[{"b":{"x":2}}]"#],
    ),
    NameDocumentation::new(
        "$$PRUNE",
        "",
        "In `$redact`: removes the object.",
        [r#"{"$cond":["$secret","$$PRUNE","$$DESCEND"]}"#, CUT, r#"[{"b":{"x":2}}]"#],
    ),
    NameDocumentation::new(
        "$$KEEP",
        "",
        "In `$redact`: keeps the whole object.",
        [r#""$$KEEP""#, r#"[{"a":{"secret":true}}]"#, r#"[{"a":{"secret":true}}]"#],
    ),
];

/// The names that only `$redact` defines.
pub const OF_REDACT: [&str; 3] = ["DESCEND", "PRUNE", "KEEP"];

/// The default name of the index variable of a loop.
pub const INDEX: &str = "IDX";

/// Returns the names that are available everywhere, without their dollar signs.
pub fn names<'n>() -> impl Iterator<Item = &'n str> {
    let names = VARIABLES.iter().map(|word| word.name.trim_start_matches('$'));
    names.filter(|name| !OF_REDACT.contains(name) && *name != INDEX)
}
