//! Attacks over real sockets. Hostile clients and broken networks must not affect other clients.
//!
//! An attack waits for conditions, never for a fixed time. Each attack has its own server with its own threads, on a
//! store in a folder.

mod aborted_requests;
mod client_ids_in_uuid7_form;
mod floods_of_joins;
mod pipelined_requests;
mod queries_of_one_key;
mod readers_of_large_content;
mod readers_that_never_read;
mod reset_during_key_revocation;
mod reset_during_replay;
mod slow_bodies;
mod sockets_that_are_cut;
mod sockets_that_never_read;
mod streams_end_with_their_key;
mod target;
mod unfinished_heads;
mod wide_payloads;

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::TIMEOUT;
use crate::client::{Client, Exchange};

/// The interval between checks of a condition.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// Repeats a check until it returns `None`. Fails after the timeout of a test, with the last text that the check
/// returned.
async fn until(mut obstacle: impl AsyncFnMut() -> Option<String>) {
    let began = Instant::now();
    while let Some(obstacle) = obstacle().await {
        assert!(began.elapsed() < TIMEOUT, "{obstacle}");
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

/// Sends a request and resets its connection after `moment`, while the server may be working on the request.
async fn reset_after(client: &Client, (method, path, body): (&str, &str, &str), moment: Duration) {
    let exchange = begin(client, method, path, body).await;
    let sent = Instant::now();
    while sent.elapsed() < moment {
        tokio::task::yield_now().await;
    }
    exchange.reset();
}

/// Returns delays from zero to somewhat more than `whole`, the measured duration of the first request. Most delays are
/// short, because later requests are faster than the first request.
fn moments(whole: Duration, number: u32) -> impl Iterator<Item = Duration> {
    (0..number).map(move |index| whole.mul_f64(1.2 * (f64::from(index) / f64::from(number)).powi(2)))
}

async fn begin(client: &Client, method: &str, path: &str, body: &str) -> Exchange {
    let length = body.len().to_string();
    let headers = [("Content-Type", "application/json"), ("Content-Length", length.as_str())];
    client.open(method, path, &headers, Some(body)).await
}

/// Sends a GET request that must succeed.
async fn read(client: &Client, path: &str) -> Value {
    let (status, text) = client.send("GET", path, "").await;
    assert_eq!(status, 200, "GET {path}: {text}");
    serde_json::from_str(&text).expect("JSON")
}

/// Sends a POST request that must succeed.
async fn post(client: &Client, path: &str, body: &Value) -> Value {
    let (status, text) = client.send("POST", path, &body.to_string()).await;
    assert!(status == 200 || status == 201, "POST {path}: {status} {text}");
    serde_json::from_str(&text).expect("JSON")
}

/// Waits until all followers of the log have reached its end.
async fn consumed(client: &Client) {
    until(async || {
        let consumers = read(client, "/api/v1/system/consumers").await;
        let mut lags = consumers["consumers"].as_array().into_iter().flatten().map(|consumer| &consumer["lag"]);
        (!lags.all(|lag| *lag == 0)).then(|| format!("followers of the log are behind: {consumers}"))
    })
    .await;
}

/// Creates a key, and returns the key's id and a client that uses the key.
async fn key(client: &Client, name: &str, expires_at: Option<String>) -> (String, Client) {
    let body = json!({"name": name, "scopes": ["api:read", "api:write"], "expires_at": expires_at});
    let made = post(client, "/api/v1/keys", &body).await;
    let text = |name: &str| made[name].as_str().expect("a text").to_owned();
    (text("id"), Client { address: client.address, key: text("key") })
}

/// Returns a description of the first inconsistent key, if any. A key must be valid if and only if it is listed.
async fn inconsistent(client: &Client, keys: &[(String, Client)]) -> Option<String> {
    for (number, (id, holder)) in keys.iter().enumerate() {
        let (status, text) = holder.send("POST", "/api/v1/aggregates/by-a-key/events", &crate::noted("one")).await;
        let listed = read(client, "/api/v1/keys").await;
        let is_listed = listed["data"].as_array().into_iter().flatten().any(|key| key["id"] == **id);
        let expected = if is_listed { 201 } else { 401 };
        if status != expected {
            return Some(format!("key {number} is listed: {is_listed}; its append: {status} {text}"));
        }
    }
    None
}
