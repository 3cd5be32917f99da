//! Tests that the server rejects queries over the limits of a key or a workspace, with a `Retry-After` header. A query
//! waits for capacity before the rejection, but the tests set the waiting time to zero.

use std::sync::Arc;
use std::time::Duration;

use foldwork_server::Config;
use foldwork_tests::server::Server;
use poem::http::{Method, StatusCode};
use poem::{Body, Request, Response};
use serde_json::{Value, json};

use super::mailbox::board;
use super::mcp;

const PIPELINE: &str = r#"{"pipeline": [{"$documents": [{"a": 1}]}, {"$project": {"a": 1}}]}"#;

async fn started(change: impl FnOnce(&mut Config)) -> Arc<Server> {
    let mut config = Config::default();
    config.plugins.enabled = vec!["mcp".into()];
    config.constants.query_wait = Duration::ZERO;
    change(&mut config);
    Arc::new(Server::start_with(&config).await.expect("a server"))
}

async fn post(server: &Server, name: &str, path: &str, body: &str) -> Response {
    let request = Request::builder()
        .method(Method::POST)
        .uri_str(format!("/api/v1/aggregates/{path}"))
        .header("content-type", "application/json")
        .header("authorization", format!("Bearer {}", server.key(name).expect("a key")))
        .body(Body::from_string(body.to_owned()));
    server.call(request).await
}

async fn json_body(response: Response) -> Value {
    serde_json::from_str(&response.into_body().into_string().await.expect("a text")).expect("JSON")
}

async fn assert_rejected(response: Response) {
    assert_eq!(response.status(), StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(response.header("retry-after"), Some("1"));
    assert_eq!(json_body(response).await["code"], "too_many_queries");
}

/// Starts a query of the owner, and waits until the clock blocks the query.
async fn held(server: &Arc<Server>) -> tokio::task::JoinHandle<Response> {
    server.clock.hold_next();
    let queried = server.clone();
    let held = tokio::spawn(async move { post(&queried, "owner", "query", PIPELINE).await });
    let clock = server.clock.clone();
    tokio::task::spawn_blocking(move || clock.until_held()).await.expect("a query");
    held
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_queries_are_limited_per_key() {
    let server = started(|config| config.constants.key_share = 8).await;
    let first = held(&server).await;
    assert_rejected(post(&server, "owner", "query", PIPELINE).await).await;
    assert_rejected(post(&server, "owner", "search", r#"{"query": "note"}"#).await).await;
    // A call of an MCP tool gets the same error.
    let params = json!({"name": "query", "arguments": {"pipeline": [{"$documents": []}]}});
    let key = server.key("owner").expect("a key");
    let answer = json_body(server.call(mcp::request(key, "tools/call", params)).await).await;
    assert_eq!(answer["result"]["isError"], true, "{answer}");
    assert!(answer.to_string().contains("too_many_queries"), "{answer}");
    // A dry run counts as a query, because planning also needs processor time. Another key has its own limit.
    let dry = PIPELINE.replacen('{', r#"{"dry_run": true, "#, 1);
    assert_rejected(post(&server, "owner", "query", &dry).await).await;
    assert_eq!(post(&server, "reader", "query", PIPELINE).await.status(), StatusCode::OK);

    server.clock.let_go();
    assert_eq!(first.await.expect("an answer").status(), StatusCode::OK);
    assert_eq!(post(&server, "owner", "query", PIPELINE).await.status(), StatusCode::OK);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_preview_of_effects_counts_as_a_query() {
    let server = started(|config| config.constants.key_share = 8).await;
    board::post(&server, "/aggregates/define", &json!({"type_name": "note"})).await;
    let effect = json!({"aggregate_id": "n-1", "event_type": "note.changed", "payload": {"text": "x"}});
    let with_effect = json!({"title": "Change it", "artifact": {"text": "x", "effect": effect}});
    let mut paths = Vec::new();
    for body in [with_effect, json!({"title": "Read it"})] {
        let (status, task) = board::post(&server, "/mailbox", &body).await;
        assert_eq!(status, 201, "{task}");
        paths.push(format!("/mailbox/{}", task["id"].as_str().expect("an id")));
    }
    let first = held(&server).await;
    assert_eq!(board::get(&server, &paths[0]).await.0, 429);
    assert_eq!(board::get(&server, &paths[1]).await.0, 200);
    server.clock.let_go();
    assert_eq!(first.await.expect("an answer").status(), StatusCode::OK);
    let (status, task) = board::get(&server, &paths[0]).await;
    assert_eq!((status, task["would_append"].as_array().map(Vec::len)), (200, Some(1)), "{task}");
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_queries_are_limited_per_workspace() {
    let server = started(|config| config.pipeline.workspace_queries = 1).await;
    let first = held(&server).await;
    assert_rejected(post(&server, "reader", "query", PIPELINE).await).await;
    assert_eq!(post(&server, "other", "query", PIPELINE).await.status(), StatusCode::OK);
    server.clock.let_go();
    assert_eq!(first.await.expect("an answer").status(), StatusCode::OK);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_over_the_memory_limit_of_its_key_is_rejected() {
    // A key has 1 MiB of the 256 MiB of its workspace.
    let server = started(|config| config.constants.key_share = 256).await;
    // The query needs more memory than its key may use, but less than a single query may use (64 MiB).
    let large = r#"{"pipeline": [{"$documents": [{"a": 1}]}, {"$project": {"all": {"$range": [0, 200000]}}}]}"#;
    assert_rejected(post(&server, "owner", "query", large).await).await;
    assert_eq!(post(&server, "owner", "query", PIPELINE).await.status(), StatusCode::OK);
}
