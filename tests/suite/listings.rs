//! Tests that lists and graphs are limited: a page ends at its byte limit, a long list lets other tasks run, and a
//! graph ends at the time limit of a query.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};

use foldwork_engine::model::event::NewEvent;
use foldwork_engine::model::graph::Direction;
use foldwork_engine::model::value::{Object, Value};
use foldwork_engine::workspace::PageLimit;
use foldwork_engine::workspace::article_list::ArticleFilter;
use foldwork_engine::workspace::articles::Perspective;
use foldwork_engine::{ContentReader, Engine};
use foldwork_server::Config;
use foldwork_tests::handles::Handles;
use foldwork_tests::server::{Server, Setup, worked};
use serde_json::json;

use super::mailbox::board::{get, post};

const ARTICLES: usize = 10;
const PAGE_BYTES: usize = 20_000;

fn event(id: &str, event_type: &str, payload: Object) -> NewEvent {
    NewEvent {
        aggregate_id: id.into(),
        aggregate_type: event_type.split('.').next().unwrap_or_default().into(),
        event_type: event_type.into(),
        payload,
        ..NewEvent::default()
    }
}

async fn append(workspace: &Handles, events: Vec<NewEvent>) {
    for part in events.chunks(500) {
        workspace.writer.append_events(part.to_vec()).await.expect("appended");
    }
}

