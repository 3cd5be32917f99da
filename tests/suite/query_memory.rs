//! Tests the memory limit of queries. Values that are held by a query count against the limit, and dropped values do
//! not count.

use foldwork_engine::Error;
use foldwork_engine::model::event::NewEvent;
use foldwork_engine::model::value::{Object, Value};
use foldwork_engine::workspace::query::Query;
use foldwork_server::Config;
use foldwork_server::config::DataSize;
use foldwork_tests::handles::Handles;
use foldwork_tests::server::Server;
use serde_json::json;

use crate::reads::{append, ask, read};

/// Starts a server whose queries may use 1 MiB of memory each.
async fn with_memory_of_1_mib() -> Handles {
    let mut config = Config::default();
    config.plugins.enabled.clear();
    config.pipeline.memory = DataSize(1 << 20);
    let server = Server::start_with(&config).await.expect("a server");
    server.workspace("owner").await.expect("a workspace")
}

#[tokio::test(flavor = "multi_thread")]
async fn events_held_by_a_query_count_against_its_memory() {
    let workspace = with_memory_of_1_mib().await;
    append(&workspace, &["a"], 1_000, &"x".repeat(4_000)).await;
    let one = json!({"$match": {"aggregate_id": "a"}});
    for holding in [
        json!([one]),
        json!([one, {"$sort": {"occurred_at": 1}}]),
        json!([one, {"$match": {"event_type": "article.noted"}}, {"$fold": {"events": true}}]),
        json!([{"$documents": [{"a": "a"}]}, {"$lookup": {"from": "$events", "localField": "a", "foreignField": "aggregate_id", "as": "all"}}]),
    ] {
        let refused = ask(&workspace, holding.clone()).await.expect_err("refused");
        let Error::Pipeline(refused) = refused else { panic!("{holding}: {refused}") };
        assert!(refused.message.contains("the limit `pipeline.memory`"), "{holding}: {}", refused.message);
    }
    // A fold keeps only the state in memory, not the events.
    let folded = json!([one, {"$fold": {"version": 999}}, {"$project": {"_version": 1}}]);
    assert_eq!(read(&workspace, folded).await.0, [json!({"_id": "a", "_version": 999}).into()]);
    assert_eq!(read(&workspace, json!([one, {"$count": "n"}])).await.0, [json!({"n": 1_000}).into()]);
}

/// Starts a server with `count` states. Each state has a string and a list. The list takes more memory than a row that
/// refers to the list.
async fn with_notes(count: usize) -> Handles {
    let workspace = with_memory_of_1_mib().await;
    let fields = json!([{"name": "text", "type": "string"}, {"name": "list", "type": "array"}]);
    let note = json!({"type_name": "note", "fields": fields});
    workspace.writer.define_type(&Value::from(note), false).await.expect("a type");
    let list = |number: usize| (0..30).map(|item| Value::from(format!("{item} of {number}"))).collect::<Vec<_>>();
    let note = |number: usize| NewEvent {
        aggregate_id: format!("n{number}"),
        aggregate_type: "note".into(),
        event_type: "note.created".into(),
        payload: Object::from_iter([
            ("text", Value::from(format!("{number} {}", "word ".repeat(17)))),
            ("list", Value::from(list(number))),
        ]),
        ..NewEvent::default()
    };
    let notes: Vec<NewEvent> = (0..count).map(note).collect();
    for part in notes.chunks(500) {
        workspace.writer.append_events(part.to_vec()).await.expect("appended");
    }
    workspace
}

