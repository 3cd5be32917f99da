//! Tests the rights of a listener on a channel: a listener cannot send task events or acknowledge events, and a new
//! token closes the channels that the token does not cover.

use futures_util::SinkExt;
use serde_json::json;
use tokio_tungstenite::tungstenite::Message;

use crate::socket::{Socket, agent, connected, task, topic};
use crate::{made_key, serve};

#[tokio::test(flavor = "multi_thread")]
async fn a_listener_can_neither_send_task_events_nor_acknowledge_events() {
    let serving = serve().await;
    let client = &serving.client;
    let id = agent(client, "writer").await;
    let topic = topic(&id);
    let (_, reader) = made_key(client, "null").await;
    let first = task(client, &id, "one").await;
    let key = reader.key.clone();
    // The loop covers a socket with the reader's key and one with the credential that the server issued for this key.
    let sockets = [
        Socket::open_with(client, &key, "2.0.0").await.expect("a socket"),
        Socket::open(&reader, &json!({"agent_ids": [id]})).await,
    ];
    for mut socket in sockets {
        let joined = socket.join(&topic, json!({"broadcast": {"ack": true, "self": true}})).await;
        let position = socket.next_broadcast(&topic).await["payload"]["position"].clone();
        for event in ["task.created", "Task.Created", "tas\u{212a}.created"] {
            let forged = json!({"type": "broadcast", "event": event, "payload": {"task": {"id": "forged"}}});
            let reference = socket.push(Some(&joined), &topic, "broadcast", forged).await;
            let reply = socket.reply(&reference).await;
            assert_eq!(reply["status"], "error", "{reply}");
        }
        let mut frame = vec![3, joined.len() as u8, 1, topic.len() as u8, 12, 0, 0];
        frame.extend(format!("{joined}9{topic}task.createdbytes").bytes());
        socket.stream.send(Message::binary(frame)).await.expect("the frame is sent");
        assert_eq!(socket.reply("9").await["status"], "error");
        for event in ["broadcast", "ack"] {
            let acknowledged = json!({"position": position});
            let payload = match event {
                "ack" => acknowledged,
                _ => json!({"type": "broadcast", "event": "ack", "payload": acknowledged}),
            };
            let reference = socket.push(Some(&joined), &topic, event, payload).await;
            let reply = socket.reply(&reference).await;
            assert_eq!(reply["status"], "error", "{reply}");
            assert!(reply["response"]["reason"].as_str().expect("a reason").starts_with("Unauthorized"), "{reply}");
        }
    }
    for key in [&reader, client] {
        let forged = json!({"messages": [{"topic": format!("agent:{id}"), "event": "TASK.asked", "payload": {}}]});
        assert_eq!(key.send("POST", "/realtime/v1/api/broadcast", &forged.to_string()).await.0, 403);
        let path = format!("/realtime/v1/api/broadcast/agent%3A{id}/events/task.asked");
        assert_eq!(key.send("POST", &path, "{}").await.0, 403);
    }
    // None of these messages had an effect: the agent's own credential receives every event, and cannot acknowledge a
    // position beyond the last event.
    let mut socket = Socket::open(client, &json!({"agent_ids": [id]})).await;
    let joined = socket.join(&topic, json!({"broadcast": {"ack": true}})).await;
    let broadcast = socket.next_broadcast(&topic).await;
    assert_eq!(broadcast["payload"]["task"]["id"], json!(first));
    assert_eq!(broadcast["meta"].get("sender"), None);
    let reference = socket.push(Some(&joined), &topic, "ack", json!({"position": 1u64 << 53})).await;
    assert_eq!(socket.reply(&reference).await["status"], "error");
    socket.acknowledge(&joined, &topic, &broadcast["payload"]["position"]).await;
    serving.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_token_closes_channels_that_it_does_not_cover() {
    let serving = serve().await;
    let client = &serving.client;
    let (one, two) = (agent(client, "one").await, agent(client, "two").await);
    let mut socket = Socket::open(client, &json!({})).await;
    let joined = socket.join(&topic(&one), json!({})).await;
    let other = socket.join(&topic(&two), json!({})).await;
    let narrow = connected(client, &json!({"agent_ids": [one]})).await["anon_key"].clone();
    socket.push(Some(&joined), &topic(&one), "access_token", json!({"access_token": narrow})).await;
    let closed = socket.message(|message| message[3] == "phx_close").await;
    assert_eq!(closed, json!([other, other, topic(&two), "phx_close", {}]));
    task(client, &two, "for the other").await;
    let own = task(client, &one, "for this one").await;
    assert_eq!(socket.next_broadcast(&topic(&one)).await["payload"]["task"]["id"], json!(own));
    assert_eq!(socket.try_join(&topic(&two), json!({})).await.1["status"], "error");
    serving.end().await;
}
