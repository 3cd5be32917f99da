//! Sends events with ids of a client in the format of the server's own ids. The server appends each event once, and
//! recognizes repeated events.

use serde_json::{Value, json};

use super::post;
use super::target::Target;
use crate::client::Client;

/// The number of events before the attack, in commits of the maximum size.
const EXISTING_EVENTS: usize = 20_000;
const COMMIT: usize = 1_000;
const IDS: usize = 200;

fn events(ids: impl Iterator<Item = (String, Option<String>)>) -> Value {
    let event = |(stream, id): (String, Option<String>)| {
        json!({"aggregate_id": stream, "aggregate_type": "article", "event_type": "article.changed",
               "event_id": id, "payload": {"title": "one"}})
    };
    json!({"events": ids.map(event).collect::<Vec<_>>()})
}

/// Returns an id in the server's format, a different id for each `number`. The server's ids end with the position of
/// their event. The returned ids end with position 1.
fn pointing_at_the_first(number: usize) -> String {
    format!("019b76da-a800-7{:03x}-8001-000000000001", number + 1)
}

async fn appended(client: &Client, ids: Vec<String>) -> (Value, Value) {
    let events = events(ids.into_iter().map(|id| ("attacked".into(), Some(id))));
    let answer = post(client, "/api/v1/events", &events).await;
    (answer["appended"].clone(), answer["repeated"].clone())
}

#[tokio::test(flavor = "multi_thread")]
async fn events_with_client_ids_in_uuid7_form_are_appended_once() {
    let target = Target::start().await;
    let client = &target.client;
    for start in (0..EXISTING_EVENTS).step_by(COMMIT) {
        let streams = (start..start + COMMIT).map(|number| (format!("a-{}", number % 100), None));
        let headers = [("Prefer", "return=minimal"), ("Content-Type", "application/json"), ("Connection", "close")];
        let body = events(streams).to_string();
        let length = body.len().to_string();
        let headers: Vec<(&str, &str)> = headers.into_iter().chain([("Content-Length", length.as_str())]).collect();
        let (status, text) = client.open("POST", "/api/v1/events", &headers, Some(&body)).await.answer().await;
        assert_eq!(status, 201, "{text:.300}");
    }
    let ids: Vec<String> = (0..IDS).map(pointing_at_the_first).collect();
    assert_eq!(appended(client, ids.clone()).await, (json!(IDS), json!(0)));
    assert_eq!(appended(client, ids).await, (json!(0), json!(IDS)));
    target.end().await;
}