#[tokio::test(flavor = "multi_thread")]
async fn values_kept_by_groups_and_windows_count_against_the_memory_of_a_query() {
    let workspace = with_notes(7_000).await;
    let notes = json!({"$match": {"aggregate_type": "note"}});
    let long = json!({"$concat": ["$text", "!"]});
    // The random number makes the pipeline build rows instead of reading columns.
    let rows = json!({"$project": {"text": 1, "drawn": {"$rand": {}}}});
    let nested = json!({"$project": {"of": {"text": long}, "drawn": {"$rand": {}}}});
    let group = |key: &str, kept: serde_json::Value| json!({"$group": {"_id": key, "kept": kept}});
    for (keeping, groups) in [
        (vec![group("all", json!({"$push": {"of": {"text": long}}}))], None),
        (vec![group("all", json!({"$addToSet": {"of": [long]}}))], None),
        (vec![rows.clone(), group("all", json!({"$push": {"of": {"text": long}}}))], None),
        (vec![nested.clone(), group("all", json!({"$push": "$of"}))], None),
        (vec![nested.clone(), group("all", json!({"$firstN": {"input": "$of", "n": 7_000}}))], None),
        (vec![nested.clone(), group("$of", json!({"$first": "$of"}))], None),
        // A group keeps one value, regardless of the number of rows.
        (vec![group("all", json!({"$max": long}))], Some(1)),
        (vec![group("all", json!({"$last": {"of": [long]}}))], Some(1)),
        (vec![rows.clone(), group("all", json!({"$max": long}))], Some(1)),
        (vec![rows.clone(), group("all", json!({"$sum": {"$strLenCP": long}}))], Some(1)),
        (vec![nested.clone(), group("all", json!({"$mergeObjects": {"a": "$of", "b": "$of", "c": "$of"}}))], Some(1)),
        // The result of a group takes over the memory of the group's state.
        (
            vec![
                nested.clone(),
                json!({"$limit": 3_500}),
                group("all", json!({"$push": "$of"})),
                json!({"$project": {"kept": {"$size": "$kept"}}}),
            ],
            Some(1),
        ),
        (vec![nested, group("all", json!({"$topN": {"output": "$of", "sortBy": {"of.text": 1}, "n": 9}}))], Some(1)),
        // A row refers to the list of the state.
        (
            vec![json!({"$limit": 5_000}), json!({"$setWindowFields": {"output": {"kept": {"$first": "$list"}}}})],
            Some(5_000),
        ),
    ] {
        check_memory(&workspace, [vec![notes.clone(), json!({"$fold": {}})], keeping].concat(), groups)
            .await
            .expect("checked");
    }
}

/// Checks that the pipeline returns `rows` rows or, if `rows` is `None`, that the pipeline fails because of the memory
/// limit.
async fn check_memory(
    workspace: &Handles,
    mut pipeline: Vec<serde_json::Value>,
    rows: Option<usize>,
) -> Result<(), String> {
    pipeline.extend([json!({"$match": {"kept": {"$ne": "none"}}}), json!({"$count": "n"})]);
    let text = json!(pipeline).to_string();
    match (ask(workspace, json!(pipeline)).await, rows) {
        (Ok(response), Some(rows)) if response.rows == [json!({"n": rows}).into()] => Ok(()),
        (Err(Error::Pipeline(refused)), None) if refused.message.contains("the limit `pipeline.memory`") => Ok(()),
        (Ok(response), _) => Err(format!("{text}: {:?}", response.rows)),
        (Err(error), _) => Err(format!("{text}: {error}")),
    }
}

/// Starts a server with 2,000 states of the type `order`, which have lists and objects.
async fn with_orders() -> Handles {
    let workspace = with_memory_of_1_mib().await;
    let fields = json!([
        {"name": "labels", "type": "array"},
        {"name": "items", "type": "array"},
        {"name": "profile", "type": "object"},
    ]);
    let order = json!({"type_name": "order", "fields": fields});
    workspace.writer.define_type(&Value::from(order), false).await.expect("a type");
    let labels: Vec<_> = (0..40).map(|label| format!("label {label}")).collect();
    let profile: serde_json::Map<_, _> = (0..40).map(|field| (format!("field{field}"), json!(field))).collect();
    let order = |number: usize| {
        let items: Vec<_> = (0..40).map(|item| json!({"name": format!("item {item} of {number}")})).collect();
        let payload = Value::from(json!({"items": items, "labels": labels, "profile": profile}));
        NewEvent {
            aggregate_id: format!("o{number}"),
            aggregate_type: "order".into(),
            event_type: "order.created".into(),
            payload: payload.as_object().cloned().unwrap_or_default(),
            ..NewEvent::default()
        }
    };
    for part in (0..2_000).map(order).collect::<Vec<_>>().chunks(500) {
        workspace.writer.append_events(part.to_vec()).await.expect("appended");
    }
    workspace
}

