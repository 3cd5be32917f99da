//! Readers that follow the log and never read cost the writers nothing, and the server little memory.

use super::target::Target;
use crate::client::Client;

const READERS: usize = 50;
const EVENTS: usize = 1_000;
/// Events that are there when the readers come: more than a page of them.
const BEFORE: usize = 300;
const PAYLOAD_BYTES: usize = 100_000;
const STREAMS: usize = 10;
/// What the process may grow by. The log alone has 100 MB, its last events stand in memory, and so do the sockets'
/// buffers; a page of 20 MB for each reader would be far above.
const MOST_BYTES: u64 = 512 << 20;

/// What this process, and with it the server, has of memory now.
fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux tells");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a line");
    let kib: u64 = line.trim().trim_end_matches(" kB").trim().parse().expect("a number");
    kib << 10
}

fn event(number: usize) -> String {
    let verb = if number < STREAMS { "created" } else { "updated" };
    let body = "x".repeat(PAYLOAD_BYTES);
    format!(
        r#"{{"aggregate_type":"article","event_type":"article.{verb}","payload":{{"title":"{number}","body":"{body}"}}}}"#
    )
}

async fn append(client: &Client, number: usize) {
    let path = format!("/api/v1/aggregates/large-{}/events", number % STREAMS);
    let (status, answer) = client.send("POST", &path, &event(number)).await;
    assert_eq!(status, 201, "{answer:.300}");
}

#[tokio::test(flavor = "multi_thread")]
async fn appends_are_answered_and_memory_is_bounded() {
    let target = Target::start_alone().await;
    let client = &target.client;
    for number in 0..BEFORE {
        append(client, number).await;
    }
    let before = resident_bytes();
    let mut readers = Vec::new();
    for _ in 0..READERS {
        let mut reader = client.open("GET", "/api/v1/events", &[("Accept", "text/event-stream")], None).await;
        // It follows, and from here on nothing is read.
        reader.read_until("\r\n\r\n").await;
        readers.push(reader);
    }
    let mut most = 0;
    for number in BEFORE..EVENTS {
        append(client, number).await;
        most = most.max(resident_bytes().saturating_sub(before));
        assert!(most < MOST_BYTES, "after {number} events the process has grown by {} MiB", most >> 20);
    }
    assert_eq!(client.send("GET", "/healthz", "").await.0, 200);
    drop(readers);
    target.end().await;
}
