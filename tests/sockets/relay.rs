//! The relay over real sockets: events sent to agents, broadcasts between clients, and authentication.

use std::collections::BTreeSet;

use futures_util::SinkExt;
use serde_json::{Value, json};
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::{self, Message};

use crate::socket::{Socket, agent, connected, task, topic};
use crate::{Serving, TIMEOUT, made_key, serve, serve_with};
use foldwork_server::Config;

/// Returns the HTTP status and the body with which a socket is rejected.
fn refusal(opened: Result<Socket, tungstenite::Error>) -> (u16, Value) {
    let error = opened.err().expect("the socket is rejected");
    let tungstenite::Error::Http(response) = error else { return (0, Value::from(error.to_string())) };
    let body = response.body().as_deref().unwrap_or_default();
    (response.status().as_u16(), serde_json::from_slice(body).unwrap_or_default())
}

async fn get(serving: &Serving, path: &str) -> Value {
    let (status, text) = serving.client.send("GET", path, "").await;
    assert_eq!(status, 200, "{text}");
    serde_json::from_str(&text).expect("JSON")
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_gets_unacknowledged_events_again() {
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
        assert_eq!(broadcast["payload"]["task"]["id"], json!(expected), "acknowledged events are not sent again");
        assert_eq!(broadcast["meta"]["replayed"], true);
        socket.acknowledge(&joined, &topic, &broadcast["payload"]["position"]).await;
    }
    let fourth = task(client, &id, "four").await;
    let broadcast = socket.next_broadcast(&topic).await;
    assert_eq!((&broadcast["payload"]["task"]["id"], broadcast["meta"].get("replayed")), (&json!(fourth), None));

    // HTTP gives the same events, starting after the last acknowledged one.
    let page = get(&serving, &format!("/api/v1/agents/{id}/events")).await;
    assert_eq!(page["data"][0]["event"], "task.created");
    assert_eq!(page["data"][0]["payload"], broadcast["payload"]);
    assert_eq!(page["data"].as_array().map(Vec::len), Some(1));
    let all = get(&serving, &format!("/api/v1/agents/{id}/events?after=0&limit=3")).await;
    let titles = |page: &Value| -> Vec<Value> {
        page["data"].as_array().into_iter().flatten().map(|event| event["payload"]["task"]["title"].clone()).collect()
    };
    assert_eq!(titles(&all), ["one", "two", "three"]);
    let cursor = all["next_cursor"].as_str().expect("there is more");
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
async fn an_article_is_dispatched_to_subscribers_of_its_trait() {
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

/// Checks that a broadcast is marked as sent by a client, and returns it without the mark.
fn by_client(mut broadcast: Value) -> Value {
    let meta = broadcast.as_object_mut().and_then(|broadcast| broadcast.remove("meta")).expect("a mark");
    assert!(meta["id"].is_string() && meta["sender"].as_str().is_some_and(|sender| sender.contains(':')), "{meta}");
    broadcast
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_broadcast_to_each_other() {
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

    // As realtime-js sends it: in a binary frame.
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
    let Some(Message::Binary(bytes)) = one.next().await else { panic!("bytes") };
    assert_eq!(one.reply("9").await["status"], "ok");
    let meta = usize::from(bytes[3]);
    assert_eq!((&bytes[..3], bytes[4]), (&[4, topic.len() as u8, 4][..], 0));
    let meta: Value = serde_json::from_slice(&bytes[5 + topic.len() + 4..][..meta]).expect("JSON");
    assert!(meta["sender"].as_str().is_some_and(|sender| sender.starts_with("key:")), "{meta}");
    assert!(bytes.ends_with(b"}{\"n\":1}"));

    // Over HTTP, in both forms.
    let body = json!({"messages": [{"topic": format!("agent:{id}"), "event": "e", "payload": {"z": 1}}]}).to_string();
    assert_eq!(client.send("POST", "/realtime/v1/api/broadcast", &body).await, (202, String::new()));
    assert_eq!(two.next_broadcast(&topic).await["payload"], json!({"z": 1}));
    let path = format!("/realtime/v1/api/broadcast/agent%3A{id}/events/f?private=true");
    assert_eq!(client.send("POST", &path, r#"{"z":2}"#).await, (202, String::new()));
    assert_eq!(two.next_broadcast(&topic).await["payload"], json!({"z": 2}));
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
async fn heartbeats_leaves_presence_and_old_serialisers_work() {
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

    // Joining a channel again closes the former membership first.
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

    // The first serialiser.
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
async fn sockets_and_channels_without_rights_are_rejected() {
    let serving = serve().await;
    let client = &serving.client;
    let (id, other) = (agent(client, "first").await, agent(client, "second").await);
    let open = async |key: &str, vsn: &str| refusal(Socket::open_with(client, key, vsn).await);
    for key in ["", "nonsense", "fwrt_a.b.c", &format!("sk_{}", "0".repeat(64))] {
        let (status, body) = open(key, "2.0.0").await;
        assert_eq!((status, &body["code"]), (401, &json!("unauthenticated")), "{key}");
    }
    let own = client.key.clone();
    assert_eq!(open(&own, "3.0.0").await.0, 403);
    let (status, text) = client.send("GET", "/realtime/v1/websocket", "").await;
    assert_eq!(status, 426, "{text}");
    let answer = connected(client, &json!({"agent_ids": [id]})).await;
    let credential = answer["anon_key"].as_str().expect("a credential").to_owned();
    let tampered = credential.replacen("fwrt_", "fwrt_e", 1);
    assert_eq!(open(&tampered, "2.0.0").await.0, 401);
    // The credential opens nothing but sockets.
    let thief = crate::client::Client { address: client.address, key: credential.clone() };
    assert_eq!(thief.send("GET", "/api/v1/agents", "").await.0, 401);

    let mut socket = Socket::open_with(client, &credential, "2.0.0").await.expect("a socket");
    for agent in [other.as_str(), "unknown"] {
        let (_, reply) = socket.try_join(&topic(agent), json!({})).await;
        let reason =
            format!("Unauthorized: You do not have permissions to read from this Channel topic: agent:{agent}");
        assert_eq!(reply, json!({"status": "error", "response": {"reason": reason}}));
    }
    let (_, reply) = socket.try_join("realtime:room", json!({})).await;
    assert_eq!(reply["status"], "error");
    let changes = json!({"config": {"postgres_changes": [{"event": "*"}]}});
    assert_eq!(socket.try_join(&topic(&id), changes).await.1["status"], "error");
    assert_eq!(socket.try_join(&topic(&id), json!({"access_token": "nonsense"})).await.1["status"], "error");
    assert_eq!(socket.try_join(&topic(&id), json!({"access_token": credential})).await.1["status"], "ok");
    // A rejected token ends the channel permanently.
    socket.push(None, &topic(&id), "access_token", json!({"access_token": null})).await;
    socket.push(None, &topic(&id), "access_token", json!({"access_token": "nonsense"})).await;
    let system = socket.message(|message| message[3] == "system").await;
    assert_eq!((&system[4]["status"], &system[4]["channel"]), (&json!("error"), &json!(format!("agent:{id}"))));
    socket.message(|message| message[3] == "phx_close").await;
    serving.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_socket_ends_when_the_key_behind_it_is_revoked() {
    let serving = serve().await;
    let id = agent(&serving.client, "writer").await;
    let (key_id, reader) = made_key(&serving.client, "null").await;
    let mut socket = Socket::open(&reader, &json!({"agent_ids": [id]})).await;
    socket.join(&topic(&id), json!({})).await;
    let answer = connected(&reader, &json!({})).await;
    let credential = answer["anon_key"].as_str().expect("a credential");
    assert_eq!(serving.client.send("DELETE", &format!("/api/v1/keys/{key_id}"), "").await.0, 204);
    socket.message(|message| message[3] == "phx_close").await;
    assert_eq!(socket.close_code().await, Some(1008));
    assert_eq!(refusal(Socket::open_with(&serving.client, credential, "2.0.0").await).0, 401);
    serving.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_socket_ends_when_its_credential_expires() {
    let serving = serve().await;
    let id = agent(&serving.client, "writer").await;
    let soon = foldwork_engine::clock::Clock::now_ms(&foldwork_engine::clock::SystemClock) + 3_000;
    let expires_at = format!("\"{}\"", foldwork_engine::model::date::format_date(soon));
    let (_, reader) = made_key(&serving.client, &expires_at).await;
    let mut socket = Socket::open(&reader, &json!({"agent_ids": [id]})).await;
    socket.join(&topic(&id), json!({})).await;
    // A token that expires later keeps another socket open.
    let mut renewed = Socket::open(&reader, &json!({"agent_ids": [id]})).await;
    let joined = renewed.join(&topic(&id), json!({})).await;
    let token = json!({"access_token": serving.client.key});
    renewed.push(Some(&joined), &topic(&id), "access_token", token).await;
    let beat = renewed.push(None, "phoenix", "heartbeat", json!({})).await;
    renewed.reply(&beat).await;
    assert_eq!(socket.close_code().await, Some(1008));
    let beat = renewed.push(None, "phoenix", "heartbeat", json!({})).await;
    assert_eq!(renewed.reply(&beat).await["status"], "ok");
    serving.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_server_closes_its_sockets_before_it_ends() {
    let serving = serve().await;
    let id = agent(&serving.client, "writer").await;
    let mut sockets = Vec::new();
    for _ in 0..12 {
        let mut socket = Socket::open(&serving.client, &json!({"agent_ids": [id]})).await;
        socket.join(&topic(&id), json!({})).await;
        sockets.push(socket);
    }
    serving.stop.send(()).expect("it runs");
    for socket in &mut sockets {
        assert_eq!(socket.close_code().await, Some(1012));
    }
    timeout(TIMEOUT, serving.ended).await.expect("it ends").expect("no panic").expect("an orderly end");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_channel_of_a_deleted_agent_ends() {
    let serving = serve().await;
    let client = &serving.client;
    let id = agent(client, "writer").await;
    let mut socket = Socket::open(client, &json!({})).await;
    let joined = socket.join(&topic(&id), json!({})).await;
    assert_eq!(client.send("DELETE", &format!("/api/v1/agents/{id}"), "").await.0, 204);
    let system = socket.message(|message| message[3] == "system").await;
    assert_eq!(system[4]["message"], "the agent was deleted");
    assert_eq!(socket.message(|m| m[3] == "phx_close").await, json!([joined, joined, topic(&id), "phx_close", {}]));
    assert_eq!(socket.try_join(&topic(&id), json!({})).await.1["status"], "error");
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

#[tokio::test(flavor = "multi_thread")]
async fn sockets_per_workspace_and_channels_per_socket_are_limited() {
    let mut config = Config::default();
    config.realtime.sockets_per_workspace = 2;
    config.realtime.channels_per_socket = 2;
    let serving = serve_with(config).await;
    let client = &serving.client;
    let key = client.key.clone();
    let mut first = Socket::open_with(client, &key, "2.0.0").await.expect("a socket");
    let _second = Socket::open_with(client, &key, "2.0.0").await.expect("a socket");
    let (status, body) = refusal(Socket::open_with(client, &key, "2.0.0").await);
    assert_eq!((status, &body["code"]), (429, &json!("too_many_streams")));
    let mut reasons = BTreeSet::new();
    for name in ["a", "b", "c"] {
        let id = agent(client, name).await;
        let (_, reply) = first.try_join(&topic(&id), json!({})).await;
        reasons.insert(
            reply["response"]["reason"].as_str().unwrap_or_default().split(':').next().unwrap_or("").to_owned(),
        );
    }
    assert_eq!(reasons.into_iter().collect::<Vec<_>>(), ["", "ChannelRateLimitReached"]);
    serving.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idle_socket_is_closed() {
    let mut config = Config::default();
    config.realtime.idle_timeout_s = 1;
    let serving = serve_with(config).await;
    let key = serving.client.key.clone();
    let mut socket = Socket::open_with(&serving.client, &key, "2.0.0").await.expect("a socket");
    assert_eq!(socket.close_code().await, Some(1001));
    serving.end().await;
}
