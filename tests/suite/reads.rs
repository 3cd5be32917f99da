//! Tests that a query reads no more of the log than its result needs.

use std::sync::Arc;

use foldwork_engine::model::event::{NewEvent, StreamExpectation};
use foldwork_engine::model::facts::Assignee;
use foldwork_engine::model::feed::Delivery;
use foldwork_engine::model::value::{Object, Value};
use foldwork_engine::workspace::agents::NewAgent;
use foldwork_engine::workspace::articles::{ArticleChange, NewArticle, Perspective};
use foldwork_engine::workspace::mailbox::tasks::NewTask;
use foldwork_engine::workspace::query::{Query, QueryOutput};
use foldwork_engine::workspace::recent_deliveries::DeliverySelection;
use foldwork_engine::{ContentReader, Error, Store};
use foldwork_server::Config;
use foldwork_server::config::DataSize;
use foldwork_tests::embedded;
use foldwork_tests::handles::{Handles, enter};
use foldwork_tests::server::{Server, worked};
use serde_json::json;

const EVENTS: usize = 3_000;

fn event(id: &str, text: &str) -> NewEvent {
    NewEvent {
        aggregate_id: id.into(),
        aggregate_type: "article".into(),
        event_type: "article.noted".into(),
        payload: Object::from_iter([("text", text)]),
        ..NewEvent::default()
    }
}

async fn append(workspace: &Handles, ids: &[&str], each: usize, text: &str) {
    let events: Vec<NewEvent> = (0..each).flat_map(|_| ids.iter().map(|id| event(id, text))).collect();
    for part in events.chunks(500) {
        workspace.writer.append_events(part.to_vec()).await.expect("appended");
    }
}

async fn ask(workspace: &Handles, pipeline: serde_json::Value) -> Result<QueryOutput, Error> {
    workspace.reader.query(Query::new(Value::from(pipeline))).await
}

