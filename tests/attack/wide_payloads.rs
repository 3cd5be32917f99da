//! Reads and appends payloads with very many fields. These payloads block no other requests, because the server
//! processes them outside the threads that serve requests.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Map, Value, json};
use tokio::task::JoinSet;

use super::post;
use super::target::Target;
use crate::client::Client;

const FIELDS: usize = 20_000;
const EVENTS: usize = 5;
const READERS: usize = 4;
const ROUNDS: usize = 5;

/// Returns an event with many fields in the payload. Each `number` gives the same fields, but a different order and
/// different values.
fn wide(number: usize) -> Value {
    let fields: Map<String, Value> =
        (0..FIELDS).map(|field| (format!("f{}", (field * 7 + number) % FIELDS), json!(number))).collect();
    let verb = if number == 1 { "created" } else { "updated" };
    json!({"aggregate_type": "wide", "event_type": format!("wide.{verb}"), "payload": fields})
}

/// Reads the aggregate at each of its versions, and counts the responses. Runs in a separate task, so that parsing the
/// responses does not block the test.
async fn read_versions(client: Client, read: Arc<AtomicUsize>) {
    for version in 1..=EVENTS {
        let (status, text) = client.send("GET", &format!("/api/v1/aggregates/wide?version={version}"), "").await;
        assert_eq!(status, 200, "{text:.300}");
        assert!(text.contains(&format!("\"_version\":{version},")), "{text:.300}");
        read.fetch_add(1, Ordering::SeqCst);
    }
}

/// Returns the number of small responses that one client receives while other clients read the aggregate.
async fn small_responses(client: &Client) -> usize {
    let read = Arc::new(AtomicUsize::new(0));
    let mut readers = JoinSet::new();
    for _ in 0..READERS {
        let client = Client { address: client.address, key: client.key.clone() };
        readers.spawn(read_versions(client, read.clone()));
    }
    let mut healthy = 0;
    while read.load(Ordering::SeqCst) < READERS * EVENTS && !readers.is_empty() {
        assert_eq!(client.send("GET", "/healthz", "").await.0, 200);
        healthy += 1;
        // Fails immediately if a reader has failed.
        if let Some(ended) = readers.try_join_next() {
            ended.expect("versions that are read");
        }
    }
    healthy
}

#[tokio::test(flavor = "multi_thread")]
async fn reading_wide_aggregates_does_not_block_other_requests() {
    let target = Target::start().await;
    let client = &target.client;
    post(client, "/api/v1/aggregates/define", &json!({"type_name": "wide", "fields": []})).await;
    for number in 1..=EVENTS {
        post(client, "/api/v1/aggregates/wide/events", &wide(number)).await;
    }
    // A small response takes a fraction of the time of a wide response, unless the small response waits for a wide
    // response. Other load on the machine may slow down one round, but not all rounds.
    let mut most = 0;
    for _ in 0..ROUNDS {
        most = most.max(small_responses(client).await);
        if most >= READERS * EVENTS {
            break;
        }
    }
    assert!(most >= READERS * EVENTS, "at most {most} small responses during {} wide responses", READERS * EVENTS);
    target.end().await;
}
