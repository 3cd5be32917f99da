//! Opens streams of the log and never reads them. The streams block no appends, and the server's memory stays bounded.

use super::target::Target;
use crate::client::Client;

const READERS: usize = 50;
const EVENTS: usize = 1_000;
/// The number of events before the readers connect: more than one page.
const WARM_UP_EVENTS: usize = 300;
const PAYLOAD_BYTES: usize = 100_000;
const STREAMS: usize = 10;
/// The maximum growth of the process in bytes. The log contains 100 MB. The process's memory contains the socket
/// buffers and the last events of the log. If the server kept a page of 20 MB for each reader, the growth would be much
/// larger.
const MAX_BYTES: u64 = 512 << 20;

/// Returns the resident memory of this process, which runs the server, in bytes.
fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("the process status on Linux");
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
async fn stream_clients_that_never_read_block_no_appends_and_use_bounded_memory() {
    let target = Target::start_alone().await;
    let client = &target.client;
    for number in 0..WARM_UP_EVENTS {
        append(client, number).await;
    }
    let before = resident_bytes();
    let mut readers = Vec::new();
    for _ in 0..READERS {
        let mut reader = client.open("GET", "/api/v1/events", &[("Accept", "text/event-stream")], None).await;
        // After the head of the response, the client stops reading.
        reader.read_until("\r\n\r\n").await;
        readers.push(reader);
    }
    let mut most = 0;
    for number in WARM_UP_EVENTS..EVENTS {
        append(client, number).await;
        most = most.max(resident_bytes().saturating_sub(before));
        assert!(most < MAX_BYTES, "after {number} events the process has grown by {} MiB", most >> 20);
    }
    assert_eq!(client.send("GET", "/healthz", "").await.0, 200);
    drop(readers);
    target.end().await;
}
