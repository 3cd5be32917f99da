//! The table of stages, with the documentation and a tested example of each stage.

use std::convert::identity;

use crate::pipeline::value::documentation::{NameDocumentation, name_table};

const BY_TYPE: &str = "`from` names an aggregate type, whose folded states are joined, or `$events`. Without `from`, \
     the sub-pipeline must begin with `$documents`. A type that does not exist has no rows and causes a warning.";

const LIKE_LOOKUP: &str = "`from` works as in `$lookup`. The rows in `as` are in the order of a breadth-first search; \
     MongoDB does not define the order.";

/// Every stage of the language.
pub static STAGES: &[NameDocumentation] = name_table! { identity:
    /// Keeps the rows that a filter matches.
    "$match"("filter: object") [r#"{"$match":{"a":{"$gt":1}}}"#, r#"[{"a":1},{"a":2}]"#, r#"[{"a":2}]"#]
        .remark("Before `$fold`, `$match` selects streams and events; after `$fold`, it selects states.");
    /// Folds the events of each stream into a state: the current state, or the state at a time, version or log
    /// position.
    "$fold"("at?: date, version?: integer, position?: integer, deleted?: boolean, events?: boolean") [
        r#"{"$fold":{"version":1}}"#,
        r#"[{"aggregate_id":"note-1","event_type":"article.created","payload":{"title":"First"}},{"aggregate_id":"note-1","event_type":"article.revised","payload":{"title":"Second"}}]"#,
        r#"[{"title":"First","_version":1}]"#,
    ]
        .remark(
            "Not in MongoDB. Rows before `$fold` are events, and rows after `$fold` are states. Allowed only once; \
             only `$match` stages may precede `$fold`."
        );
    /// Keeps, removes or computes fields.
    "$project"("fields: object")
        [r#"{"$project":{"a":1,"b":{"$add":["$a",1]}}}"#, r#"[{"a":1,"c":2}]"#, r#"[{"a":1,"b":2}]"#];
    /// Returns one row for each value of `_id`, with accumulators over the rows that have this value.
    "$group"("_id: any, output...: object") [
        r#"{"$group":{"_id":"$a","n":{"$sum":"$b"}}}"#,
        r#"[{"a":"x","b":1},{"a":"y","b":2},{"a":"x","b":3}]"#,
        r#"[{"_id":"x","n":4},{"_id":"y","n":2}]"#,
    ].remark("Groups appear in the order of their first rows; MongoDB does not define the order.");
    /// Sorts the rows by fields: 1 for ascending, -1 for descending.
    "$sort"("keys: object") [r#"{"$sort":{"a":-1}}"#, r#"[{"a":1},{"a":2}]"#, r#"[{"a":2},{"a":1}]"#]
        .remark("Rows with equal keys are sorted by `_id`, then by input order; MongoDB does not define their order.");
    /// Returns the first rows.
    "$limit"("count: integer") [r#"{"$limit":1}"#, r#"[{"a":1},{"a":2}]"#, r#"[{"a":1}]"#];
    /// Adds to each row the matching rows of another source.
    "$lookup"("from?: string, localField?: string, foreignField?: string, let?: object, pipeline?: array, as: string") [
        r#"{"$lookup":{"pipeline":[{"$documents":[{"k":1,"v":"x"},{"k":2,"v":"y"}]}],"localField":"a","foreignField":"k","as":"found"}}"#,
        r#"[{"a":2}]"#,
        r#"[{"a":2,"found":[{"k":2,"v":"y"}]}]"#,
    ].remark(BY_TYPE);
    /// Provides rows that the pipeline itself contains; allowed only as the first stage.
    "$documents"("rows: array") [r#"{"$documents":[{"a":1},{"a":2}]}"#, "[]", r#"[{"a":1},{"a":2}]"#]
        .remark("A literal array is used as written; any other value is an expression that must return an array.");
    /// Adds or replaces fields.
    "$set"("fields: object") [r#"{"$set":{"b":{"$add":["$a",1]}}}"#, r#"[{"a":1}]"#, r#"[{"a":1,"b":2}]"#];
    /// Adds or replaces fields, as `$set` does.
    "$addFields"("fields: object") [r#"{"$addFields":{"b":"$a"}}"#, r#"[{"a":1}]"#, r#"[{"a":1,"b":1}]"#];
    /// Removes fields.
    "$unset"("fields: string | array")
        [r#"{"$unset":["b","c.d"]}"#, r#"[{"a":1,"b":2,"c":{"d":3}}]"#, r#"[{"a":1,"c":{}}]"#];
    /// Skips the first rows.
    "$skip"("count: integer") [r#"{"$skip":1}"#, r#"[{"a":1},{"a":2}]"#, r#"[{"a":2}]"#];
    /// Returns one row with the number of input rows, or no row if the input is empty.
    "$count"("name: string") [r#"{"$count":"n"}"#, r#"[{"a":1},{"a":2}]"#, r#"[{"n":2}]"#];
    /// Returns one row for each item of an array.
    "$unwind"("path: string, includeArrayIndex?: string, preserveNullAndEmptyArrays?: boolean") [
        r#"{"$unwind":{"path":"$a","includeArrayIndex":"i"}}"#,
        r#"[{"a":["x","y"]},{"a":[]}]"#,
        r#"[{"a":"x","i":0},{"a":"y","i":1}]"#,
    ];
    /// Counts how often each value occurs, and returns the most frequent value first.
    "$sortByCount"("expression: any") [
        r#"{"$sortByCount":"$a"}"#,
        r#"[{"a":"x"},{"a":"y"},{"a":"y"}]"#,
        r#"[{"_id":"y","count":2},{"_id":"x","count":1}]"#,
    ];
    /// Replaces each row with an object.
    "$replaceRoot"("newRoot: object") [r#"{"$replaceRoot":{"newRoot":"$a"}}"#, r#"[{"a":{"b":1}}]"#, r#"[{"b":1}]"#];
    /// Replaces each row with an object, as `$replaceRoot` does.
    "$replaceWith"("newRoot: object") [r#"{"$replaceWith":"$a"}"#, r#"[{"a":{"b":1}}]"#, r#"[{"b":1}]"#];
    /// Returns one row with the results of several pipelines over the same rows.
    "$facet"("pipelines: object") [
        r#"{"$facet":{"all":[{"$count":"n"}],"first":[{"$limit":1}]}}"#,
        r#"[{"a":1},{"a":2}]"#,
        r#"[{"all":[{"n":2}],"first":[{"a":1}]}]"#,
    ];
    /// Groups rows into ranges with the given boundaries.
    "$bucket"("groupBy: any, boundaries: array, default?: any, output?: object") [
        r#"{"$bucket":{"groupBy":"$a","boundaries":[0,5,10],"default":"other"}}"#,
        r#"[{"a":1},{"a":7},{"a":2},{"a":99}]"#,
        r#"[{"_id":0,"count":2},{"_id":5,"count":1},{"_id":"other","count":1}]"#,
    ];
    /// Groups rows into the given number of ranges of about equal size.
    "$bucketAuto"("groupBy: any, buckets: integer, output?: object, granularity?: string") [
        r#"{"$bucketAuto":{"groupBy":"$a","buckets":2}}"#,
        r#"[{"a":1},{"a":2},{"a":3},{"a":4}]"#,
        r#"[{"_id":{"min":1,"max":3},"count":2},{"_id":{"min":3,"max":4},"count":2}]"#,
    ];
    /// Appends the rows of another source.
    "$unionWith"("coll?: string, pipeline?: array")
        [r#"{"$unionWith":{"pipeline":[{"$documents":[{"a":2}]}]}}"#, r#"[{"a":1}]"#, r#"[{"a":1},{"a":2}]"#]
        .remark("`coll` names an aggregate type or `$events`.");
    /// Returns randomly selected rows, each at most once.
    "$sample"("size: integer") [r#"{"$sample":{"size":3}}"#, r#"[{"a":1}]"#, r#"[{"a":1}]"#]
        .remark("All pages of one result come from the same sample.");
    /// Keeps, removes or descends into each object of a row, depending on an expression.
    "$redact"("expression: any") [
        r#"{"$redact":{"$cond":[{"$eq":["$level",5]},"$$PRUNE","$$DESCEND"]}}"#,
        r#"[{"level":1,"a":{"level":5},"b":{"level":2}}]"#,
        r#"[{"level":1,"b":{"level":2}}]"#,
    ];
    /// Adds fields that are computed from the rows around each row.
    "$setWindowFields"("partitionBy?: any, sortBy?: object, output: object") [
        r#"{"$setWindowFields":{"partitionBy":"$a","sortBy":{"t":1},"output":{"sum":{"$sum":"$n","window":{"documents":["unbounded","current"]}}}}}"#,
        r#"[{"a":"x","t":2,"n":5},{"a":"y","t":1,"n":1},{"a":"x","t":1,"n":2}]"#,
        r#"[{"a":"x","t":1,"n":2,"sum":2},{"a":"x","t":2,"n":5,"sum":7},{"a":"y","t":1,"n":1,"sum":1}]"#,
    ]
        .remark(
            "Rows appear by partition, in the order of the keys, and within a partition by `sortBy`, then by `_id`; \
             MongoDB does not define the order."
        );
    /// Fills null and missing fields: with the last value (`locf`), by linear interpolation (`linear`), or with a given
    /// value.
    "$fill"("partitionBy?: any, partitionByFields?: array, sortBy?: object, output: object") [
        r#"{"$fill":{"sortBy":{"t":1},"output":{"a":{"method":"linear"},"b":{"value":0}}}}"#,
        r#"[{"t":1,"a":1},{"t":2},{"t":3,"a":3,"b":7}]"#,
        r#"[{"t":1,"a":1,"b":0},{"t":2,"a":2.0,"b":0},{"t":3,"a":3,"b":7}]"#,
    ];
    /// Adds rows so that the numbers or dates of a field have no gaps.
    "$densify"("field: string, partitionByFields?: array, range: object") [
        r#"{"$densify":{"field":"t","range":{"step":1,"bounds":"full"}}}"#,
        r#"[{"t":1,"a":5},{"t":3,"a":6}]"#,
        r#"[{"t":1,"a":5},{"t":2},{"t":3,"a":6}]"#,
    ]
        .remark(
            "Input rows appear by partition, in the order of the keys, and within a partition by `field`; with the \
             bounds `full`, input rows appear only by `field`. MongoDB does not define the order."
        );
    /// Adds to each row the rows that a repeated lookup reaches, from `connectFromField` to `connectToField`.
    "$graphLookup"(
        "from?: string, startWith: any, connectFromField: string, connectToField: string, as: string, maxDepth?: integer, depthField?: string, restrictSearchWithMatch?: object, pipeline?: array"
    ) [
        r#"{"$graphLookup":{"pipeline":[{"$documents":[{"_id":"b","boss":"c"},{"_id":"c"}]}],"startWith":"$boss","connectFromField":"boss","connectToField":"_id","as":"above","depthField":"level"}}"#,
        r#"[{"_id":"a","boss":"b"}]"#,
        r#"[{"_id":"a","boss":"b","above":[{"_id":"b","boss":"c","level":0},{"_id":"c","level":1}]}]"#,
    ].remark(LIKE_LOOKUP);
};
