//! Payloads of very many fields hold nobody up: reading them is work off the threads that serve.

use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::future::join_all;
use serde_json::{Map, Value, json};

use super::post;
use super::target::Target;
use crate::client::Client;

const FIELDS: usize = 20_000;
const EVENTS: usize = 5;
const READERS: usize = 4;

/// The same fields in another order, with other values.
fn wide(number: usize) -> Value {
    let fields: Map<String, Value> =
        (0..FIELDS).map(|field| (format!("f{}", (field * 7 + number) % FIELDS), json!(number))).collect();
    let verb = if number == 1 { "created" } else { "updated" };
    json!({"aggregate_type": "wide", "event_type": format!("wide.{verb}"), "payload": fields})
}

/// Reads the aggregate as it was after each of its events.
async fn read_versions(client: &Client, read: &AtomicUsize) {
    for version in 1..=EVENTS {
        let (status, text) = client.send("GET", &format!("/api/v1/aggregates/wide?version={version}"), "").await;
        assert_eq!(status, 200, "{text:.300}");
        let state: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(state["_version"], version, "{text:.300}");
        read.fetch_add(1, Ordering::SeqCst);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn others_are_served_while_wide_aggregates_are_read() {
    let target = Target::start().await;
    let client = &target.client;
    post(client, "/api/v1/aggregates/define", &json!({"type_name": "wide", "fields": []})).await;
    for number in 1..=EVENTS {
        post(client, "/api/v1/aggregates/wide/events", &wide(number)).await;
    }
    let read = AtomicUsize::new(0);
    let readers = join_all((0..READERS).map(|_| read_versions(client, &read)));
    let mut healthy = 0;
    let others = async {
        while read.load(Ordering::SeqCst) < READERS * EVENTS {
            assert_eq!(client.send("GET", "/healthz", "").await.0, 200);
            healthy += 1;
        }
    };
    tokio::join!(readers, others);
    // A small answer takes a fraction of the time of a wide one, unless it has to wait for it.
    assert!(healthy >= READERS * EVENTS, "{healthy} small answers beside {} wide ones", READERS * EVENTS);
    target.end().await;
}
