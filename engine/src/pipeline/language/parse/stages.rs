//! The stages' table: what each is, with an example that runs.

use crate::pipeline::value::word::Word;

const BY_TYPE: &str = "`from` names an aggregate type, whose folded states are joined, or `$events`; without `from` the \
     sub-pipeline begins with `$documents`. A type that does not exist is an empty one, and a warning.";

/// Every stage of the language.
pub static STAGES: &[Word] = &[
    Word::new(
        "$match",
        "filter: object",
        "Keeps the rows that a filter matches.",
        [r#"{"$match":{"a":{"$gt":1}}}"#, r#"[{"a":1},{"a":2}]"#, r#"[{"a":2}]"#],
    )
    .remark("Before `$fold` it chooses streams and events, after it states."),
    Word::new(
        "$fold",
        "at?: date, version?: integer, position?: integer, deleted?: boolean, events?: boolean",
        "Folds the events of each stream into a state, as it is now or was at a time, a version or a position of the log.",
        [
            r#"{"$fold":{"version":1}}"#,
            r#"[{"aggregate_id":"note-1","event_type":"article.created","payload":{"title":"First"}},{"aggregate_id":"note-1","event_type":"article.revised","payload":{"title":"Second"}}]"#,
            r#"[{"title":"First","_version":1}]"#,
        ],
    )
    .remark(
        "Not in MongoDB. Rows before it are events, rows after it states; it may stand once, after `$match` stages only.",
    ),
    Word::new(
        "$project",
        "fields: object",
        "Keeps, leaves out or computes fields.",
        [r#"{"$project":{"a":1,"b":{"$add":["$a",1]}}}"#, r#"[{"a":1,"c":2}]"#, r#"[{"a":1,"b":2}]"#],
    ),
    Word::new(
        "$group",
        "_id: any, output...: object",
        "One row for each value of `_id`, with accumulators over the rows that have it.",
        [
            r#"{"$group":{"_id":"$a","n":{"$sum":"$b"}}}"#,
            r#"[{"a":"x","b":1},{"a":"y","b":2},{"a":"x","b":3}]"#,
            r#"[{"_id":"x","n":4},{"_id":"y","n":2}]"#,
        ],
    )
    .remark("Groups come in the order of their first rows; MongoDB leaves the order open."),
    Word::new(
        "$sort",
        "keys: object",
        "Orders the rows by fields, 1 ascending and -1 descending.",
        [r#"{"$sort":{"a":-1}}"#, r#"[{"a":1},{"a":2}]"#, r#"[{"a":2},{"a":1}]"#],
    )
    .remark("Rows that are equal stand in the order of `_id`, and then as they came; MongoDB leaves their order open."),
    Word::new(
        "$limit",
        "count: integer",
        "The first rows.",
        [r#"{"$limit":1}"#, r#"[{"a":1},{"a":2}]"#, r#"[{"a":1}]"#],
    ),
    Word::new(
        "$lookup",
        "from?: string, localField?: string, foreignField?: string, let?: object, pipeline?: array, as: string",
        "Adds to each row the rows of another source that belong to it.",
        [
            r#"{"$lookup":{"pipeline":[{"$documents":[{"k":1,"v":"x"},{"k":2,"v":"y"}]}],"localField":"a","foreignField":"k","as":"found"}}"#,
            r#"[{"a":2}]"#,
            r#"[{"a":2,"found":[{"k":2,"v":"y"}]}]"#,
        ],
    )
    .remark(BY_TYPE),
    Word::new(
        "$documents",
        "rows: array",
        "Rows that the pipeline brings itself; the first stage or none.",
        [r#"{"$documents":[{"a":1},{"a":2}]}"#, "[]", r#"[{"a":1},{"a":2}]"#],
    )
    .remark("The rows of an array are taken as they are written; anything else is evaluated, and gives an array."),
    Word::new(
        "$set",
        "fields: object",
        "Adds fields or replaces them.",
        [r#"{"$set":{"b":{"$add":["$a",1]}}}"#, r#"[{"a":1}]"#, r#"[{"a":1,"b":2}]"#],
    ),
    Word::new(
        "$addFields",
        "fields: object",
        "Adds fields or replaces them, as `$set`.",
        [r#"{"$addFields":{"b":"$a"}}"#, r#"[{"a":1}]"#, r#"[{"a":1,"b":1}]"#],
    ),
    Word::new(
        "$unset",
        "fields: string | array",
        "Leaves fields out.",
        [r#"{"$unset":["b","c.d"]}"#, r#"[{"a":1,"b":2,"c":{"d":3}}]"#, r#"[{"a":1,"c":{}}]"#],
    ),
    Word::new(
        "$skip",
        "count: integer",
        "Leaves the first rows out.",
        [r#"{"$skip":1}"#, r#"[{"a":1},{"a":2}]"#, r#"[{"a":2}]"#],
    ),
    Word::new(
        "$count",
        "name: string",
        "One row with the number of rows; none where there are none.",
        [r#"{"$count":"n"}"#, r#"[{"a":1},{"a":2}]"#, r#"[{"n":2}]"#],
    ),
    Word::new(
        "$unwind",
        "path: string, includeArrayIndex?: string, preserveNullAndEmptyArrays?: boolean",
        "One row for each item of an array.",
        [
            r#"{"$unwind":{"path":"$a","includeArrayIndex":"i"}}"#,
            r#"[{"a":["x","y"]},{"a":[]}]"#,
            r#"[{"a":"x","i":0},{"a":"y","i":1}]"#,
        ],
    ),
    Word::new(
        "$sortByCount",
        "expression: any",
        "How often each value occurs, the most frequent first.",
        [
            r#"{"$sortByCount":"$a"}"#,
            r#"[{"a":"x"},{"a":"y"},{"a":"y"}]"#,
            r#"[{"_id":"y","count":2},{"_id":"x","count":1}]"#,
        ],
    ),
    Word::new(
        "$replaceRoot",
        "newRoot: object",
        "Puts an object in the place of each row.",
        [r#"{"$replaceRoot":{"newRoot":"$a"}}"#, r#"[{"a":{"b":1}}]"#, r#"[{"b":1}]"#],
    ),
    Word::new(
        "$replaceWith",
        "newRoot: object",
        "Puts an object in the place of each row, as `$replaceRoot`.",
        [r#"{"$replaceWith":"$a"}"#, r#"[{"a":{"b":1}}]"#, r#"[{"b":1}]"#],
    ),
    Word::new(
        "$facet",
        "pipelines: object",
        "One row with the results of several pipelines over the same rows.",
        [
            r#"{"$facet":{"all":[{"$count":"n"}],"first":[{"$limit":1}]}}"#,
            r#"[{"a":1},{"a":2}]"#,
            r#"[{"all":[{"n":2}],"first":[{"a":1}]}]"#,
        ],
    ),
    Word::new(
        "$bucket",
        "groupBy: any, boundaries: array, default?: any, output?: object",
        "Groups rows by ranges with given bounds.",
        [
            r#"{"$bucket":{"groupBy":"$a","boundaries":[0,5,10],"default":"other"}}"#,
            r#"[{"a":1},{"a":7},{"a":2},{"a":99}]"#,
            r#"[{"_id":0,"count":2},{"_id":5,"count":1},{"_id":"other","count":1}]"#,
        ],
    ),
    Word::new(
        "$bucketAuto",
        "groupBy: any, buckets: integer, output?: object, granularity?: string",
        "Groups rows by so many ranges of about equal size.",
        [
            r#"{"$bucketAuto":{"groupBy":"$a","buckets":2}}"#,
            r#"[{"a":1},{"a":2},{"a":3},{"a":4}]"#,
            r#"[{"_id":{"min":1,"max":3},"count":2},{"_id":{"min":3,"max":4},"count":2}]"#,
        ],
    ),
    Word::new(
        "$unionWith",
        "coll?: string, pipeline?: array",
        "Puts the rows of another source after these.",
        [
            r#"{"$unionWith":{"pipeline":[{"$documents":[{"a":2}]}]}}"#,
            r#"[{"a":1}]"#,
            r#"[{"a":1},{"a":2}]"#,
        ],
    )
    .remark("`coll` names an aggregate type or `$events`."),
    Word::new(
        "$sample",
        "size: integer",
        "Some rows at random, each at most once.",
        [r#"{"$sample":{"size":3}}"#, r#"[{"a":1}]"#, r#"[{"a":1}]"#],
    )
    .remark("All pages of one answer are drawn from the same sample."),
    Word::new(
        "$redact",
        "expression: any",
        "Keeps, cuts or descends into each object of a row, as an expression says.",
        [
            r#"{"$redact":{"$cond":[{"$eq":["$level",5]},"$$PRUNE","$$DESCEND"]}}"#,
            r#"[{"level":1,"a":{"level":5},"b":{"level":2}}]"#,
            r#"[{"level":1,"b":{"level":2}}]"#,
        ],
    ),
];
