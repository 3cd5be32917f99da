//! Payloads with very many fields block nobody: they are read outside the threads that serve requests.

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

/// Returns the same fields in another order with other values.
fn wide(number: usize) -> Value {
    let fields: Map<String, Value> =
        (0..FIELDS).map(|field| (format!("f{}", (field * 7 + number) % FIELDS), json!(number))).collect();
    let verb = if number == 1 { "created" } else { "updated" };
    json!({"aggregate_type": "wide", "event_type": format!("wide.{verb}"), "payload": fields})
}

/// Reads the aggregate at each of its versions, in a separate task so that reading the responses blocks nobody.
async fn read_versions(client: Client, read: Arc<AtomicUsize>) {
    for version in 1..=EVENTS {
        let (status, text) = client.send("GET", &format!("/api/v1/aggregates/wide?version={version}"), "").await;
        assert_eq!(status, 200, "{text:.300}");
        assert!(text.contains(&format!("\"_version\":{version},")), "{text:.300}");
        read.fetch_add(1, Ordering::SeqCst);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn reading_wide_aggregates_does_not_block_other_requests() {
    let target = Target::start().await;
    let client = &target.client;
    post(client, "/api/v1/aggregates/define", &json!({"type_name": "wide", "fields": []})).await;
    for number in 1..=EVENTS {
        post(client, "/api/v1/aggregates/wide/events", &wide(number)).await;
    }
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
        // A failed reader ends the wait.
        if let Some(ended) = readers.try_join_next() {
            ended.expect("versions that are read");
        }
    }
    // A small response takes a fraction of the time of a wide one, unless it waits for the wide one.
    assert!(healthy >= READERS * EVENTS, "only {healthy} small responses during {} wide ones", READERS * EVENTS);
    target.end().await;
}
