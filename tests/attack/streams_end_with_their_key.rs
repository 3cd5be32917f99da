//! Revokes or expires a key with open streams. The streams of the key end, and streams of other keys continue.

use std::time::Duration;

use foldwork_engine::clock::{Clock, SystemClock};
use foldwork_engine::model::date::format_date;
use tokio::time::timeout;

use super::target::Target;
use super::{key, post};
use crate::client::{Client, Exchange};
use crate::created;

/// The time limit for the end of a stream. The documented limit is one second; this limit is longer for slow machines.
const LIMIT: Duration = Duration::from_secs(20);
const EXPIRES_IN_MS: i64 = 6_000;

/// Opens a stream of the log or of one aggregate.
async fn stream(client: &Client, path: &str) -> Exchange {
    let headers = [("Accept", "text/event-stream"), ("Connection", "close")];
    let mut stream = client.open("GET", path, &headers, None).await;
    let head = stream.read_until("\r\n\r\n").await;
    assert!(head.contains("text/event-stream"), "{head}");
    stream
}

/// Opens streams with the owner's key and with another key, revokes the other key or lets it expire, and checks that
/// only the streams of the other key end.
async fn end(target: &Target, holder: Client, revoked: Option<String>) {
    let client = &target.client;
    assert_eq!(client.send("POST", "/api/v1/aggregates/a/events", &created("before")).await.0, 201);
    let mut owners = stream(client, "/api/v1/events").await;
    let theirs = [stream(&holder, "/api/v1/events").await, stream(&holder, "/api/v1/aggregates/a/events").await];
    if let Some(id) = revoked {
        assert_eq!(client.send("DELETE", &format!("/api/v1/keys/{id}"), "").await.0, 204);
    }
    for stream in theirs {
        timeout(LIMIT, stream.rest()).await.expect("the stream ends with its key");
    }
    assert_eq!(holder.send("GET", "/api/v1/keys/self", "").await.0, 401);
    assert_eq!(client.send("POST", "/api/v1/aggregates/a/events", &crate::noted("after")).await.0, 201);
    owners.read_until("\"after\"").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_end_when_their_key_is_revoked() {
    let target = Target::start().await;
    let (id, holder) = key(&target.client, "short", None).await;
    end(&target, holder, Some(id)).await;
    target.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_end_when_their_key_expires() {
    let target = Target::start().await;
    let expires_at = format_date(SystemClock.now_ms() + EXPIRES_IN_MS);
    let (_, holder) = key(&target.client, "short", Some(expires_at)).await;
    end(&target, holder, None).await;
    target.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_waiting_request_of_a_revoked_key_gets_no_events() {
    let target = Target::start().await;
    let (id, holder) = key(&target.client, "short", None).await;
    let path = "/api/v1/events?wait_ms=30000&types=article.created";
    let waiting = holder.open("GET", path, &[("Connection", "close")], None).await;
    // After the response to the next request, either the server has received the waiting request, or it will reject the
    // waiting request because of the revoked key.
    post(&target.client, "/api/v1/aggregates/define", &serde_json::json!({"type_name": "note", "fields": []})).await;
    assert_eq!(target.client.send("DELETE", &format!("/api/v1/keys/{id}"), "").await.0, 204);
    assert_eq!(target.client.send("POST", "/api/v1/aggregates/a/events", &created("secret")).await.0, 201);
    let answer = timeout(LIMIT, waiting.rest()).await.expect("a response to the waiting request");
    assert!(!answer.contains("secret"), "{answer}");
    target.end().await;
}
