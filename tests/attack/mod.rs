//! Attacks over real sockets: what a client does on purpose or because its network breaks must cost the others nothing.
//!
//! An attack waits for what must come true, and never for a time. Each has a server of its own, with threads of its own,
//! on a store in a folder.

mod aborted_requests;
mod client_ids_in_uuid7_form;
mod floods_of_joins;
mod pipelined_requests;
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

/// How often a condition is looked at.
const LOOK: Duration = Duration::from_millis(5);

/// Looks until something is so; fails with what is in the way where that is not within a test.s timeout.
async fn until(mut obstacle: impl AsyncFnMut() -> Option<String>) {
    let began = Instant::now();
    while let Some(obstacle) = obstacle().await {
        assert!(began.elapsed() < TIMEOUT, "{obstacle}");
        tokio::time::sleep(LOOK).await;
    }
}

/// Sends a request and breaks its connection after a while, in the midst of whatever the server does then.
async fn reset_after(client: &Client, (method, path, body): (&str, &str, &str), moment: Duration) {
    let exchange = begin(client, method, path, body).await;
    let sent = Instant::now();
    while sent.elapsed() < moment {
        tokio::task::yield_now().await;
    }
    exchange.reset();
}

/// Moments from the beginning of a request to somewhat after its end, the whole of which took so long. Most are early:
/// the first request is slower than those after it.
fn moments(whole: Duration, number: u32) -> impl Iterator<Item = Duration> {
    (0..number).map(move |index| whole.mul_f64(1.2 * (f64::from(index) / f64::from(number)).powi(2)))
}

async fn begin(client: &Client, method: &str, path: &str, body: &str) -> Exchange {
    let length = body.len().to_string();
    let headers = [("Content-Type", "application/json"), ("Content-Length", length.as_str())];
    client.open(method, path, &headers, Some(body)).await
}

/// Asks for what must be there.
async fn read(client: &Client, path: &str) -> Value {
    let (status, text) = client.send("GET", path, "").await;
    assert_eq!(status, 200, "GET {path}: {text}");
    serde_json::from_str(&text).expect("JSON")
}

/// Posts what must be taken.
async fn post(client: &Client, path: &str, body: &Value) -> Value {
    let (status, text) = client.send("POST", path, &body.to_string()).await;
    assert!(status == 200 || status == 201, "POST {path}: {status} {text}");
    serde_json::from_str(&text).expect("JSON")
}

/// Returns once everything that follows the log has come to its end.
async fn consumed(client: &Client) {
    until(async || {
        let consumers = read(client, "/api/v1/system/consumers").await;
        let mut lags = consumers["consumers"].as_array().into_iter().flatten().map(|consumer| &consumer["lag"]);
        (!lags.all(|lag| *lag == 0)).then(|| format!("what follows the log is behind: {consumers}"))
    })
    .await;
}

/// Makes a key with these scopes, and answers its id and a client that shows it.
async fn key(client: &Client, name: &str, expires_at: Option<String>) -> (String, Client) {
    let wanted = json!({"name": name, "scopes": ["api:read", "api:write"], "expires_at": expires_at});
    let made = post(client, "/api/v1/keys", &wanted).await;
    let text = |name: &str| made[name].as_str().expect("a text").to_owned();
    (text("id"), Client { address: client.address, key: text("key") })
}

/// What is wrong with these keys, each of which opens the workspace if and only if it is listed.
async fn inconsistent(client: &Client, keys: &[(String, Client)]) -> Option<String> {
    for (number, (id, holder)) in keys.iter().enumerate() {
        let (status, text) = holder.send("POST", "/api/v1/aggregates/by-a-key/events", &crate::created("one")).await;
        let listed = read(client, "/api/v1/keys").await;
        let is_listed = listed["data"].as_array().into_iter().flatten().any(|key| key["id"] == **id);
        let wanted = if is_listed { 201 } else { 401 };
        if status != wanted {
            return Some(format!("key {number} is listed: {is_listed}; its append: {status} {text}"));
        }
    }
    None
}
