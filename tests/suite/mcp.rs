//! Tests the Model Context Protocol: each request runs with the rights of its own caller, and errors refer to the
//! authorization server.

use foldwork_server::Config;
use foldwork_tests::server::Server;
use futures_util::future::join_all;
use poem::http::{Method, StatusCode};
use poem::{Body, Request, Response};
use serde_json::{Value, json};

async fn started() -> Server {
    let mut config = Config::default();
    config.plugins.enabled = vec!["mcp".into()];
    Server::start_with(&config).await.expect("a server")
}

/// Returns an MCP request.
pub fn request(key: &str, method: &str, params: Value) -> Request {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    Request::builder()
        .method(Method::POST)
        .uri_str("/mcp")
        .header("host", "localhost")
        .header("accept", "application/json, text/event-stream")
        .header("content-type", "application/json")
        .header("authorization", format!("Bearer {key}"))
        .body(Body::from_string(body.to_string()))
}

async fn result(response: Response) -> Value {
    assert_eq!(response.status(), StatusCode::OK);
    let text = response.into_body().into_string().await.expect("a text");
    serde_json::from_str::<Value>(&text).expect("JSON")["result"].clone()
}

async fn call_tool(server: &Server, key: &str, tool: &str, arguments: Value) -> Value {
    let params = json!({"name": tool, "arguments": arguments});
    result(server.call(request(key, "tools/call", params)).await).await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_tool_get_aggregate_shows_no_data_of_another_workspace() {
    let server = started().await;
    let both = [("owner", "Ours"), ("other", "Theirs")];
    for (name, title) in both {
        let event = json!({
            "aggregate_id": "shared",
            "aggregate_type": "article",
            "event_type": "article.created",
            "payload": {"title": title},
        });
        let made = call_tool(&server, server.key(name).expect("a key"), "append_event", event).await;
        assert_ne!(made["isError"], true, "{made}");
    }
    let reads = (0..100).map(async |number| {
        let (name, title) = both[number % 2];
        let key = server.key(name).expect("a key");
        let shown = call_tool(&server, key, "get_aggregate", json!({"aggregate_id": "shared"})).await;
        assert_eq!(shown["structuredContent"]["state"]["title"], title);
    });
    join_all(reads).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn oversized_results_are_rejected_and_oversized_lists_of_rows_are_truncated() {
    let mut config = Config::default();
    config.plugins.enabled = vec!["mcp".into()];
    config.constants.mcp_response_bytes = 4_000;
    let server = Server::start_with(&config).await.expect("a server");
    let key = server.key("owner").expect("a key");
    for (id, length) in [("small", 10), ("large", 5_000), ("smaller", 10)] {
        let event = json!({
            "aggregate_id": id,
            "aggregate_type": "article",
            "event_type": "article.created",
            "payload": {"title": id, "slug": id, "body": "x".repeat(length)},
        });
        call_tool(&server, key, "append_event", event).await;
    }
    let refused = call_tool(&server, key, "get_aggregate", json!({"aggregate_id": "large"})).await;
    let error: Value = serde_json::from_str(refused["content"][0]["text"].as_str().expect("a text")).expect("JSON");
    assert_eq!((&refused["isError"], &error["code"]), (&json!(true), &json!("response_too_large")));
    let pipeline = json!([{"$match": {"aggregate_type": "article"}}, {"$fold": {}}, {"$sort": {"_created_at": 1, "_position": 1}}]);
    let cut = call_tool(&server, key, "query", json!({"pipeline": pipeline})).await;
    let answer = &cut["structuredContent"];
    assert_eq!((&answer["count"], &answer["more"]), (&json!(1), &json!(true)), "{answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn challenges_name_the_metadata_that_lists_the_authorization_servers() {
    let mut config = Config::default();
    config.plugins.enabled = vec!["mcp".into()];
    config.http.public_url = "https://fold.example.org".into();
    config.auth.issuers =
        vec![foldwork_server::config::Issuer { issuer: "https://id.example.org".into(), ..Default::default() }];
    let server = Server::start_with(&config).await.expect("a server");
    let challenge = async |request: Request| {
        let response = server.call(request).await;
        let challenge = response.header("www-authenticate").expect("a challenge").to_owned();
        (response.status(), challenge)
    };
    let place = "resource_metadata=\"https://fold.example.org/.well-known/oauth-protected-resource/mcp\"";
    let nobody = Request::builder().method(Method::POST).uri_str("/mcp").finish();
    let expected = format!("Bearer {place}, scope=\"mcp:read\"");
    assert_eq!(challenge(nobody).await, (StatusCode::UNAUTHORIZED, expected));
    let expected = format!("Bearer {place}, scope=\"mcp:read\", error=\"invalid_token\"");
    assert_eq!(challenge(request("nonsense", "ping", json!({}))).await, (StatusCode::UNAUTHORIZED, expected));
    let reader = server.key("reader").expect("a key");
    let (status, challenge) = challenge(request(reader, "ping", json!({}))).await;
    assert_eq!(status, StatusCode::FORBIDDEN);
    let description = "error_description=\"the scope mcp:read is needed\"";
    let expected = format!("Bearer error=\"insufficient_scope\", scope=\"mcp:read\", {place}, {description}");
    assert_eq!(challenge, expected);
    for path in ["/.well-known/oauth-protected-resource/mcp", "/.well-known/oauth-protected-resource"] {
        let response = server.call(Request::builder().uri_str(path).finish()).await;
        let document: Value =
            serde_json::from_str(&response.into_body().into_string().await.expect("a text")).expect("JSON");
        let expected = json!({
            "resource": "https://fold.example.org/mcp",
            "authorization_servers": ["https://id.example.org"],
            "scopes_supported": ["mcp:read", "mcp:write"],
            "bearer_methods_supported": ["header"],
        });
        assert_eq!(document, expected);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_over_the_size_limit_gets_413() {
    let mut config = Config::default();
    config.plugins.enabled = vec!["mcp".into()];
    config.constants.mcp_message_bytes = 1_000;
    let server = Server::start_with(&config).await.expect("a server");
    let key = server.key("owner").expect("a key");
    let call =
        |bytes: usize| request(key, "tools/call", json!({"name": "search", "arguments": {"query": "a".repeat(bytes)}}));
    let response = server.call(call(1_000)).await;
    assert_eq!(response.status(), StatusCode::PAYLOAD_TOO_LARGE);
    let text = response.into_body().into_string().await.expect("a text");
    assert!(text.contains("larger than 1000 bytes"), "{text}");
    assert_eq!(server.call(call(500)).await.status(), StatusCode::OK);
}
