//! Aborts many kinds of requests that change data, at any moment. Afterwards the log has no gaps, the states are
//! correct, every key is either listed or invalid, and the consumer reaches the end of the log.

use std::collections::HashMap;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream;
use serde_json::{Value, json};

use super::target::Target;
use super::{consumed, inconsistent, key, post, read, reset_after, until};
use crate::client::Client;

const REQUESTS: u64 = 600;
const CONCURRENCY: usize = 8;
const KEYS: u64 = 40;
/// The maximum time in microseconds between sending a request and resetting its connection.
const LONGEST_US: u64 = 6_000;
const STREAMS: u64 = 12;

/// Returns a pseudorandom number that depends only on `number`.
fn scattered(number: u64) -> u64 {
    (number + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(23) % 1_000_003
}

/// Returns the method, the path and the body of a request that changes data.
fn request(number: u64, keys: &[(String, Client)]) -> (&'static str, String, String) {
    let chance = scattered(number);
    let stream = chance % STREAMS;
    let note = |verb: &str, stream: u64| {
        json!({"aggregate_id": format!("note-{stream}"), "aggregate_type": "note", "event_type": format!("note.{verb}"),
               "payload": {"text": format!("text {number}"), "fail": chance.is_multiple_of(5)}})
    };
    let api = |path: &str| format!("/api/v1{path}");
    let article = format!("/articles/article-{stream}");
    let (method, path, body) = match number % 16 {
        0..=2 => ("POST", api(&format!("/aggregates/note-{stream}/events")), note("updated", stream)),
        3 | 4 => ("POST", api("/events"), json!({"events": (0..5).map(|n| note("updated", n)).collect::<Vec<_>>()})),
        5 => ("POST", api("/articles"), json!({"title": format!("Title {number}"), "body": "one two"})),
        6 => ("PATCH", api(&article), json!({"title": format!("Title {number}")})),
        7 => ("POST", api(&format!("{article}/publish")), json!({})),
        8 => ("POST", api(&format!("{article}/unpublish")), json!({})),
        9 => ("POST", api("/projects"), json!({"name": format!("Project {number}")})),
        10 => ("POST", api("/keys"), json!({"name": format!("aborted {number}"), "scopes": ["api:read"]})),
        11 => {
            let (id, _) = &keys[chance as usize % keys.len()];
            return ("DELETE", api(&format!("/keys/{id}")), String::new());
        }
        12 => ("POST", api("/parked/replay"), json!({"plugin": "shaky"})),
        13 => ("POST", api("/plugins/shaky/replay"), json!({"from_position": chance % 20 + 1})),
        14 if chance.is_multiple_of(2) => ("POST", api("/system/rebuild-graph"), json!({})),
        14 => ("POST", api("/plugins/shaky/resume"), json!({})),
        _ => {
            let fields = json!([{"name": "text", "type": "string"}, {"name": format!("f{number}"), "type": "integer"}]);
            ("POST", api("/aggregates/define"), json!({"type_name": "note", "fields": fields}))
        }
    };
    (method, path, body.to_string())
}

/// Creates a type, articles and keys before the attack. Returns the id and a client of each key.
async fn prepare(client: &Client) -> Vec<(String, Client)> {
    let definition = json!({"type_name": "note", "fields": [{"name": "text", "type": "string"}]});
    post(client, "/api/v1/aggregates/define", &definition).await;
    for stream in 0..STREAMS {
        let event = json!({"aggregate_type": "article", "event_type": "article.created",
                           "payload": {"title": format!("Article {stream}"), "slug": format!("slug-{stream}")}});
        post(client, &format!("/api/v1/aggregates/article-{stream}/events"), &event).await;
    }
    let mut keys = Vec::new();
    for number in 0..KEYS {
        keys.push(key(client, &format!("key {number}"), None).await);
    }
    keys
}

/// Reads the whole log and checks that positions, and versions in each stream, have no gaps. Returns the number of
/// events.
async fn walk(client: &Client) -> usize {
    let (mut seen, mut versions) = (0u64, HashMap::<String, u64>::new());
    loop {
        let page = read(client, &format!("/api/v1/events?limit=200&after={seen}")).await;
        let events = page["data"].as_array().cloned().unwrap_or_default();
        if events.is_empty() {
            return seen as usize;
        }
        for event in events {
            seen += 1;
            let version = versions.entry(event["aggregate_id"].as_str().expect("a stream").to_owned()).or_default();
            *version += 1;
            assert_eq!((&event["position"], &event["version"]), (&json!(seen), &json!(*version)), "{event}");
        }
    }
}

/// Returns the states of a type, either from memory or folded from the log. A condition on single events forces the
/// fold from the log.
async fn states(client: &Client, aggregate_type: &str, from_log: bool) -> Vec<Value> {
    let mut condition = json!({"aggregate_type": aggregate_type});
    if from_log {
        condition["position"] = json!({"$gte": 1});
    }
    let pipeline = json!([{"$match": condition}, {"$fold": {}}, {"$unset": "_facts"}, {"$sort": {"_id": 1}}]);
    let answer = post(client, "/api/v1/aggregates/query", &json!({"pipeline": pipeline})).await;
    answer["results"].as_array().cloned().unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread")]
async fn aborted_requests_leave_a_consistent_workspace() {
    let target = Target::start_shaky().await;
    let client = &target.client;
    let keys = prepare(client).await;
    let aborted = |number| {
        let (method, path, body) = request(number, &keys);
        let moment = Duration::from_micros(scattered(number + REQUESTS) % LONGEST_US);
        async move { reset_after(client, (method, &path, &body), moment).await }
    };
    stream::iter(0..REQUESTS).for_each_concurrent(CONCURRENCY, aborted).await;
    // No operation fails with an internal error after the attack.
    for number in 0..32 {
        let (method, path, body) = request(REQUESTS + number, &keys);
        let (status, answer) = client.send(method, &path, &body).await;
        assert!(status < 500, "{method} {path} after the attack: {status} {answer}");
    }
    consumed(client).await;
    until(async || inconsistent(client, &keys).await).await;
    let events = walk(client).await;
    assert!(events as u64 > STREAMS);
    for aggregate_type in ["note", "article", "project"] {
        assert_eq!(states(client, aggregate_type, false).await, states(client, aggregate_type, true).await);
    }
    target.end().await;
}