#[tokio::test(flavor = "multi_thread")]
async fn parts_of_states_copied_by_a_query_count_against_its_memory() {
    let workspace = with_orders().await;
    let all = json!({"$match": {"aggregate_type": "order"}});
    let fold = json!({"$fold": {}});
    let each = |kept: serde_json::Value| json!({"$group": {"_id": "$_id", "kept": kept}});
    let window = |bounds: serde_json::Value, mut kept: serde_json::Value| {
        kept["window"] = json!({"documents": bounds});
        json!({"$setWindowFields": {"sortBy": {"_id": 1}, "output": {"kept": kept}}})
    };
    let name = json!({"$reduce": {"input": "$labels", "initialValue": "", "in": {"$concat": ["$$value", "$$this"]}}});
    let name = json!({"$concat": [name, name, name]});
    for (keeping, rows) in [
        // A path through an array builds an array.
        (each(json!({"$last": {"names": "$items.name"}})), None),
        (each(json!({"$last": {"$let": {"vars": {"items": "$items"}, "in": "$$items.name"}}})), None),
        (window(json!([0, 0]), json!({"$push": "$items.name"})), None),
        // The first object is copied.
        (each(json!({"$last": {"merged": {"$mergeObjects": ["$profile", {"last": 1}]}}})), None),
        // Each row is a separate object, whose values belong to the state.
        (each(json!({"$last": "$$ROOT"})), None),
        (each(json!({"$last": {"$arrayToObject": [[{"k": name, "v": 1}]]}})), None),
        // The arrays and objects of the states are not copied.
        (each(json!({"$first": "$items"})), Some(2_000)),
        (each(json!({"$first": "$labels"})), Some(2_000)),
        (each(json!({"$last": {"$arrayElemAt": ["$items", 1]}})), Some(2_000)),
        // Values that have left the window no longer count.
        (window(json!([-1, 0]), json!({"$mergeObjects": "$profile"})), Some(2_000)),
        (window(json!(["unbounded", "current"]), json!({"$mergeObjects": "$profile"})), Some(2_000)),
        (window(json!([-1, 0]), json!({"$setUnion": "$labels"})), Some(2_000)),
    ] {
        check_memory(&workspace, vec![all.clone(), fold.clone(), keeping], rows).await.expect("checked");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn values_kept_at_the_same_time_count_together_against_the_memory_of_a_query() {
    let workspace = with_orders().await;
    let (all, fold) = (json!({"$match": {"aggregate_type": "order"}}), json!({"$fold": {}}));
    // Each function keeps a value at the same time as the other functions.
    let many = |count: usize, kept: serde_json::Value| {
        let outputs = (0..count).map(|output| (format!("kept{output}"), kept.clone()));
        json!({"$setWindowFields": {"sortBy": {"_id": 1}, "output": outputs.collect::<serde_json::Map<_, _>>()}})
    };
    let long = json!({"$range": [0, {"$add": ["$_version", 10_000]}]});
    let some = json!({"$limit": 100});
    let set = json!({"$set": {"long": {"$range": [0, 10_000]}}});
    let lookup = json!({"$lookup": {"pipeline": [{"$documents": [{}]}, set], "as": "all"}});
    let lookups = vec![[lookup, json!({"$set": {"all": {"$size": "$all"}}})]; 10];
    let nested = |name: &str, inner: &str| json!({"$map": {"input": {"$range": [0, 500]}, "in": {name: inner}}});
    let path = json!({"$let": {"vars": {"z": nested("c", "$n")}, "in":
        {"$let": {"vars": {"y": nested("b", "$$z")}, "in":
        {"$let": {"vars": {"x": nested("a", "$$y")}, "in": {"$size": "$$x.a.b.c"}}}}}}});
    let is_first = json!({"$eq": ["$aggregate_id", "o1"]});
    let has_name = json!({"$in": ["none", "$payload.items.name"]});
    let found = json!({"$filter": {"input": {"$range": [0, 2_000]}, "cond": {"$in": ["$$this", "$items.name"]}}});
    let one = json!({"$mergeObjects": {"$cond": [{"$eq": ["$_id", "o1"]}, "$profile", null]}});
    let of_name = json!({"$match": {"$expr": {"$eq": ["$items.name", "$$name"]}}});
    let same = json!({"from": "order", "let": {"name": "$n"}, "pipeline": [of_name], "as": "all"});
    let documents = json!({"$documents": [{"n": 1}]});
    // Each level doubles a value whose parts are shared.
    let doubled = (0..40).fold(json!("$$a"), |inner, _| json!({"$let": {"vars": {"a": ["$$a", "$$a"]}, "in": inner}}));
    let doubled = json!({"$let": {"vars": {"a": [{"$rand": {}}]}, "in": doubled}});
    let of_double = json!({"$match": {"$expr": {"$eq": ["$items", "$$double"]}}});
    let equal = json!({"from": "order", "let": {"double": doubled}, "pipeline": [of_double], "as": "all"});
    let six = json!({"$documents": vec![json!({}); 6]});
    let repeated = json!({"$set": {"types": {"$map": {"input": {"$range": [0, 5_000]}, "in": "order"}}}});
    let counted = json!({"from": "order", "localField": "types", "foreignField": "aggregate_type",
        "pipeline": [{"$count": "n"}], "as": "kept"});
    let states = |stages: &[&serde_json::Value]| {
        [&all, &fold].into_iter().chain(stages.iter().copied()).cloned().collect::<Vec<_>>()
    };
    let bounds = json!({"documents": [-1_900, 0]});
    let merged = json!({"$setWindowFields": {
        "sortBy": {"_id": 1},
        "output": {"kept": {"$mergeObjects": one, "window": bounds}},
    }});
    let sizes = json!({"$bucketAuto": {"groupBy": {"$size": "$items.name"}, "buckets": 2}});
    let lists = json!({"$concatArrays": "$labels"});
    let averages = json!({"$expMovingAvg": {"input": long, "N": 2}});
    for (pipeline, rows) in [
        (states(&[&some, &many(1, json!({"$locf": long}))]), Some(100)),
        (states(&[&some, &many(10, json!({"$locf": long}))]), None),
        (states(&[&some, &many(10, averages)]), None),
        (states(&[&some, &many(1, lists.clone())]), Some(100)),
        (states(&[&some, &many(15, lists)]), None),
        (states(&[&merged]), Some(2_000)),
        // Values that are kept for all rows count once, and values that are dropped with a row do not count.
        ([vec![documents.clone()], lookups[..1].concat()].concat(), Some(1)),
        ([vec![documents.clone()], lookups.concat()].concat(), None),
        (vec![documents.clone(), json!({"$lookup": same})], None),
        (vec![documents.clone(), json!({"$lookup": equal})], None),
        (vec![json!({"$documents": {"$map": {"input": [1], "in": {"all": doubled}}}})], None),
        (vec![six, repeated, json!({"$lookup": counted}), json!({"$match": {"kept": [{"n": 2_000}]}})], Some(6)),
        (vec![documents, json!({"$project": {"kept": path}})], None),
        (vec![all.clone(), json!({"$match": {"$expr": {"$or": [has_name, is_first]}}}), fold.clone()], Some(1)),
        (states(&[&sizes]), Some(1)),
        (states(&[&some, &json!({"$project": {"kept": {"$size": found}}})]), Some(100)),
    ] {
        check_memory(&workspace, pipeline, rows).await.expect("checked");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn values_built_by_an_expression_or_projection_count_against_the_memory_of_a_query() {
    let workspace = with_memory_of_1_mib().await;
    let fields = |count: usize, value: serde_json::Value| -> serde_json::Map<_, _> {
        (0..count).map(|field| (format!("f{field}"), value.clone())).collect()
    };
    let numbers = |count: usize| json!({"$range": [0, count]});
    let map = |count: usize, of: serde_json::Value| json!({"$map": {"input": numbers(count), "in": of}});
    let documents = json!({"$documents": [{"t": "x".repeat(5_000)}]});
    // The items of each list share an object.
    let part = json!({"$let": {"vars": {"part": {"$mergeObjects": [fields(10, json!(1))]}}, "in": map(1_200, json!("$$part"))}});
    let lists = |stage: serde_json::Value| vec![documents.clone(), json!({"$set": fields(6, part.clone())}), stage];
    let nested = |value: serde_json::Value| -> serde_json::Map<_, _> {
        (0..60).map(|field| (format!("f{}.f{}", field / 10, field % 10), value.clone())).collect()
    };
    let expression =
        |value: serde_json::Value| vec![documents.clone(), json!({"$project": {"kept": {"$size": value}}})];
    let find = json!({"$regexFind": {"input": "$t", "regex": "(x+)"}});
    let parts = json!({"$dateToParts": {"date": "$$NOW"}});
    let ranks = json!({"$percentile": {"input": [1], "p": vec![0.5; 100], "method": "approximate"}});
    let appended = json!({"$concatArrays": ["$$value", ["$$this"]]});
    let last = |count: usize| json!({"$reduce": {"input": numbers(count), "initialValue": [], "in": appended}});
    for (pipeline, rows) in [
        (vec![documents.clone(), json!({"$set": {"f0": numbers(20_000)}}), json!({"$set": nested(json!(1))})], None),
        (lists(json!({"$set": nested(json!(2))})), None),
        (lists(json!({"$project": nested(json!(1))})), None),
        (lists(json!({"$unset": ["f0.g", "f1.g", "f2.g", "f3.g", "f4.g", "f5.g"]})), None),
        (lists(json!({"$redact": "$$DESCEND"})), None),
        (lists(json!({"$redact": "$$KEEP"})), Some(1)),
        (expression(map(400, find)), None),
        (expression(map(4_000, parts)), None),
        (expression(map(1_000, ranks)), None),
        // A step drops the value of the step before.
        (expression(last(1_000)), Some(1)),
        (expression(map(60, last(1_000))), None),
    ] {
        check_memory(&workspace, pipeline, rows).await.expect("checked");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_passed_between_stages_counts_once_against_the_memory_of_a_query() {
    let workspace = with_notes(2_500).await;
    let kept = json!({"$group": {"_id": null, "kept": {"$push": "$$ROOT"}}});
    let window = json!({"$setWindowFields": {"partitionBy": "$text", "output": {"count": {"$count": {}}}}});
    let pass = vec![json!({"$set": {"n": {"$rand": {}}}}); 40];
    let search = json!({"$graphLookup": {
        "pipeline": [{"$documents": [{"_id": 1, "label": "none"}]}],
        "startWith": "$list", "connectFromField": "none", "connectToField": "label", "as": "found",
    }});
    let ids = json!({"$group": {"_id": null, "kept": {"$push": "$text"}}});
    let (facet, unwind) = (json!({"$facet": {"all": [{"$match": {}}]}}), json!({"$unwind": "$all"}));
    for passing in [
        vec![json!({"$sort": {"text": -1}})],
        vec![json!({"$sample": {"size": 2_500}})],
        vec![window],
        pass,
        vec![json!({"$bucketAuto": {"groupBy": "$text", "buckets": 10, "output": {"of": {"$push": "$text"}}}})],
        vec![json!({"$limit": 1_700}), facet.clone(), unwind.clone()],
        [vec![json!({"$limit": 1_200})], vec![vec![json!({"$sort": {"all.text": 1}}), facet, unwind]; 2].concat()]
            .concat(),
    ] {
        let rows = json!({"$project": {"text": 1, "drawn": {"$rand": {}}}});
        let stages = [vec![json!({"$match": {"aggregate_type": "note"}}), json!({"$fold": {}}), rows], passing];
        let pipeline = [stages.concat(), vec![kept.clone(), json!({"$project": {"kept": {"$size": "$kept"}}})]];
        check_memory(&workspace, pipeline.concat(), Some(1)).await.expect("checked");
    }
    // The results that a search keeps for later rows leave memory to other operators.
    let pipeline = vec![json!({"$match": {"aggregate_type": "note"}}), json!({"$fold": {}}), search, ids];
    check_memory(&workspace, pipeline, Some(1)).await.expect("checked");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_memory_of_a_query_includes_preview_rows_before_a_facet() {
    let workspace = with_memory_of_1_mib().await;
    let set = json!({"$set": {"a": {"$range": [0, 12_000]}}});
    let facet = json!({"$facet": {"none": [{"$match": {"b": 1}}]}});
    for (pairs, is_refused) in [(2, false), (6, true)] {
        let pipeline =
            [vec![json!({"$documents": [{}]})], vec![vec![set.clone(), facet.clone()]; pairs].concat()].concat();
        let query = Query { preview: Some(1), ..Query::new(Value::from(json!(pipeline))) };
        let answer = workspace.reader.query(query).await;
        assert_eq!(answer.is_err(), is_refused, "{pairs} pairs");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn arrays_built_by_paths_into_unwound_items_count_against_the_memory_of_a_query() {
    let workspace = with_memory_of_1_mib().await;
    let parcel = json!({"type_name": "parcel", "fields": [{"name": "boxes", "type": "array"}]});
    workspace.writer.define_type(&Value::from(parcel), false).await.expect("a type");
    let items = |name: &str| json!({"name": name, "parts": vec![json!({"number": 1}); 100]});
    let payload = json!({"boxes": [items("a"), items("b")]});
    let parcel = |number: usize| NewEvent {
        aggregate_id: format!("p{number}"),
        aggregate_type: "parcel".into(),
        event_type: "parcel.created".into(),
        payload: Value::from(payload.clone()).as_object().cloned().unwrap_or_default(),
        ..NewEvent::default()
    };
    workspace.writer.append_events((0..500).map(parcel).collect()).await.expect("appended");
    let id = json!({"parcel": "$_id", "box": "$boxes.name"});
    for (kept, rows) in [
        (json!({"$first": "$boxes.parts.number"}), None),
        (json!({"$max": "$boxes.parts.number"}), None),
        (json!({"$first": "$boxes.parts"}), Some(1_000)),
        (json!({"$sum": {"$size": "$boxes.parts.number"}}), Some(1_000)),
    ] {
        let pipeline = vec![
            json!({"$match": {"aggregate_type": "parcel"}}),
            json!({"$fold": {}}),
            json!({"$unwind": "$boxes"}),
            json!({"$group": {"_id": id, "kept": kept}}),
        ];
        check_memory(&workspace, pipeline, rows).await.expect("checked");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lookup_along_edges_respects_time_and_memory_limits() {
    let ids: Vec<Value> = (0..20_000).map(|number| Value::from(format!("n{number}"))).collect();
    let kinds: Vec<Value> = (0..2_001).map(|number| Value::from(format!("kind{number}"))).collect();
    let rows: Vec<Value> = vec![Object::from_iter([("ids", Value::from(ids))]).into()];
    let follow = Object::from_iter([
        ("edge", Value::from(kinds)),
        ("direction", "both".into()),
        ("localField", "ids".into()),
        ("as", "near".into()),
    ]);
    let pipeline: Value = vec![
        Object::from_iter([("$documents", Value::from(rows))]).into(),
        Object::from_iter([("$lookup", Value::from(follow))]).into(),
        Value::from(json!({"$project": {"near": 1}})),
    ]
    .into();
    let mut config = Config::default();
    config.plugins.enabled.clear();
    let server = Server::start_with(&config).await.expect("a server");
    let workspace = server.workspace("owner").await.expect("a workspace");
    let run = |pipeline: &Value| workspace.reader.query(Query::new(pipeline.clone()));
    assert!(run(&pipeline).await.is_ok());
    // The clock advances 0.1 s per 256 items, so the query has time for about 12,800 items.
    server.clock.advance_stopwatch_by(100_000);
    let refused = run(&pipeline).await.expect_err("refused").to_string();
    assert!(refused.contains("the limit `pipeline.timeout`"), "{refused}");

    let workspace = with_memory_of_1_mib().await;
    let refused = workspace.reader.query(Query::new(pipeline)).await.expect_err("refused").to_string();
    assert!(refused.contains("the limit `pipeline.memory`"), "{refused}");
}