/// Returns the sizes of the pages of a list and the number of its items.
async fn pages(server: &Server, list: &str) -> (Vec<usize>, usize) {
    let (mut sizes, mut items, mut cursor) = (Vec::new(), 0, String::new());
    loop {
        let (status, page) = get(server, &format!("/{list}limit=200{cursor}")).await;
        assert_eq!(status, 200, "{page}");
        let data = page["data"].as_array().expect("items");
        items += data.len();
        sizes.push(data.iter().map(|item| item.to_string().len()).sum());
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return (sizes, items),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_of_lists_end_at_their_byte_limit_and_omit_no_items() {
    let mut config = Config::default();
    config.plugins.enabled.clear();
    config.constants.page_bytes = PAGE_BYTES;
    let server = Server::start_with(&config).await.expect("a server");
    for number in 0..ARTICLES {
        let text = "x".repeat(8_000);
        let article = json!({"title": format!("Article {number}"), "body": text});
        let (status, article) = post(&server, "/articles", &article).await;
        assert_eq!(status, 201, "{article}");
        let id = article["aggregate_id"].as_str().expect("an id");
        let (status, answer) = post(&server, &format!("/articles/{id}/publish"), &json!({})).await;
        assert_eq!(status, 200, "{answer}");
        let project = json!({"name": format!("Project {number}"), "description": text});
        assert_eq!(post(&server, "/projects", &project).await.0, 201);
        let agent = json!({"name": format!("Agent {number}"), "description": text});
        assert_eq!(post(&server, "/agents", &agent).await.0, 201);
    }
    for list in ["articles?", "articles?perspective=published&", "projects?", "agents?"] {
        let (sizes, items) = pages(&server, list).await;
        assert_eq!(items, ARTICLES, "{list}");
        assert!(sizes.iter().all(|bytes| *bytes < 2 * PAGE_BYTES), "{list}: {sizes:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_of_types_keys_members_and_agents_contain_every_row_once() {
    let mut config = Config::default();
    config.plugins.enabled.clear();
    // A page contains at least one row, so at this limit every page contains exactly one row.
    config.constants.page_bytes = 1;
    let server = Server::start_with(&config).await.expect("a server");
    for number in 0..3 {
        assert_eq!(post(&server, "/aggregates/define", &json!({"type_name": format!("note{number}")})).await.0, 201);
        assert_eq!(post(&server, "/agents", &json!({"name": format!("Agent {number}")})).await.0, 201);
        assert_eq!(post(&server, "/members", &json!({"email": format!("{number}@example.com")})).await.0, 201);
        server.clock.advance(1);
    }
    let reader = server.workspace("owner").await.expect("a workspace").reader;
    let expected = [
        ("aggregate-types?", reader.list_types().await.expect("types").len()),
        ("keys?", reader.list_keys().await.expect("keys").len()),
        ("members?", reader.list_members().await.expect("members").len()),
        ("agents/roster?", 3),
    ];
    for (list, expected) in expected {
        let (sizes, items) = pages(&server, list).await;
        assert_eq!((items, sizes.len()), (expected, expected), "{list}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn long_labels_are_truncated_in_search_results_and_graphs() {
    let server = Server::start_with(&Config::default()).await.expect("a server");
    assert_eq!(post(&server, "/aggregates/define", &json!({"type_name": "note"})).await.0, 201);
    let title = "é".repeat(100_000);
    let body = json!({"aggregate_type": "note", "event_type": "note.created", "payload": {"title": title}});
    assert_eq!(post(&server, "/aggregates/long/events", &body).await.0, 201);
    let cut = json!(format!("{}…", "é".repeat(256)));
    let (_, found) = post(&server, "/aggregates/search", &json!({"query": "é".repeat(200)})).await;
    assert_eq!(found["results"][0]["label"], cut, "{found:.300}");
    let (_, graph) = get(&server, "/aggregates/long/graph").await;
    assert_eq!(graph["nodes"][0]["label"], cut, "{graph:.300}");
}

async fn content(engine: &std::sync::Arc<Engine>, key: &str) -> ContentReader {
    let caller = engine.authenticate(key).await.expect("a caller");
    engine.enter(caller).await.expect("a right")
}

/// Runs a future. Returns the result of the future, and the number of times that the future let other tasks run.
async fn pauses<T>(work: impl Future<Output = T>) -> (T, usize) {
    let (mut work, pauses) = (pin!(work), AtomicUsize::new(0));
    let result = poll_fn(|context| {
        let polled = work.as_mut().poll(context);
        pauses.fetch_add(usize::from(polled.is_pending()), Ordering::Relaxed);
        polled
    })
    .await;
    (result, pauses.into_inner())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_request_without_matches_yields_to_other_requests() {
    let mut config = Config::default();
    config.plugins.enabled.clear();
    let server = Server::start_with(&config).await.expect("a server");
    let workspace = server.workspace("owner").await.expect("a workspace");
    let article = |number: usize| event(&format!("a{number}"), "article.noted", Object::from_iter([("text", "x")]));
    append(&workspace, (0..6_000).map(article).collect()).await;
    let content = content(&server.engine, server.key("owner").expect("a key")).await;
    let limit = PageLimit { rows: 50, bytes: 1 << 20 };
    let filter = ArticleFilter { slug: Some("none".into()), ..ArticleFilter::default() };
    let list = content.list_articles(&filter, Perspective::Draft, None, limit);
    let (page, pauses_of_list) = pauses(list).await;
    assert!(page.expect("a page").items.is_empty());
    assert!(pauses_of_list >= 5, "the list pauses {pauses_of_list} times");
    let (newest, pauses_of_newest) = pauses(content.newest_published(None, 10)).await;
    assert!(newest.expect("a list").is_empty());
    assert!(pauses_of_newest >= 5, "the list pauses {pauses_of_newest} times");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_of_published_articles_reads_a_limited_number_of_changed_articles() {
    let mut config = Config::default();
    config.plugins.enabled.clear();
    let server = Server::start_with(&config).await.expect("a server");
    let workspace = server.workspace("owner").await.expect("a workspace");
    let noted = |tag: &str| Object::from_iter([("tags", Value::from(vec![Value::from(tag)]))]);
    let published = || [("status", Value::from("published")), ("published_version", Value::Int(2))];
    let draft = |number: usize| noted(if number == 0 { "rare" } else { "common" });
    let events = |event_type: &'static str, payload: &dyn Fn(usize) -> Object| -> Vec<NewEvent> {
        (0..501).map(|number| event(&format!("a{number}"), event_type, payload(number))).collect()
    };
    append(&workspace, events("article.noted", &draft)).await;
    append(&workspace, events("article.published", &|_| Object::from_iter(published()))).await;
    append(&workspace, events("article.noted", &|_| noted("changed"))).await;
    let (sizes, articles) = pages(&server, "articles?perspective=published&tag=rare&").await;
    // The first page examines the 500 newest articles, none of which matches.
    assert_eq!((sizes.len(), sizes[0], articles), (2, 0, 1));
    assert_eq!(pages(&server, "articles?perspective=published&tag=changed&").await.1, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_most_recently_published_articles_are_listed_first() {
    let mut config = Config::default();
    config.plugins.enabled.clear();
    let server = Server::start_with(&config).await.expect("a server");
    let mut ids = Vec::new();
    for number in 0..6 {
        let (_, article) = post(&server, "/articles", &json!({"title": format!("Article {number}")})).await;
        ids.push(article["aggregate_id"].as_str().expect("an id").to_owned());
    }
    for number in [3, 0, 5, 1] {
        server.clock.advance(1_000);
        post(&server, &format!("/articles/{}/publish", ids[number]), &json!({})).await;
    }
    let content = content(&server.engine, server.key("owner").expect("a key")).await;
    let newest = content.newest_published(None, 3).await.expect("a list");
    let expected = [1, 5, 0].map(|number: usize| ids[number].as_str());
    assert_eq!(newest.iter().map(|article| article.id.as_str()).collect::<Vec<_>>(), expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_graph_respects_the_time_limit_of_queries() {
    let server = Setup::with_plugins(vec!["echo".into()]).start().await.expect("a server");
    let workspace = server.workspace("owner").await.expect("a workspace");
    let fields = json!([
        {"name": "title", "type": "string", "label": true}, {"name": "slug", "type": "string"}
    ]);
    let definition = json!({"type_name": "note", "traits": ["noted"], "fields": fields});
    let definition = serde_json::from_str(&definition.to_string()).expect("a definition");
    workspace.writer.define_type(&definition, false).await.expect("a type");
    let note = |number: usize| {
        let payload = Object::from_iter([
            ("title", Value::from(format!("Note {number}"))),
            ("slug", Value::from(format!("s{number}"))),
            ("to", Value::from("s0")),
        ]);
        event(&format!("n{number}"), "note.created", payload)
    };
    append(&workspace, (0..600).map(note).collect()).await;
    worked(&workspace).await.expect("the plugin's turn");
    let graph = async |closed| workspace.reader.graph("n0", 1, Vec::new(), Direction::Both, closed, None).await;
    let around = graph(true).await.expect("a graph");
    assert_eq!((around.nodes.len(), around.truncated), (600, false));
    // Each reading of the stopwatch takes longer than a query may.
    server.clock.advance_stopwatch_by(10_000_000);
    let refused = graph(false).await.err().expect("refused").to_string();
    assert!(refused.contains("the limit `pipeline.timeout`"), "{refused}");
}
