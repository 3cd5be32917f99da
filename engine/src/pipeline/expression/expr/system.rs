//! The variables that every pipeline has, and those of `$redact`.

use crate::pipeline::value::word::Word;

const CUT: &str = r#"[{"a":{"secret":true,"x":1},"b":{"x":2}}]"#;

pub static VARIABLES: &[Word] = &[
    Word::new("$$ROOT", "", "The whole row.", [r#""$$ROOT""#, r#"{"a":1}"#, r#"{"a":1}"#]),
    Word::new(
        "$$CURRENT",
        "",
        "What paths begin with: the row, where nothing else is bound to it.",
        [r#""$$CURRENT.a""#, r#"{"a":1}"#, "1"],
    ),
    Word::new(
        "$$NOW",
        "",
        "The time of the query, the same everywhere in it.",
        [r#"{"$type":"$$NOW"}"#, "{}", r#""date""#],
    )
    .remark("All pages of one answer have the time of the first."),
    Word::new(
        "$$REMOVE",
        "",
        "No value: a field that has it is left out.",
        [r#"{"$ifNull":["$$REMOVE","none"]}"#, "{}", r#""none""#],
    ),
    Word::new("$$USER", "", "Who asks, as an object with `id`.", [r#"{"$type":"$$USER.id"}"#, "{}", r#""string""#])
        .remark("Not in MongoDB."),
    Word::new(
        "$$WORKSPACE",
        "",
        "Where it is asked, as an object with `id`.",
        [r#"{"$type":"$$WORKSPACE.id"}"#, "{}", r#""string""#],
    )
    .remark("Not in MongoDB."),
    Word::new(
        "$$DESCEND",
        "",
        "In `$redact`: keeps the object's fields, and asks again about each object in it.",
        [r#"{"$cond":["$secret","$$PRUNE","$$DESCEND"]}"#, CUT, r#"[{"b":{"x":2}}]"#],
    ),
    Word::new(
        "$$PRUNE",
        "",
        "In `$redact`: leaves the object out.",
        [r#"{"$cond":["$secret","$$PRUNE","$$DESCEND"]}"#, CUT, r#"[{"b":{"x":2}}]"#],
    ),
    Word::new(
        "$$KEEP",
        "",
        "In `$redact`: keeps the object whole.",
        [r#""$$KEEP""#, r#"[{"a":{"secret":true}}]"#, r#"[{"a":{"secret":true}}]"#],
    ),
];

/// Names of `$redact` alone.
pub const OF_REDACT: [&str; 3] = ["DESCEND", "PRUNE", "KEEP"];

/// Names that may be used everywhere, without their dollars.
pub fn names<'n>() -> impl Iterator<Item = &'n str> {
    VARIABLES.iter().map(|word| word.name.trim_start_matches('$')).filter(|name| !OF_REDACT.contains(name))
}
