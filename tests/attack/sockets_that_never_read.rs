//! Opens a socket and never reads it. The server closes the socket when its queue is full, and other sockets on the
//! channel get every message.

use futures_util::StreamExt;
use serde_json::json;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;

use super::target::Target;
use crate::TIMEOUT;
use crate::socket::{Socket, agent, topic};

/// The number of messages. The messages do not fit into the buffers between the server and the client.
const MESSAGES: usize = 600;
const BYTES: usize = 100_000;

#[tokio::test(flavor = "multi_thread")]
async fn a_socket_that_never_reads_is_closed_and_other_sockets_get_every_message() {
    let target = Target::start().await;
    let client = &target.client;
    let id = agent(client, "writer").await;
    let topic = topic(&id);
    let mut silent = Socket::open(client, &json!({})).await;
    let joined = silent.join(&topic, json!({})).await;
    let mut reading = Socket::open(client, &json!({})).await;
    reading.join(&topic, json!({})).await;
    let body =
        json!({"messages": [{"topic": format!("agent:{id}"), "event": "e", "payload": {"x": "y".repeat(BYTES)}}]});
    let body = body.to_string();
    for _ in 0..MESSAGES {
        assert_eq!(client.send("POST", "/realtime/v1/api/broadcast", &body).await.0, 202);
        assert_eq!(reading.next_broadcast(&topic).await["event"], "e");
    }
    let mut received = 0;
    while let Some(Ok(message)) = timeout(TIMEOUT, silent.stream.next()).await.expect("the socket ends") {
        received += usize::from(matches!(message, Message::Text(_)));
    }
    assert!(received < MESSAGES, "{received} messages were queued for the socket joined as {joined}");
    target.end().await;
}