/// Returns the rows of a pipeline and the number of events read for them.
async fn read(workspace: &Handles, pipeline: serde_json::Value) -> (Vec<Value>, u64) {
    let before = workspace.reader.events_read();
    let rows = ask(workspace, pipeline).await.expect("an answer").rows;
    (rows, workspace.reader.events_read() - before)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_limit_over_streams_reads_one_page() {
    let server = Server::start().await.expect("a server");
    let workspace = server.workspace("owner").await.expect("a workspace");
    append(&workspace, &["a", "b", "c"], EVENTS / 3, "x").await;
    let one = json!({"$match": {"aggregate_id": "a"}});
    let some = json!({"$match": {"aggregate_id": {"$in": ["c", "a", "none"]}}});
    let show = json!({"$project": {"_id": 0, "aggregate_id": 1, "version": 1}});

    let (rows, events) = read(&workspace, json!([one, {"$limit": 1}, show])).await;
    assert_eq!(rows, [Value::from(json!({"aggregate_id": "a", "version": 1}))]);
    assert_eq!(events, 1);
    let (rows, events) = read(&workspace, json!([some, {"$limit": 4}, show])).await;
    let places: Vec<Value> = [("a", 1), ("c", 1), ("a", 2), ("c", 2)]
        .map(|(id, version)| json!({"aggregate_id": id, "version": version}).into())
        .into();
    assert_eq!(rows, places);
    assert_eq!(events, 4);
    // The limit follows a condition that the store cannot evaluate.
    let odd = json!({"$match": {"$expr": {"$eq": [{"$mod": ["$version", 2]}, 1]}}});
    let (rows, events) = read(&workspace, json!([one, odd, {"$skip": 2}, {"$limit": 2}, show])).await;
    assert_eq!(rows.len(), 2);
    assert!(events <= 200, "{events}");
    // The query reads only the part of the stream that the condition selects.
    let late = json!({"$match": {"aggregate_id": "b", "position": {"$gt": EVENTS - 30}}});
    let (rows, events) = read(&workspace, json!([late, show])).await;
    assert_eq!(rows.len(), 10);
    assert!(events <= 60, "{events}");
    // Without a limit the whole stream is read.
    assert_eq!(read(&workspace, json!([one, {"$count": "n"}])).await.0, [json!({"n": EVENTS / 3}).into()]);
    let (rows, _) = read(&workspace, json!([some, show])).await;
    assert_eq!(rows.len(), 2 * EVENTS / 3);
}

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

/// Appends states with a string each, and with lists that take more memory than the rows that refer to them.
async fn append_notes(workspace: &Handles, count: usize) {
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
}

#[tokio::test(flavor = "multi_thread")]
async fn values_that_groups_and_windows_keep_count_against_the_memory_of_a_query() {
    let workspace = with_memory_of_1_mib().await;
    let fields = json!([{"name": "text", "type": "string"}, {"name": "list", "type": "array"}]);
    let note = json!({"type_name": "note", "fields": fields});
    workspace.writer.define_type(&Value::from(note), false).await.expect("a type");
    append_notes(&workspace, 7_000).await;
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
        // The result of a group takes the memory of its state.
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

/// Returns an error if the pipeline does not return `rows` rows, or does not need too much memory if `rows` is `None`.
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

#[tokio::test(flavor = "multi_thread")]
async fn the_parts_of_states_that_a_query_copies_count_against_its_memory() {
    let workspace = with_memory_of_1_mib().await;
    let fields = json!([
        {"name": "labels", "type": "array"},
        {"name": "items", "type": "array"},
        {"name": "profile", "type": "object"},
    ]);
    let order = json!({"type_name": "order", "fields": fields});
    workspace.writer.define_type(&Value::from(order), false).await.expect("a type");
    let items: Vec<_> = (0..40).map(|item| json!({"name": format!("item {item}")})).collect();
    let labels: Vec<_> = (0..40).map(|label| format!("label {label}")).collect();
    let profile: serde_json::Map<_, _> = (0..40).map(|field| (format!("field{field}"), json!(field))).collect();
    let payload = json!({"items": items, "labels": labels, "profile": profile});
    let order = |number: usize| NewEvent {
        aggregate_id: format!("o{number}"),
        aggregate_type: "order".into(),
        event_type: "order.created".into(),
        payload: Value::from(payload.clone()).as_object().cloned().unwrap_or_default(),
        ..NewEvent::default()
    };
    for part in (0..2_000).map(order).collect::<Vec<_>>().chunks(500) {
        workspace.writer.append_events(part.to_vec()).await.expect("appended");
    }
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
        // Each row is an object of its own, whose values belong to the state.
        (each(json!({"$last": "$$ROOT"})), None),
        (each(json!({"$last": {"$arrayToObject": [[{"k": name, "v": 1}]]}})), None),
        // The arrays and objects of the states are not copied.
        (each(json!({"$first": "$items"})), Some(2_000)),
        (each(json!({"$first": "$labels"})), Some(2_000)),
        (each(json!({"$last": {"$arrayElemAt": ["$items", 1]}})), Some(2_000)),
        // What has left the window no longer counts.
        (window(json!([-1, 0]), json!({"$mergeObjects": "$profile"})), Some(2_000)),
        (window(json!(["unbounded", "current"]), json!({"$mergeObjects": "$profile"})), Some(2_000)),
        (window(json!([-1, 0]), json!({"$setUnion": "$labels"})), Some(2_000)),
    ] {
        check_memory(&workspace, vec![all.clone(), fold.clone(), keeping], rows).await.expect("checked");
    }

    // Each function keeps a value at the same time as the others.
    let many = |count: usize, kept: serde_json::Value| {
        let outputs = (0..count).map(|output| (format!("kept{output}"), kept.clone()));
        json!({"$setWindowFields": {"sortBy": {"_id": 1}, "output": outputs.collect::<serde_json::Map<_, _>>()}})
    };
    let long = json!({"$range": [0, {"$add": ["$_version", 10_000]}]});
    let some = json!({"$limit": 100});
    let lookup = json!({"$lookup": {"pipeline": [{"$documents": [{}]}, {"$set": {"long": {"$range": [0, 10_000]}}}], "as": "all"}});
    let lookups = vec![[lookup, json!({"$set": {"all": {"$size": "$all"}}})]; 10];
    let nested = |name: &str, inner: &str| json!({"$map": {"input": {"$range": [0, 500]}, "in": {name: inner}}});
    let path = json!({"$let": {"vars": {"z": nested("c", "$n")}, "in":
        {"$let": {"vars": {"y": nested("b", "$$z")}, "in":
        {"$let": {"vars": {"x": nested("a", "$$y")}, "in": {"$size": "$$x.a.b.c"}}}}}}});
    let is_first = json!({"$eq": ["$aggregate_id", "o1"]});
    let has_name = json!({"$in": ["none", "$payload.items.name"]});
    let found = json!({"$filter": {"input": {"$range": [0, 2_000]}, "cond": {"$in": ["$$this", "$items.name"]}}});
    let one = json!({"$mergeObjects": {"$cond": [{"$eq": ["$_id", "o1"]}, "$profile", null]}});
    let same = json!({"let": {"name": "$n"}, "from": "order", "as": "all", "pipeline": [{"$match": {"$expr": {"$eq": ["$items.name", "$$name"]}}}]});
    let documents = json!({"$documents": [{"n": 1}]});
    for (pipeline, rows) in [
        (vec![all.clone(), fold.clone(), some.clone(), many(1, json!({"$locf": long}))], Some(100)),
        (vec![all.clone(), fold.clone(), some.clone(), many(10, json!({"$locf": long}))], None),
        (
            vec![all.clone(), fold.clone(), some.clone(), many(10, json!({"$expMovingAvg": {"input": long, "N": 2}}))],
            None,
        ),
        (vec![all.clone(), fold.clone(), some.clone(), many(1, json!({"$concatArrays": "$labels"}))], Some(100)),
        (vec![all.clone(), fold.clone(), some.clone(), many(15, json!({"$concatArrays": "$labels"}))], None),
        (vec![all.clone(), fold.clone(), window(json!([-1_900, 0]), one)], Some(2_000)),
        // What is kept for all rows counts once, and what is dropped with a row does not count.
        ([vec![documents.clone()], lookups[..1].concat()].concat(), Some(1)),
        ([vec![documents.clone()], lookups.concat()].concat(), None),
        (vec![documents.clone(), json!({"$lookup": same})], None),
        (vec![documents, json!({"$project": {"kept": path}})], None),
        (vec![all.clone(), json!({"$match": {"$expr": {"$or": [has_name, is_first]}}}), fold.clone()], Some(1)),
        (
            vec![
                all.clone(),
                fold.clone(),
                json!({"$bucketAuto": {"groupBy": {"$size": "$items.name"}, "buckets": 2}}),
            ],
            Some(1),
        ),
        (vec![all, fold, some, json!({"$project": {"kept": {"$size": found}}})], Some(100)),
    ] {
        check_memory(&workspace, pipeline, rows).await.expect("checked");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn arrays_that_a_path_builds_in_unwound_items_count_against_the_memory_of_a_query() {
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
async fn reading_a_published_revision_skips_the_rest_of_the_history() {
    let store = Store::connect("mem://").await.expect("a store");
    let first = embedded::engine(store.share()).await;
    let (workspace, key) = embedded::first(&first).await.expect("a workspace");
    let new = NewArticle { title: "Draft 0".into(), ..NewArticle::default() };
    let id = workspace.writer.create_article(new).await.expect("an article").0.id.clone();
    let change = async |workspace: &Handles, number: usize| {
        let change = ArticleChange { title: Some(format!("Draft {number}")), ..ArticleChange::default() };
        workspace.writer.change_article(id.as_str(), change, StreamExpectation::Any).await.expect("changed");
    };
    let published = async |engine: &Arc<foldwork_engine::Engine>| {
        let caller = engine.authenticate(&key).await.expect("a caller");
        let reader: ContentReader = engine.enter(caller).await.expect("a right");
        let article = reader.article(id.as_str(), Perspective::Published).await.expect("an article");
        article.state.get("title").and_then(Value::as_str).map(str::to_owned)
    };
    for number in 1..=40 {
        change(&workspace, number).await;
    }
    workspace.writer.publish_article(id.as_str(), StreamExpectation::Any).await.expect("published");
    for number in 41..=80 {
        change(&workspace, number).await;
    }
    // The second engine has none of the events in memory.
    let second = embedded::engine(store.share()).await;
    let elsewhere = enter(&second, &key).await.expect("a workspace");
    for (engine, workspace) in [(&first, &workspace), (&second, &elsewhere)] {
        workspace.reader.aggregate(id.as_str(), Default::default()).await.expect("read");
        worked(workspace).await.expect("caught up");
        let before = workspace.reader.events_read();
        for _ in 0..3 {
            assert_eq!(published(engine).await.as_deref(), Some("Draft 40"));
        }
        assert_eq!(workspace.reader.events_read(), before);
    }
    workspace.writer.publish_article(id.as_str(), StreamExpectation::Any).await.expect("published");
    change(&workspace, 81).await;
    assert_eq!(published(&first).await.as_deref(), Some("Draft 80"));
    assert_eq!(published(&second).await.as_deref(), Some("Draft 80"));
    workspace.writer.unpublish_article(id.as_str(), StreamExpectation::Any).await.expect("unpublished");
    change(&workspace, 82).await;
    workspace.writer.publish_article(id.as_str(), StreamExpectation::Any).await.expect("published");
    change(&workspace, 83).await;
    assert_eq!(published(&second).await.as_deref(), Some("Draft 82"));
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
    server.clock.hurry(100_000);
    let refused = run(&pipeline).await.expect_err("refused").to_string();
    assert!(refused.contains("the limit `pipeline.timeout`"), "{refused}");

    let workspace = with_memory_of_1_mib().await;
    let refused = workspace.reader.query(Query::new(pipeline)).await.expect_err("refused").to_string();
    assert!(refused.contains("the limit `pipeline.memory`"), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replay_for_an_agent_reads_only_the_end_of_its_feed() {
    let store = Store::connect("mem://").await.expect("a store");
    let first = embedded::engine(store.share()).await;
    let (workspace, key) = embedded::first(&first).await.expect("a workspace");
    let new = NewAgent { name: "one".into(), ..NewAgent::default() };
    let agent = workspace.writer.create_agent(new).await.expect("registered").0.agent;
    for number in 0..200 {
        let assignee = Some(Assignee::Agent(agent.id.text()));
        let new = NewTask { title: format!("Task {number}"), assignee, ..NewTask::default() };
        workspace.writer.create_task(new).await.expect("made");
    }
    // The second engine has none of the feed in memory.
    let second = embedded::engine(store.share()).await;
    let elsewhere = enter(&second, &key).await.expect("a workspace");
    worked(&elsewhere).await.expect("caught up");
    let listener = second.listen(&key).await.expect("a right");
    let agent = listener.agent(agent.id.as_str()).await.expect("the agent");
    let titles = async |again: DeliverySelection| {
        let deliveries = listener.told_again(&agent, again).await.expect("deliveries");
        let title = |delivery: &Delivery| delivery.task.state.get("title").and_then(Value::as_str).map(str::to_owned);
        deliveries.iter().filter_map(title).collect::<Vec<_>>()
    };
    let all = DeliverySelection { after: agent.first_position, until: u64::MAX, since: None, most: 100 };
    let before = elsewhere.reader.events_read();
    let some = titles(DeliverySelection { most: 3, since: Some(0), ..all }).await;
    assert_eq!(some, ["Task 197", "Task 198", "Task 199"]);
    let read = elsewhere.reader.events_read() - before;
    assert!(read <= 130, "{read} events were read");
    let before = elsewhere.reader.events_read();
    assert_eq!(titles(DeliverySelection { since: Some(i64::MAX), ..all }).await, [""; 0]);
    let read = elsewhere.reader.events_read() - before;
    assert!(read <= 130, "{read} events were read");
    let every = titles(all).await;
    assert_eq!((every.len(), every.first().map(String::as_str)), (100, Some("Task 100")));
    let position = agent.first_position + 10;
    assert_eq!(titles(DeliverySelection { until: position, ..all }).await.len(), 10);
    assert_eq!(titles(DeliverySelection { after: position, until: position + 4, ..all }).await.len(), 4);
}
