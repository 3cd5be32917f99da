//! Tests of behavior that case files cannot express, such as the choice of source, push-down, and the use of stack and
//! time.

#[cfg(test)]
mod windows;

use std::sync::Arc;

use super::*;
use crate::model::json;
use crate::pipeline::value::error::{Error, PipelineErrorCode};

fn value(text: &str) -> Value {
    json::parse(text.as_bytes()).expect("a test's JSON")
}

fn options(source: SourceChoice, push_down: bool) -> Options {
    Options { source, push_down, columns: true, explain: true, preview: None }
}

fn prepared(pipeline: &str) -> PreparedPipeline {
    query(|context| prepare(&value(pipeline), &Options::default(), context)).expect("a test's pipeline")
}

fn refused(pipeline: &str) -> Error {
    query(|context| prepare(&value(pipeline), &Options::default(), context)).err().expect("a pipeline that is rejected")
}

fn states(prepared: &PreparedPipeline) -> &StateScan {
    match &prepared.scans()[0].read {
        Read::States(scan) => scan,
        Read::Events(_) | Read::Edges(_) => panic!("the first scan does not read states"),
    }
}

fn query<T>(work: impl FnOnce(&Context) -> T) -> T {
    let elapsed = || 0;
    work(&Context::new(1_700_000_000_000, 7, &elapsed, 5_000_000, 64 << 20))
}

const STATES: &str = r#"[
    {"_id": "o1", "aggregate_type": "order", "project_id": null, "total": 5, "tags": ["a", "b"]},
    {"_id": "o2", "aggregate_type": "order", "project_id": "p", "total": [1, 9]},
    {"_id": "o3", "aggregate_type": "order", "project_id": "p", "total": "5"},
    {"_id": "o4", "aggregate_type": "order", "project_id": "p"},
    {"_id": "c1", "aggregate_type": "customer", "project_id": "p", "total": 7}
]"#;

/// Returns the test states that a scan selects. Returns no rows for scans of events and edges.
fn serve(scan: &Scan, context: &Context) -> Vec<Value> {
    let Read::States(scan) = &scan.read else { return Vec::new() };
    let rows = value(STATES);
    let listed = |set: &Option<Vec<Arc<str>>>, field: &Value| match set {
        None => true,
        Some(set) => field.as_str().is_some_and(|text| set.iter().any(|member| &**member == text)),
    };
    let rows = rows.as_array().expect("an array").iter().filter(|row| {
        let field = |name| row.get(name).cloned().unwrap_or_default();
        listed(&scan.streams.aggregate_ids, &field("_id"))
            && listed(&scan.streams.aggregate_types, &field("aggregate_type"))
            && listed(&scan.streams.project_ids, &field("project_id"))
            && [&scan.streams.filter, &scan.filter]
                .into_iter()
                .flatten()
                .all(|filter| filter.matches_row(row, context).expect("a filter over plain paths"))
    });
    rows.take(scan.limit.map_or(usize::MAX, |limit| limit as usize)).cloned().collect()
}

fn rows(pipeline: &str, options: &Options) -> Vec<Value> {
    let prepared = query(|context| prepare(&value(pipeline), options, context)).expect("a test's pipeline");
    query(|context| {
        let served: Vec<Vec<Value>> = prepared.scans().iter().map(|scan| serve(scan, context)).collect();
        let tables: Vec<&dyn Table> = served.iter().map(|rows| rows as &dyn Table).collect();
        prepared.run(&tables, context).expect("a run").rows
    })
}

#[test]
fn every_source_returns_the_same_rows() {
    let pipelines = [
        r#"[{"$fold": {}}, {"$match": {"total": {"$gt": 4}, "aggregate_type": "order"}}]"#,
        r#"[{"$match": {"aggregate_type": "order"}}, {"$fold": {}}, {"$match": {"total": {"$lt": 6}}}, {"$limit": 1}]"#,
        r#"[{"$fold": {}}, {"$project": {"total": 1}}, {"$match": {"total": null}}, {"$sort": {"_id": -1}}]"#,
        r#"[{"$fold": {}}, {"$set": {"x": 1}}, {"$match": {"x": 1, "_id": {"$in": ["o1", "c1"]}}}, {"$count": "n"}]"#,
        r#"[{"$fold": {}}, {"$sort": {"total": -1}}, {"$skip": 1}, {"$limit": 2}, {"$unset": "tags"}]"#,
        r#"[{"$fold": {}}, {"$lookup": {"from": "customer", "localField": "project_id", "foreignField": "project_id",
            "pipeline": [{"$limit": 1}], "as": "c"}}]"#,
    ];
    for pipeline in pipelines {
        let plain = rows(pipeline, &options(SourceChoice::Auto, false));
        assert!(!plain.is_empty(), "{pipeline}");
        for source in [SourceChoice::Auto, SourceChoice::Resident, SourceChoice::Nodes, SourceChoice::Log] {
            assert_eq!(rows(pipeline, &options(source, true)), plain, "{pipeline} over {source:?}");
        }
    }
}

