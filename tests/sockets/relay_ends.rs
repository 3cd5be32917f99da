//! Tests the rejection of sockets and channels, and the ends of open sockets and channels.

use std::collections::BTreeSet;

use foldwork_server::Config;
use foldwork_server::config::TimeSpan;
use serde_json::{Value, json};
use tokio::time::timeout;
use tokio_tungstenite::tungstenite;

use crate::socket::{Socket, agent, connected, topic};
use crate::{TIMEOUT, made_key, serve, serve_with};

/// Returns the HTTP status and the body of the response that rejects a socket.
fn refusal(opened: Result<Socket, tungstenite::Error>) -> (u16, Value) {
    let error = opened.err().expect("the socket is rejected");
    let tungstenite::Error::Http(response) = error else { return (0, Value::from(error.to_string())) };
    let body = response.body().as_deref().unwrap_or_default();
    (response.status().as_u16(), serde_json::from_slice(body).unwrap_or_default())
}

#[tokio::test(flavor = "multi_thread")]
async fn sockets_without_a_valid_credential_and_joins_without_permission_are_rejected() {
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
    // The credential is valid only for sockets.
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
async fn a_socket_ends_when_the_key_of_its_credential_is_revoked() {
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
async fn a_socket_ends_when_its_latest_credential_expires() {
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
    serving.stop.send(()).expect("the server runs");
    for socket in &mut sockets {
        assert_eq!(socket.close_code().await, Some(1012));
    }
    timeout(TIMEOUT, serving.ended).await.expect("the server ends").expect("no panic").expect("an orderly end");
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
async fn the_stream_of_a_deleted_agent_ends() {
    let serving = serve().await;
    let client = &serving.client;
    let id = agent(client, "writer").await;
    let path = format!("/api/v1/agents/{id}/events");
    let accept = [("Accept", "text/event-stream")];
    let mut stream = client.open("GET", &path, &accept, None).await;
    assert!(stream.read_until("\r\n\r\n").await.contains("text/event-stream"));
    assert_eq!(client.send("DELETE", &format!("/api/v1/agents/{id}"), "").await.0, 204);
    timeout(TIMEOUT, stream.read_until("0\r\n\r\n")).await.expect("the stream ends");
    assert_eq!(client.open("GET", &path, &accept, None).await.answer().await.0, 404);
    serving.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sockets_per_workspace_and_channels_per_socket_are_limited() {
    let mut config = Config::default();
    config.http.streams_per_workspace = 2;
    config.constants.socket.channels = 2;
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
    config.http.idle_timeout = TimeSpan::from_secs(1);
    let serving = serve_with(config).await;
    let key = serving.client.key.clone();
    let mut socket = Socket::open_with(&serving.client, &key, "2.0.0").await.expect("a socket");
    assert_eq!(socket.close_code().await, Some(1001));
    serving.end().await;
}
