//! Opens connections that send no bytes or never finish the head of a request. The connections block no other client.

use super::target::Target;
use crate::noted;

const CONNECTIONS: usize = 400;
const BEGINNINGS: [&str; 4] =
    ["", "G", "GET /api/v1/events HTTP/1.1\r\n", "POST /api/v1/events HTTP/1.1\r\nHost: localhost\r\nX"];

#[tokio::test(flavor = "multi_thread")]
async fn connections_that_never_finish_a_request_head_do_not_block_other_requests() {
    let target = Target::start().await;
    let client = &target.client;
    let mut silent = Vec::new();
    for number in 0..CONNECTIONS {
        silent.push(client.raw(BEGINNINGS[number % BEGINNINGS.len()]).await);
        let (status, answer) = client.send("POST", "/api/v1/aggregates/others/events", &noted("quick")).await;
        assert_eq!(status, 201, "{answer}");
    }
    // Breaks half of the connections. Other clients are not affected.
    silent.drain(..CONNECTIONS / 2).for_each(|connection| connection.reset());
    assert_eq!(client.send("GET", "/healthz", "").await.0, 200);
    drop(silent);
    target.end().await;
}
