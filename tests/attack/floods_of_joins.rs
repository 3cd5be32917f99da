//! Joins a channel very often, and sends invalid or oversized messages. Other clients are not affected.

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;

use super::target::Target;
use crate::TIMEOUT;
use crate::socket::{Socket, agent, task, topic};

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_joins_is_rejected_and_does_not_block_other_sockets() {
    let target = Target::start().await;
    let client = &target.client;
    let id = agent(client, "writer").await;
    let topic = topic(&id);
    let mut other = Socket::open(client, &json!({})).await;
    other.join(&topic, json!({})).await;
    let flood = Socket::open(client, &json!({})).await;
    let (mut sink, mut stream) = flood.stream.split();
    let flooded = topic.clone();
    let sending = tokio::spawn(async move {
        for number in 0..1_000_000u32 {
            let reference = number.to_string();
            let join = json!([reference, reference, flooded, "phx_join", {"config": {}}]).to_string();
            if sink.send(Message::text(join)).await.is_err() {
                break;
            }
        }
    });
    let mut refused = 0;
    while refused < 200 {
        let message = timeout(TIMEOUT, stream.next()).await.expect("an answer").expect("the socket").expect("a frame");
        refused += usize::from(message.to_text().is_ok_and(|text| text.contains("ClientJoinRateLimitReached")));
    }
    // Other listeners still get their events.
    let task = task(client, &id, "one").await;
    assert_eq!(other.next_broadcast(&topic).await["payload"]["task"]["id"], json!(task));
    sending.abort();
    drop(stream);
    target.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_messages_are_ignored_or_rejected_and_oversized_messages_close_the_socket() {
    let target = Target::start().await;
    let client = &target.client;
    let id = agent(client, "writer").await;
    let mut socket = Socket::open(client, &json!({})).await;
    let garbage: [&[u8]; 6] = [&[], &[0], &[3, 255, 255, 255, 255, 255, 9], &[4, 1, 1, 1, 1], &[255; 300], b"\xff\xfe"];
    for bytes in garbage {
        socket.stream.send(Message::binary(bytes.to_vec())).await.expect("a message that is sent");
    }
    for text in ["", "[", "null", "[1,2,3,4,5]", "{}", "[null,null,\"t\",\"e\"]", &"[".repeat(100_000)] {
        socket.send_text(text).await;
    }
    // Sends malformed payloads in well-formed messages.
    for (event, payload) in [
        ("phx_join", json!([])),
        ("phx_join", json!({"config": 5})),
        ("phx_join", json!({"config": {"presence": {"key": "k".repeat(256)}}})),
        ("broadcast", Value::Null),
    ] {
        let reference = socket.push(None, &topic(&id), event, payload).await;
        assert_eq!(socket.reply(&reference).await["status"], "error", "{event}");
    }
    let joined = socket.join(&topic(&id), json!({})).await;
    for (event, payload) in [
        ("broadcast", json!(5)),
        ("broadcast", json!({"event": "ack", "payload": {"position": -1}})),
        ("broadcast", json!({"event": "e", "payload": {"x": "y".repeat(300_000)}})),
        ("broadcast", json!({"event": "e".repeat(300_000), "payload": {}})),
        ("presence", json!({"event": "track", "payload": []})),
        ("presence", json!({"event": "track", "payload": {"x": "y".repeat(300_000)}})),
        ("ack", json!({})),
        ("nonsense", json!({})),
    ] {
        let reference = socket.push(Some(&joined), &topic(&id), event, payload).await;
        assert_eq!(socket.reply(&reference).await["status"], "error", "{event}");
    }
    let whole = json!([null, "1", topic(&id), "broadcast", {"event": "e", "payload": {"x": "y".repeat(1 << 20)}}]);
    // Ignores an error, because the server may close the socket before the whole message is sent.
    let _ = socket.stream.send(Message::text(whole.to_string())).await;
    assert!(matches!(socket.close_code().await, Some(1002 | 1009) | None));
    assert_eq!(client.send("GET", "/api/v1/agents", "").await.0, 200);
    target.end().await;
}
