//! Tests a server with many concurrent clients of MCP and of the HTTP API over real sockets. Each client gets the
//! responses to its own requests, limited by its own rights.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{Client, serve};

/// The id of a key, and a client that uses the key.
struct Key {
    id: String,
    client: Client,
}

async fn made_key(client: &Client, scopes: &[&str]) -> Key {
    let body = json!({"name": "k", "scopes": scopes}).to_string();
    let (status, answer) = client.send("POST", "/api/v1/keys", &body).await;
    assert_eq!(status, 201, "{answer}");
    let answer: Value = serde_json::from_str(&answer).expect("JSON");
    let text = |name: &str| answer[name].as_str().expect("a text").to_owned();
    Key { id: text("id"), client: Client { address: client.address, key: text("key") } }
}

/// Sends an MCP request and returns the result in the response.
async fn rpc(client: &Client, id: usize, method: &str, params: Value) -> Value {
    let body = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string();
    let length = body.len().to_string();
    let headers = [
        ("Content-Type", "application/json"),
        ("Content-Length", length.as_str()),
        ("Accept", "application/json, text/event-stream"),
    ];
    let (status, answer) = client.open("POST", "/mcp", &headers, Some(&body)).await.answer().await;
    assert_eq!(status, 200, "{answer}");
    let answer: Value = serde_json::from_str(&answer).expect("JSON");
    assert_eq!(answer["id"], id, "the answer to another request: {answer}");
    answer["result"].clone()
}

async fn call_tool(client: &Client, id: usize, tool: &str, arguments: Value) -> Value {
    rpc(client, id, "tools/call", json!({"name": tool, "arguments": arguments})).await
}

fn event(number: usize) -> Value {
    json!({
        "aggregate_id": format!("a-{number}"),
        "aggregate_type": "article",
        "event_type": "article.created",
        "payload": {"title": format!("Title {number}"), "slug": format!("title-{number}")},
    })
}

/// Performs one operation of a client, and checks the response. `number` selects the client and the operation.
async fn act(number: usize, writers: &[Key], reader: &Key) {
    let key = &writers[number % writers.len()];
    let actor = format!("key:{}", key.id);
    match number % 5 {
        0 => {
            let result = call_tool(&key.client, number, "append_event", event(number)).await;
            let event = &result["structuredContent"]["event"];
            assert_eq!(event["actor"], actor);
            assert_eq!(event["payload"]["title"], format!("Title {number}"));
        }
        1 => {
            let path = format!("/api/v1/aggregates/a-{number}/events");
            let (status, answer) = key.client.send("POST", &path, &event(number).to_string()).await;
            assert_eq!(status, 201, "{answer}");
            let answer: Value = serde_json::from_str(&answer).expect("JSON");
            assert_eq!(answer["actor"], actor);
        }
        2 => {
            let tools = rpc(&reader.client, number, "tools/list", json!({})).await;
            let names: Vec<&str> =
                tools["tools"].as_array().expect("tools").iter().filter_map(|tool| tool["name"].as_str()).collect();
            assert!(names.contains(&"search") && !names.contains(&"append_event"), "{names:?}");
        }
        3 => {
            let result = call_tool(&reader.client, number, "append_event", event(number)).await;
            assert_eq!(result["isError"], true, "a read-only key has written: {result}");
        }
        _ => {
            let (status, answer) = key.client.send("GET", "/api/v1/keys/self", "").await;
            assert_eq!(status, 200, "{answer}");
            let answer: Value = serde_json::from_str(&answer).expect("JSON");
            assert_eq!(answer["id"], key.id.as_str());
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_concurrent_calls_each_get_their_own_response() {
    const CALLS: usize = 100;
    let serving = serve().await;
    let mut writers = Vec::new();
    for _ in 0..7 {
        writers.push(made_key(&serving.client, &["mcp:read", "mcp:write", "api:read", "api:write"]).await);
    }
    let reader = Arc::new(made_key(&serving.client, &["mcp:read"]).await);
    let writers = Arc::new(writers);
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..CALLS {
        let (writers, reader) = (writers.clone(), reader.clone());
        tasks.spawn(async move { act(number, &writers, &reader).await });
    }
    while let Some(done) = tasks.join_next().await {
        done.expect("the right answer");
    }
    let pipeline = json!([{"$match": {"aggregate_type": "article"}}, {"$fold": {}}, {"$count": "n"}]);
    let counted = call_tool(&reader.client, CALLS, "query", json!({"pipeline": pipeline})).await;
    assert_eq!(counted["structuredContent"]["rows"], json!([{"n": CALLS / 5 * 2}]));
    serving.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revoked_key_is_rejected() {
    let serving = serve().await;
    let key = made_key(&serving.client, &["mcp:read"]).await;
    assert_ne!(call_tool(&key.client, 1, "list_events", json!({})).await["isError"], true);
    assert_eq!(serving.client.send("DELETE", &format!("/api/v1/keys/{}", key.id), "").await.0, 204);
    let body = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"}).to_string();
    let (status, answer) = key.client.send("POST", "/mcp", &body).await;
    assert_eq!(status, 401, "{answer}");
    serving.end().await;
}