#[test]
fn only_current_folds_of_whole_streams_read_resident_states() {
    let source = |pipeline: &str| states(&prepared(pipeline)).source;
    assert_eq!(source(r#"[{"$match": {"aggregate_type": "order"}}, {"$fold": {}}]"#), StateSource::Resident);
    assert_eq!(
        source(r#"[{"$match": {"$or": [{"project_id": "p"}, {"aggregate_id": "x"}]}}, {"$fold": {}}]"#),
        StateSource::Resident
    );
    assert_eq!(source(r#"[{"$match": {"event_type": "order.paid"}}, {"$fold": {}}]"#), StateSource::Log);
    assert_eq!(source(r#"[{"$match": {"$expr": {"$eq": ["$project_id", "p"]}}}, {"$fold": {}}]"#), StateSource::Log);
    assert_eq!(source(r#"[{"$fold": {"version": 3}}]"#), StateSource::Log);
    assert_eq!(source(r#"[{"$fold": {"events": true}}]"#), StateSource::Log);
    assert_eq!(source(r#"[{"$fold": {"deleted": true}}]"#), StateSource::Resident);
}

#[test]
fn a_match_before_a_fold_is_split_into_stream_and_event_filters() {
    let prepared = prepared(
        r#"[{"$match": {"aggregate_type": {"$in": ["order", "cart"]}, "project_id": "shop", "version": {"$lte": 2}}},
            {"$fold": {"at": "2024-05-01"}}, {"$match": {"aggregate_type": "order", "total": 1}}]"#,
    );
    let scan = states(&prepared);
    assert_eq!(scan.streams.aggregate_types.as_deref(), Some(&["order".into()][..]));
    assert_eq!(scan.streams.project_ids.as_deref(), Some(&["shop".into()][..]));
    assert_eq!(
        scan.event_filter.as_ref().map(|filter| json::text(filter.spec())).as_deref(),
        Some(r#"{"version":{"$lte":2}}"#)
    );
    assert_eq!(scan.as_of, AsOf::At(1_714_521_600_000));
    assert!(scan.filter.is_none(), "a scan of the log has a filter over states");
}

#[test]
fn a_scan_lists_the_fields_that_the_pipeline_reads() {
    let fields = |pipeline: &str| {
        prepared(pipeline).scans()[0].fields.clone().map(|fields| fields.into_iter().collect::<Vec<_>>().join(" "))
    };
    let grouped = r#"[{"$fold": {}}, {"$match": {"a.b": 1}}, {"$group": {"_id": "$c", "n": {"$sum": "$d.e"}}}]"#;
    assert_eq!(fields(grouped).as_deref(), Some("a c d"));
    assert_eq!(fields(r#"[{"$fold": {}}, {"$group": {"_id": null, "all": {"$push": "$$ROOT"}}}]"#), None);
    assert_eq!(fields(r#"[{"$fold": {}}, {"$match": {"a": 1}}]"#), None);
    assert_eq!(fields(r#"[{"$fold": {}}, {"$sort": {"a": 1}}, {"$project": {"b": 1}}]"#).as_deref(), Some("_id a b"));
}

#[test]
fn a_prepared_pipeline_reports_the_types_that_it_may_read() {
    const ORDERS: &str = r#"{"$match": {"aggregate_type": "order"}}, {"$fold": {}}"#;
    let cases = [
        (format!("[{ORDERS}]"), [true, false, false]),
        (
            r#"[{"$fold": {}}, {"$match": {"a": 1}}, {"$match": {"aggregate_type": {"$in": ["order", "note"]}}}]"#
                .into(),
            [true, false, true],
        ),
        (
            format!(
                r#"[{ORDERS}, {{"$lookup": {{"from": "note", "localField": "a", "foreignField": "b", "as": "notes"}}}}]"#
            ),
            [true, false, true],
        ),
        (format!(r#"[{ORDERS}, {{"$facet": {{"a": [{{"$unionWith": "customer"}}]}}}}]"#), [true, true, false]),
        (r#"[{"$fold": {}}, {"$project": {"a": 1}}]"#.into(), [true; 3]),
        (r#"[{"$limit": 1}]"#.into(), [true; 3]),
        (format!(r#"[{ORDERS}, {{"$lookup": {{"edge": "names", "as": "near"}}}}]"#), [true; 3]),
        (r#"[{"$documents": []}]"#.into(), [false; 3]),
    ];
    for (pipeline, expected) in cases {
        for (push_down, preview) in [(true, None), (false, None), (true, Some(3))] {
            let options = Options { push_down, preview, ..Options::default() };
            let prepared = query(|context| prepare(&value(&pipeline), &options, context)).expect("a test's pipeline");
            let read = ["order", "customer", "note"].map(|name| prepared.may_read(name));
            assert_eq!(read, expected, "{pipeline}");
        }
    }
}

#[test]
fn the_first_invalid_stage_is_reported_with_its_index() {
    let error = refused(r#"[{"$match": {}}, {"$limt": 1}, {"$group": {}}]"#);
    assert_eq!((error.code, error.stage), (PipelineErrorCode::Number(40324), Some(1)));
    assert_eq!(error.hint.as_deref(), Some("did you mean '$limit'?"));
    assert_eq!(refused(r#"[{"$unwind": "$payload.items"}, {"$fold": {}}]"#).code, PipelineErrorCode::Number(40602));
    assert_eq!(refused(r#"[{"$fold": {}}, {"$fold": {}}]"#).stage, Some(1));
    let inside = refused(r#"[{"$fold": {}}, {"$lookup": {"from": "x", "pipeline": [{"$sort": {}}], "as": "y"}}]"#);
    assert_eq!((inside.code, inside.stage), (PipelineErrorCode::Number(15976), Some(1)));
}

#[test]
fn an_event_filter_cannot_use_an_outer_row() {
    let pipeline = r#"[{"$fold": {}}, {"$lookup": {"from": "$events", "let": {"v": "$x"}, "as": "y", "pipeline":
        [{"$match": {"$expr": {"$eq": ["$version", "$$v"]}}}, {"$fold": {}}]}}]"#;
    assert_eq!(refused(pipeline).code, PipelineErrorCode::Number(17276));
}

#[test]
fn a_correlated_lookup_uses_an_index_and_returns_the_matching_rows() {
    let pipeline = r#"[{"$documents": [{"_id": 1, "k": 5}, {"_id": 2, "k": "5"}, {"_id": 3}]},
        {"$lookup": {"let": {"k": "$k"}, "as": "x", "pipeline": [
            {"$documents": [{"v": 5.0, "n": 1}, {"n": 2}, {"v": [5], "n": 3}, {"v": 5, "n": 9}]},
            {"$match": {"n": {"$lt": 5}, "$expr": {"$eq": ["$v", "$$k"]}}}, {"$project": {"n": 1}}]}},
        {"$project": {"x": "$x.n"}}]"#;
    let plan = json::text(&prepared(pipeline).describe());
    assert!(plan.contains(r#""join":"index""#), "{plan}");
    let plain = rows(pipeline, &options(SourceChoice::Auto, false));
    assert_eq!(plain, *value(r#"[{"_id":1,"x":[1]},{"_id":2,"x":[]},{"_id":3,"x":[2]}]"#).as_array().expect("rows"));
    assert_eq!(rows(pipeline, &Options::default()), plain);
}

#[test]
fn field_names_that_rows_cannot_have_cause_warnings() {
    let warned = |pipeline: &str| prepared(pipeline).warnings().join("; ");
    assert!(
        warned(r#"[{"$match": {"aggregate_type": "order", "status": "open"}}, {"$count": "n"}]"#).contains("'status'")
    );
    assert!(warned(r#"[{"$fold": {}}, {"$group": {"_id": "$aggregate_id"}}]"#).contains("'_id'"));
    assert_eq!(warned(r#"[{"$match": {"payload.status": 1}}, {"$set": {"x": 1}}, {"$sort": {"x": 1}}]"#), "");
    assert_eq!(warned(r#"[{"$documents": []}, {"$match": {"x": 1}}]"#), "");
}

#[test]
fn explain_shows_the_row_counts_of_the_source_and_the_stages() {
    let pipeline = value(r#"[{"$fold": {}}, {"$match": {"total": {"$type": "number"}}}, {"$count": "n"}]"#);
    let prepared =
        query(|context| prepare(&pipeline, &options(SourceChoice::Log, true), context)).expect("a test's pipeline");
    let states = value(STATES).as_array().map(<[Value]>::to_vec).unwrap_or_default();
    let output = query(|context| prepared.run(&[&states], context)).expect("a run");
    let stages = output.explain.get("stages").and_then(Value::as_array).expect("stages");
    let counted: Vec<i64> = stages.iter().filter_map(|stage| stage.get("rows")?.as_int()).collect();
    assert_eq!(counted, [5, 3, 1]);
    assert_eq!(output.rows, [value(r#"{"n": 3}"#)]);
}

#[test]
fn long_and_deep_pipelines_fit_a_small_stack() {
    let work = || {
        let skips =
            vec![r#"{"$skip": 0}, {"$unwind": {"path": "$a", "preserveNullAndEmptyArrays": true}}"#; 499].join(",");
        assert_eq!(rows(&format!(r#"[{{"$fold": {{}}}}, {skips}]"#), &Options::default()).len(), 5);
        let (mut deep, mut filter) = (format!(r#"{{"$documents": [{{"x": 1}}]}}, {skips}"#), r#"{"a": 1}"#.to_owned());
        for _ in 0..20 {
            deep = format!(r#"{{"$documents": [{{"x": 1}}]}}, {{"$lookup": {{"pipeline": [{deep}], "as": "y"}}}}"#);
        }
        assert_eq!(rows(&format!("[{deep}]"), &Options::default()).len(), 1);
        assert_eq!(
            refused(&format!(r#"[{{"$unionWith": {{"pipeline": [{deep}]}}}}]"#)).code,
            PipelineErrorCode::Number(51)
        );
        for _ in 0..85 {
            filter = format!(r#"{{"$nor": [{filter}]}}"#);
        }
        assert_eq!(rows(&format!(r#"[{{"$fold": {{}}}}, {{"$match": {filter}}}]"#), &Options::default()).len(), 5);
    };
    std::thread::Builder::new().stack_size(2 << 20).spawn(work).expect("a thread").join().expect("no overflow");
}

#[test]
fn a_prepared_pipeline_can_be_shared_between_threads() {
    fn assert_send_and_sync<T: Send + Sync>() {}
    assert_send_and_sync::<PreparedPipeline>();
}

#[test]
fn errors_contain_at_most_an_excerpt_of_a_large_computed_value() {
    let doubled = |of: &str, join: &str| {
        format!(
            r#"{{"$reduce":{{"input":{{"$range":[0,18]}},"initialValue":{of},"in":{{"{join}":["$$value","$$value"]}}}}}}"#
        )
    };
    let (text, list) = (doubled(r#""ab""#, "$concat"), doubled(r#"["$a",1]"#, "$concatArrays"));
    let stages = [
        format!(r#"{{"$set":{{"b":{{"$mergeObjects":[{list}]}}}}}}"#),
        format!(r#"{{"$set":{{"b":{{"$dateFromString":{{"dateString":{list}}}}}}}}}"#),
        format!(r#"{{"$set":{{"b":{{"$dateFromString":{{"dateString":{text}}}}}}}}}"#),
        format!(r#"{{"$set":{{"b":{{"$dateFromParts":{{"year":{list}}}}}}}}}"#),
        format!(r#"{{"$set":{{"b":{{"$toInt":{text}}}}}}}"#),
        format!(r#"{{"$set":{{"b":{{"$convert":{{"input":1,"to":{text}}}}}}}}}"#),
        format!(r#"{{"$set":{{"b":{{"$year":{{"date":"$$NOW","timezone":{text}}}}}}}}}"#),
        format!(r#"{{"$set":{{"b":{{"$dateTrunc":{{"date":"$$NOW","unit":{text}}}}}}}}}"#),
        format!(r#"{{"$set":{{"b":{{"$replaceAll":{{"input":{list},"find":"a","replacement":"b"}}}}}}}}"#),
        format!(r#"{{"$set":{{"b":{{"$trim":{{"input":{list}}}}}}}}}"#),
        format!(r#"{{"$set":{{"b":{{"$firstN":{{"input":["$a"],"n":{list}}}}}}}}}"#),
        format!(r#"{{"$replaceRoot":{{"newRoot":{text}}}}}"#),
        format!(r#"{{"$redact":{list}}}"#),
    ];
    for stage in stages {
        let pipeline = value(&format!(r#"[{{"$documents":[{{"a":1}}]}},{stage}]"#));
        let refused = query(|context| {
            prepare(&pipeline, &Options::default(), context).and_then(|prepared| prepared.run(&[], context))
        });
        let message = refused.expect_err("a value of the wrong type").message;
        assert!(message.chars().count() < 600, "{} characters for {stage}", message.chars().count());
    }
}

/// Returns an expression over two arrays of 8^10 leaves each. Every level of an array repeats one shared part. The two
/// arrays have no part in common. `then` is an expression that uses the arrays as the variables `x` and `y`.
fn shared_parts(then: &str) -> String {
    let lets = |name: &str| {
        let eight = vec![format!("\"$${name}\""); 8].join(",");
        format!(r#"{{"$let":{{"vars":{{"{name}":[{eight}]}},"in":"#).repeat(10)
    };
    let ends = "}}".repeat(20);
    let begin = r#"{"$let":{"vars":{"x":["$a"],"y":["$a"]},"in":"#;
    format!("{begin}{}{}{then}{ends}}}}}", lets("x"), lets("y"))
}

#[test]
fn queries_over_values_with_shared_parts_end_at_a_limit() {
    let uses = [
        r#"{"$eq":["$$x","$$y"]}"#,
        r#"{"$cmp":[{"b":"$$x"},{"b":"$$y"}]}"#,
        r#"{"$in":["$$x",["$$y"]]}"#,
        r#"{"$indexOfArray":[["$$y"],"$$x"]}"#,
        r#"{"$setUnion":[["$$x"],["$$y"]]}"#,
        r#"{"$setIsSubset":[["$$x"],["$$y"]]}"#,
        r#"{"$setDifference":[["$$x"],["$$y"]]}"#,
        r#"{"$setEquals":[["$$x"],["$$y"]]}"#,
        r#"{"$sortArray":{"input":["$$x","$$y"],"sortBy":1}}"#,
        r#"{"$maxN":{"input":["$$x","$$y"],"n":1}}"#,
        r#"{"$max":["$$x","$$y"]}"#,
        r#"{"$mergeObjects":["$$x"]}"#,
    ];
    let stages = uses.iter().map(|use_| format!(r#"{{"$set":{{"b":{}}}}}"#, shared_parts(use_)));
    let whole = shared_parts(r#"["$$x","$$y"]"#);
    let stages = stages.chain([
        format!(r#"{{"$group":{{"_id":{whole}}}}}"#),
        format!(r#"{{"$group":{{"_id":null,"b":{{"$addToSet":{whole}}}}}}}"#),
        format!(r#"{{"$group":{{"_id":null,"b":{{"$min":{whole}}}}}}}"#),
        format!(r#"{{"$group":{{"_id":null,"b":{{"$minN":{{"input":{whole},"n":2}}}}}}}}"#),
        format!(r#"{{"$sortByCount":{whole}}}"#),
        format!(r#"{{"$bucketAuto":{{"groupBy":{whole},"buckets":2}}}}"#),
        format!(r#"{{"$bucket":{{"groupBy":{whole},"boundaries":[[0],[5]],"default":"x"}}}}"#),
        format!(r#"{{"$match":{{"$expr":{{"$eq":[{whole},{whole}]}}}}}}"#),
    ]);
    for stage in stages {
        let documents = r#"{"$documents":[{"a":1},{"a":1},{"a":2}]}"#;
        let pipeline = value(&format!("[{documents},{stage}]"));
        let refused = query(|context| {
            prepare(&pipeline, &Options::default(), context).and_then(|prepared| prepared.run(&[], context))
        });
        assert!(refused.is_err(), "8^10 leaves were visited for {stage}");
        // The stopwatch advances on each reading, so the query ends after a bounded number of ticks.
        let readings = std::cell::Cell::new(0);
        let elapsed = || {
            readings.set(readings.get() + 1);
            readings.get()
        };
        let context = Context::new(0, 0, &elapsed, 1_000, i64::MAX);
        let refused =
            prepare(&pipeline, &Options::default(), &context).and_then(|prepared| prepared.run(&[], &context));
        if !stage.contains("mergeObjects") {
            assert_eq!(refused.expect_err("no time is left").code, PipelineErrorCode::QueryTimeout, "{stage}");
        }
    }
}

#[test]
fn constants_are_evaluated_within_the_time_limit_of_the_query() {
    let text = "a".repeat(3_000);
    let assertions = "(?=a*a*a*b|a)".repeat(16);
    let pipeline = value(&format!(
        r#"[{{"$documents":[]}},{{"$set":{{"b":{{"$regexMatch":{{"input":{{"$concat":["{text}","{text}"]}},"regex":"{assertions}c"}}}}}}}}]"#
    ));
    let readings = std::cell::Cell::new(0);
    let elapsed = || {
        readings.set(readings.get() + 1);
        readings.get()
    };
    let context = Context::new(0, 0, &elapsed, 20, 64 << 20);
    let refused = prepare(&pipeline, &Options::default(), &context).err().expect("no time is left");
    assert_eq!((refused.code, refused.stage), (PipelineErrorCode::QueryTimeout, Some(1)));
    assert!(readings.get() < 40, "the stopwatch was read {} times", readings.get());
}
