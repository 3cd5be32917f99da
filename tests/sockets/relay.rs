//! Tests sockets of agents: events that the server sends to agents, and broadcasts between clients.

use foldwork_server::Config;
use futures_util::SinkExt;
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

use crate::socket::{Socket, agent, task, topic};
use crate::{Serving, serve};

async fn get(serving: &Serving, path: &str) -> Value {
    let (status, text) = serving.client.send("GET", path, "").await;
    assert_eq!(status, 200, "{text}");
    serde_json::from_str(&text).expect("JSON")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reconnected_agent_gets_the_events_after_its_last_acknowledgement() {
    let serving = serve().await;
    let client = &serving.client;
    let id = agent(client, "writer").await;
    let topic = topic(&id);
    let mut socket = Socket::open(client, &json!({"agent_ids": [id]})).await;
    let joined = socket.join(&topic, json!({"broadcast": {"ack": true}})).await;

    let first = task(client, &id, "one").await;
    let broadcast = socket.next_broadcast(&topic).await;
    assert_eq!((&broadcast["type"], &broadcast["event"]), (&json!("broadcast"), &json!("task.created")));
    assert_eq!(
        (&broadcast["payload"]["task"]["id"], &broadcast["payload"]["task"]["status"]),
        (&json!(first), &json!("pending"))
    );
    assert_eq!(broadcast["payload"]["event_id"], broadcast["meta"]["id"]);
    assert_eq!(broadcast["meta"].get("replayed"), None);
    assert_eq!(broadcast["payload"]["cause"]["event_type"], "task.created");
    socket.acknowledge(&joined, &topic, &broadcast["payload"]["position"]).await;

    let second = task(client, &id, "two").await;
    assert_eq!(socket.next_broadcast(&topic).await["payload"]["task"]["id"], json!(second));
    socket.cut();
    // No socket is connected, so this event is not delivered yet.
    let third = task(client, &id, "three").await;

    let mut socket = Socket::open(client, &json!({})).await;
    let joined = socket.join(&topic, json!({})).await;
    for expected in [&second, &third] {
        let broadcast = socket.next_broadcast(&topic).await;
        assert_eq!(broadcast["payload"]["task"]["id"], json!(expected), "the next unacknowledged event was not sent");
        assert_eq!(broadcast["meta"]["replayed"], true);
        socket.acknowledge(&joined, &topic, &broadcast["payload"]["position"]).await;
    }
    let fourth = task(client, &id, "four").await;
    let broadcast = socket.next_broadcast(&topic).await;
    assert_eq!((&broadcast["payload"]["task"]["id"], broadcast["meta"].get("replayed")), (&json!(fourth), None));

    // Over HTTP, the server returns the same events, beginning after the last acknowledged event.
    let page = get(&serving, &format!("/api/v1/agents/{id}/events")).await;
    assert_eq!(page["data"][0]["event"], "task.created");
    assert_eq!(page["data"][0]["payload"], broadcast["payload"]);
    assert_eq!(page["data"].as_array().map(Vec::len), Some(1));
    let all = get(&serving, &format!("/api/v1/agents/{id}/events?after=0&limit=3")).await;
    let titles = |page: &Value| -> Vec<Value> {
        page["data"].as_array().into_iter().flatten().map(|event| event["payload"]["task"]["title"].clone()).collect()
    };
    assert_eq!(titles(&all), ["one", "two", "three"]);
    let cursor = all["next_cursor"].as_str().expect("a cursor");
    let rest = get(&serving, &format!("/api/v1/agents/{id}/events?cursor={cursor}")).await;
    assert_eq!((titles(&rest), &rest["next_cursor"]), (vec![json!("four")], &Value::Null));
    serving.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn actions_of_people_on_a_task_reach_its_agent() {
    let serving = serve().await;
    let client = &serving.client;
    let (id, other) = (agent(client, "first").await, agent(client, "second").await);
    let mut socket = Socket::open(client, &json!({})).await;
    for id in [&id, &other] {
        socket.join(&topic(id), json!({})).await;
    }
    let task = task(client, &id, "one").await;
    assert_eq!(socket.next_broadcast(&topic(&id)).await["event"], "task.created");
    let act = async |action: &str, body: Value| {
        let (status, text) = client.send("POST", &format!("/api/v1/mailbox/{task}/{action}"), &body.to_string()).await;
        assert_eq!(status, 200, "{action}: {text}");
    };
    act("ask", json!({"message": "Which one?"})).await;
    let question = socket.next_broadcast(&topic(&id)).await;
    assert_eq!(question["event"], "task.asked");
    assert!(question["payload"]["cause"]["payload"].to_string().contains("Which one?"), "{question}");
    act("assign", json!({"assignee_type": "agent", "assignee_id": other})).await;
    assert_eq!(socket.next_broadcast(&topic(&id)).await["event"], "task.unassigned");
    assert_eq!(socket.next_broadcast(&topic(&other)).await["event"], "task.assigned");
    act("defer", json!({"for_seconds": 3600})).await;
    assert_eq!(socket.next_broadcast(&topic(&other)).await["event"], "task.deferred");
    act("reject", json!({"reason": "no"})).await;
    assert_eq!(socket.next_broadcast(&topic(&other)).await["event"], "task.rejected");
    serving.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_subscribes_to_a_trait_gets_a_task_for_a_new_article() {
    let serving = crate::serve_as_configured(Config::default()).await;
    let client = &serving.client;
    let id = agent(client, "writer").await;
    let mut socket = Socket::open(client, &json!({"agent_ids": [id]})).await;
    socket.join(&topic(&id), json!({})).await;
    let (status, text) = client.send("POST", "/api/v1/articles", r#"{"title":"Hello"}"#).await;
    assert_eq!(status, 201, "{text}");
    let article: Value = serde_json::from_str(&text).expect("JSON");
    let broadcast = socket.next_broadcast(&topic(&id)).await;
    assert_eq!(broadcast["event"], "task.created");
    assert_eq!(broadcast["payload"]["task"]["source"]["aggregate_id"], article["aggregate_id"]);
    serving.end().await;
}

/// Checks that the `meta` of a broadcast names a client as the sender, and returns the broadcast without `meta`.
fn by_client(mut broadcast: Value) -> Value {
    let meta = broadcast.as_object_mut().and_then(|broadcast| broadcast.remove("meta")).expect("the field `meta`");
    assert!(meta["id"].is_string() && meta["sender"].as_str().is_some_and(|sender| sender.contains(':')), "{meta}");
    broadcast
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_can_broadcast_over_sockets_and_http() {
    let serving = serve().await;
    let client = &serving.client;
    let id = agent(client, "writer").await;
    let topic = topic(&id);
    let key = client.key.clone();
    let mut one = Socket::open_with(client, &key, "2.0.0").await.expect("a socket");
    let mut two = Socket::open(client, &json!({"agent_ids": [id]})).await;
    let joined = one.join(&topic, json!({"broadcast": {"ack": true, "self": true}})).await;
    two.join(&topic, json!({"broadcast": {"ack": false}})).await;

    let note = json!({"type": "broadcast", "event": "note", "payload": {"n": 1}});
    let reference = one.push(Some(&joined), &topic, "broadcast", note.clone()).await;
    assert_eq!(one.reply(&reference).await, json!({"status": "ok", "response": {}}));
    assert_eq!(
        [by_client(one.next_broadcast(&topic).await), by_client(two.next_broadcast(&topic).await)],
        [note.clone(), note.clone()]
    );

    // Sends the message in a binary frame, like realtime-js.
    let mut frame = vec![3, joined.len() as u8, 1, topic.len() as u8, 4, 0, 1];
    frame.extend(format!("{joined}9{topic}note{{\"n\":1}}").bytes());
    one.stream.send(Message::binary(frame.clone())).await.expect("the frame is sent");
    assert_eq!(one.reply("9").await["status"], "ok");
    assert_eq!(
        [by_client(one.next_broadcast(&topic).await), by_client(two.next_broadcast(&topic).await)],
        [note.clone(), note]
    );
    // Frames with bytes that are not JSON reach the clients that have sent binary frames themselves.
    let enc = 6;
    frame[enc] = 0;
    one.stream.send(Message::binary(frame)).await.expect("the frame is sent");
    let Some(Message::Binary(bytes)) = one.next().await else { panic!("expected a binary frame") };
    assert_eq!(one.reply("9").await["status"], "ok");
    let meta = usize::from(bytes[3]);
    assert_eq!((&bytes[..3], bytes[4]), (&[4, topic.len() as u8, 4][..], 0));
    let meta: Value = serde_json::from_slice(&bytes[5 + topic.len() + 4..][..meta]).expect("JSON");
    assert!(meta["sender"].as_str().is_some_and(|sender| sender.starts_with("key:")), "{meta}");
    assert!(bytes.ends_with(b"}{\"n\":1}"));

    // Sends broadcasts over HTTP, with both forms of the request.
    let body = json!({"messages": [{"topic": format!("agent:{id}"), "event": "e", "payload": {"z": 1}}]}).to_string();
    assert_eq!(client.send("POST", "/realtime/v1/api/broadcast", &body).await, (202, String::new()));
    assert_eq!(two.next_broadcast(&topic).await["payload"], json!({"z": 1}));
    let path = format!("/realtime/v1/api/broadcast/agent%3A{id}/events/f?private=true");
    assert_eq!(client.send("POST", &path, r#"{"z":2}"#).await, (202, String::new()));
    assert_eq!(two.next_broadcast(&topic).await["payload"], json!({"z": 2}));
    // If one message is rejected, no message of the request is sent.
    let message = |payload: Value| json!({"topic": format!("agent:{id}"), "event": "e", "payload": payload});
    let large = message(json!({"z": "z".repeat(300_000)}));
    let several = json!({"messages": [message(json!({"z": 3})), large]}).to_string();
    assert_eq!(client.send("POST", "/realtime/v1/api/broadcast", &several).await.0, 413);
    assert_eq!(client.send("POST", &path, r#"{"z":4}"#).await, (202, String::new()));
    assert_eq!(two.next_broadcast(&topic).await["payload"], json!({"z": 4}));
    assert_eq!(client.send("POST", &path, "{").await.0, 400);
    assert_eq!(client.send("POST", "/realtime/v1/api/broadcast", r#"{"messages":[]}"#).await.0, 400);
    let unknown = body.replace(&id, "unknown");
    assert_eq!(client.send("POST", "/realtime/v1/api/broadcast", &unknown).await.0, 403);
    assert_eq!(client.send("POST", &path.replace(&id, "unknown"), "{}").await.0, 403);
    let nobody = crate::client::Client { address: client.address, key: "sk_no".into() };
    assert_eq!(nobody.send("POST", &path, "{}").await.0, 401);
    serving.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sockets_follow_the_realtime_protocol_with_both_serializer_versions() {
    let serving = serve().await;
    let client = &serving.client;
    let id = agent(client, "writer").await;
    let topic = topic(&id);
    let mut socket = Socket::open(client, &json!({})).await;
    let beat = socket.push(None, "phoenix", "heartbeat", json!({})).await;
    assert_eq!(
        socket.message(|_| true).await,
        json!([null, beat, "phoenix", "phx_reply", {"status": "ok", "response": {}}])
    );
    let leave = socket.push(None, "realtime:agent:x", "phx_leave", json!({})).await;
    assert_eq!(socket.reply(&leave).await["status"], "ok");
    let unknown = socket.push(None, &topic, "broadcast", json!({})).await;
    assert_eq!(socket.reply(&unknown).await, json!({"status": "error", "response": {"reason": "unmatched topic"}}));

    // If a client joins a channel again, the server first closes the earlier membership.
    let first = socket.join(&topic, json!({"presence": {"key": "k", "enabled": true}})).await;
    assert_eq!(socket.message(|m| m[3] == "presence_state").await, json!([first, null, topic, "presence_state", {}]));
    let second = socket.join(&topic, json!({"presence": {"key": "k", "enabled": true}})).await;
    let closed = socket.message(|message| message[3] == "phx_close").await;
    assert_eq!(closed, json!([first, first, topic, "phx_close", {}]));

    let track = json!({"type": "presence", "event": "track", "payload": {"mood": "good"}});
    let reference = socket.push(Some(&second), &topic, "presence", track).await;
    assert_eq!(socket.reply(&reference).await["status"], "ok");
    let diff = socket.message(|message| message[3] == "presence_diff").await;
    let meta = &diff[4]["joins"]["k"]["metas"][0];
    assert!(meta["mood"] == "good" && meta["phx_ref"].is_string(), "{diff}");
    let mut other = Socket::open(client, &json!({})).await;
    other.join(&topic, json!({"presence": {"enabled": true}})).await;
    let state = other.message(|message| message[3] == "presence_state").await;
    assert_eq!(&state[4]["k"]["metas"][0], meta);
    let reference = socket.push(Some(&second), &topic, "phx_leave", json!({})).await;
    assert_eq!(socket.reply(&reference).await["status"], "ok");
    assert_eq!(socket.message(|m| m[3] == "phx_close").await, json!([second, second, topic, "phx_close", {}]));
    let diff = other.message(|message| message[3] == "presence_diff").await;
    assert_eq!(&diff[4]["leaves"]["k"]["metas"][0], meta);

    // Uses version one of the serializer.
    let key = client.key.clone();
    let mut old = Socket::open_with(client, &key, "1.0.0").await.expect("a socket");
    old.send_text(r#"{"topic":"phoenix","event":"heartbeat","payload":{},"ref":null}"#).await;
    let reply =
        json!({"topic": "phoenix", "event": "phx_reply", "payload": {"status": "ok", "response": {}}, "ref": null});
    assert_eq!(old.message(|_| true).await, reply);
    let join = json!({"topic": topic, "event": "phx_join", "payload": {"config": {"broadcast": null}}, "ref": "7"});
    old.send_text(&join.to_string()).await;
    let response = json!({"status": "ok", "response": {"postgres_changes": []}});
    let reply = json!({"topic": topic, "event": "phx_reply", "payload": response, "ref": "7"});
    assert_eq!(old.message(|_| true).await, reply);
    let task = task(client, &id, "one").await;
    let message = old.message(|message| message["event"] == "broadcast").await;
    assert_eq!((&message["ref"], &message["payload"]["payload"]["task"]["id"]), (&Value::Null, &json!(task)));
    serving.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn acknowledged_events_are_replayed_on_request() {
    let serving = serve().await;
    let client = &serving.client;
    let id = agent(client, "writer").await;
    let mut socket = Socket::open(client, &json!({})).await;
    let joined = socket.join(&topic(&id), json!({})).await;
    let mut positions = Vec::new();
    for title in ["one", "two", "three"] {
        task(client, &id, title).await;
        positions.push(socket.next_broadcast(&topic(&id)).await["payload"]["position"].clone());
    }
    socket.acknowledge(&joined, &topic(&id), &positions[2]).await;
    task(client, &id, "four").await;
    socket.next_broadcast(&topic(&id)).await;
    let mut titles = async |replay: Value, count: usize| {
        socket.join(&topic(&id), json!({"broadcast": {"replay": replay}})).await;
        let mut titles = Vec::new();
        for _ in 0..count {
            let broadcast = socket.next_broadcast(&topic(&id)).await;
            assert_eq!(broadcast["meta"]["replayed"], true);
            titles.push(broadcast["payload"]["task"]["title"].as_str().expect("a title").to_owned());
        }
        titles
    };
    assert_eq!(titles(json!({"since": 0}), 4).await, ["one", "two", "three", "four"]);
    assert_eq!(titles(json!({"since": 0, "limit": 1}), 2).await, ["three", "four"]);
    assert_eq!(titles(json!({"after": positions[0]}), 3).await, ["two", "three", "four"]);
    assert_eq!(titles(json!({"since": 9_999_999_999_999i64}), 1).await, ["four"]);
    serving.end().await;
}
