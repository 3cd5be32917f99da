//! Reads tasks whose approval appends large events, reads pages of large rows, and fills a task up to its limits.
//! Requests of another key are not delayed, because this work neither runs on the threads that serve requests nor
//! blocks the writer of the log.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::target::Target;
use super::{key, post};
use crate::client::Client;

const READERS: usize = 8;
const READS: usize = 4;
const ROUNDS: usize = 5;
/// The minimum number of times that a client with another key must list the agents while the readers read. If the
/// readers blocked this client, the client would list the agents only about [`READS`] times.
const ENOUGH: usize = READERS * READS * 3 / 16;
/// The number of artifacts in one request.
const ARTIFACTS: usize = 100;
/// The size of the payload of each effect, in bytes.
const PAYLOAD_BYTES: usize = 8_000;
/// The number of rows in a list. All rows together have more bytes than a page.
const ROWS: usize = 100;
/// The number of values in each row. Many small values take longer to write than a long text.
const ROW_VALUES: usize = 10_000;
const DELIVERY_BYTES: usize = 900_000;
/// The number of deliveries: more than a task accepts.
const DELIVERIES: usize = 30;

/// Reads a path repeatedly, and counts the responses. The server may reject a preview with 429 if too many queries run.
async fn read_often(client: Client, path: Arc<str>, done: Arc<AtomicUsize>) {
    for _ in 0..READS {
        let (status, text) = client.send("GET", &path, "").await;
        assert!(status == 200 || status == 429, "{status} {text:.300}");
        done.fetch_add(1, Ordering::SeqCst);
    }
}

async fn list_agents(other: &Client) {
    assert_eq!(other.send("GET", "/api/v1/agents", "").await.0, 200);
}

async fn append(other: &Client) {
    let event = json!({"aggregate_type": "note", "event_type": "note.seen", "payload": {}});
    post(other, "/api/v1/aggregates/seen/events", &event).await;
}

/// Appends events until all reads are done. `other` uses another key than the readers.
async fn append_beside_readers(other: Client, done: Arc<AtomicUsize>) {
    while done.load(Ordering::SeqCst) < READERS * READS {
        append(&other).await;
    }
}

/// Returns the number of times that another key lists the agents while readers read a path. The other key also appends
/// events during this time.
async fn work_beside_readers(client: &Client, other: &Client, path: &str) -> usize {
    let (path, done): (Arc<str>, Arc<AtomicUsize>) = (path.into(), Arc::default());
    let appender = Client { address: other.address, key: other.key.clone() };
    let appends = tokio::spawn(append_beside_readers(appender, done.clone()));
    let mut readers = JoinSet::new();
    for _ in 0..READERS {
        let client = Client { address: client.address, key: client.key.clone() };
        readers.spawn(read_often(client, path.clone(), done.clone()));
    }
    let mut worked = 0;
    while done.load(Ordering::SeqCst) < READERS * READS && !readers.is_empty() {
        list_agents(other).await;
        worked += 1;
        // Fails immediately if a reader has failed.
        if let Some(ended) = readers.try_join_next() {
            ended.expect("responses that are read");
        }
    }
    appends.await.expect("appended events");
    worked
}

/// Checks that another key can list the agents at least [`ENOUGH`] times while large responses are read. Other load on
/// the machine may slow down a round, so one fast round is enough.
async fn assert_work_goes_on(client: &Client, path: &str) {
    let (_, other) = key(client, "second", None).await;
    let mut most = 0;
    for _ in 0..ROUNDS {
        if most < ENOUGH {
            most = most.max(work_beside_readers(client, &other, path).await);
        }
    }
    assert!(most >= ENOUGH, "the second key worked at most {most} times during {} reads of {path}", READERS * READS);
}

async fn started() -> Target {
    let target = Target::start().await;
    post(&target.client, "/api/v1/aggregates/define", &json!({"type_name": "note"})).await;
    target
}

fn id(made: &Value) -> &str {
    made["id"].as_str().expect("an id")
}

#[tokio::test(flavor = "multi_thread")]
async fn reading_a_task_with_large_effects_does_not_block_requests_of_another_key() {
    let target = started().await;
    let client = &target.client;
    let artifact = |number: usize| {
        let payload = json!({"text": "x".repeat(PAYLOAD_BYTES)});
        let effect = json!({"aggregate_id": format!("n-{number}"), "event_type": "note.written", "payload": payload});
        json!({"name": format!("a{number}"), "text": "x", "effect": effect})
    };
    let artifacts: Vec<Value> = (0..ARTIFACTS).map(artifact).collect();
    let task = post(client, "/api/v1/mailbox", &json!({"title": "Write it", "artifacts": artifacts})).await;
    let path = format!("/api/v1/mailbox/{}", id(&task));
    let whole = super::read(client, &path).await;
    assert_eq!(whole["would_append"].as_array().map(Vec::len), Some(ARTIFACTS));
    assert_work_goes_on(client, &path).await;
    target.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn reading_pages_of_large_rows_does_not_block_requests_of_another_key() {
    let target = started().await;
    let client = &target.client;
    let values: Vec<usize> = (0..ROW_VALUES).map(|number| 10_000 + number).collect();
    for number in 0..ROWS {
        let body = json!({"title": format!("Row {number}"), "metadata": {"values": values}});
        post(client, "/api/v1/mailbox", &body).await;
    }
    let page = super::read(client, "/api/v1/mailbox?limit=200").await;
    assert!(page["data"].as_array().is_some_and(|rows| rows.len() < ROWS) && page["next_cursor"].is_string());
    assert_work_goes_on(client, "/api/v1/mailbox?limit=200").await;
    target.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn adding_large_deliveries_to_a_task_does_not_block_requests_of_another_key() {
    let target = started().await;
    let client = &target.client;
    let (_, other) = key(client, "second", None).await;
    let agent = post(client, "/api/v1/agents", &json!({"name": "writer"})).await;
    let body = json!({"title": "Write it", "assignee_type": "agent", "assignee_id": id(&agent)});
    let task = post(client, "/api/v1/mailbox", &body).await;
    let path = format!("/api/v1/mailbox/{}", id(&task));
    post(client, &format!("{path}/claim"), &json!({"agent_id": id(&agent)})).await;
    let text = "x".repeat(DELIVERY_BYTES);
    let delivery = json!({"agent_id": id(&agent), "name": "long", "text": text}).to_string();
    let filler = Client { address: client.address, key: client.key.clone() };
    let filling = tokio::spawn(async move {
        for number in 0..DELIVERIES {
            let (status, answer) = filler.send("POST", &format!("{path}/artifacts"), &delivery).await;
            if status != 201 {
                return (number, status, answer);
            }
        }
        (DELIVERIES, 201, String::new())
    });
    let mut worked = 0;
    while !filling.is_finished() {
        list_agents(&other).await;
        append(&other).await;
        worked += 1;
    }
    let (deliveries, status, answer) = filling.await.expect("deliveries");
    assert!(status == 409 && answer.contains("task_full"), "{status} {answer:.300}");
    // An append waits for at most the delivery that is being written.
    assert!(2 * worked >= deliveries, "the second key worked {worked} times during {deliveries} deliveries");
    target.end().await;
}
