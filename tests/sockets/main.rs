//! Tests that need a real socket: streams that stay open, chunked bodies, graceful shutdown, and attacks.

// All tests share one binary, because linking each binary takes seconds of build time.
#[path = "../attack/mod.rs"]
mod attack;
mod client;
mod content;
mod embedding;
mod files;
mod limits;
mod mcp;
mod relay;
mod relay_ends;
mod relay_rights;
mod socket;

use std::time::Duration;

use client::Client;
use foldwork_server::Config;
use foldwork_server::config::TimeSpan;
use foldwork_server::serve::listen_with;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// The time limit for each wait of a test. A wait reaches the limit only if the test fails.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A server that listens on its own port.
struct Serving {
    client: Client,
    stop: oneshot::Sender<()>,
    ended: JoinHandle<anyhow::Result<()>>,
}

async fn serve() -> Serving {
    serve_with(Config::default()).await
}

async fn serve_with(mut config: Config) -> Serving {
    // Disables all plugins except `mcp`, because plugins could append events between the events of the test.
    config.plugins.enabled.retain(|name| name == "mcp");
    serve_as_configured(config).await
}

async fn serve_as_configured(mut config: Config) -> Serving {
    config.http.listen = "127.0.0.1:0".into();
    // The default store of a test is in memory.
    if config.files.url == Config::default().files.url {
        config.files.url = "mem://".into();
    }
    if config.store.url == Config::default().store.url {
        config.store.url = "mem://".into();
    }
    // The timeout is longer than any test waits, so a connection that delays shutdown fails the test.
    config.http.stop_timeout = TimeSpan::from_secs(3_600);
    let key = format!("sk_{}", "5".repeat(64));
    let listening = listen_with(config, Some(key.clone()), |_| Ok(())).await.expect("a server");
    let client = Client { address: listening.address, key };
    let (stop, stopped) = oneshot::channel();
    let ended = tokio::spawn(listening.run(async move { drop(stopped.await) }));
    Serving { client, stop, ended }
}

impl Serving {
    async fn end(self) {
        self.stop.send(()).expect("the server runs");
        timeout(TIMEOUT, self.ended).await.expect("the server ends").expect("no panic").expect("a clean end");
    }
}

fn created(title: &str) -> String {
    let event = r#""aggregate_type":"article","event_type":"article.created""#;
    format!(r#"{{{event},"payload":{{"title":"{title}"}}}}"#)
}

/// Returns an event that can be appended at any version of its stream.
fn noted(title: &str) -> String {
    created(title).replace("article.created", "article.noted")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_of_events_follows_the_log_and_resumes() {
    let serving = serve().await;
    let client = &serving.client;
    let mut stream = client.open("GET", "/api/v1/events", &[("Accept", "text/event-stream")], None).await;
    assert!(stream.read_until("\r\n\r\n").await.contains("text/event-stream"));
    assert_eq!(client.send("POST", "/api/v1/aggregates/a/events", &created("one")).await.0, 201);
    let first = stream.read_until("id: 1").await + stream.read_until("\n\n").await.as_str();
    assert!(first.contains("event: article.created") && first.contains("\"one\""), "{first}");
    drop(stream);
    assert_eq!(client.send("POST", "/api/v1/aggregates/b/events", &created("two")).await.0, 201);
    let resume = [("Accept", "text/event-stream"), ("Last-Event-ID", "1")];
    let mut stream = client.open("GET", "/api/v1/events", &resume, None).await;
    stream.read_until("\r\n\r\n").await;
    assert_eq!(client.send("POST", "/api/v1/aggregates/c/events", &created("three")).await.0, 201);
    let rest = stream.read_until("id: 3").await;
    assert!(rest.contains("\"two\"") && !rest.contains("\"one\""), "{rest}");
    drop(stream);
    serving.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_of_one_aggregate_has_no_events_of_other_aggregates() {
    let serving = serve().await;
    let client = &serving.client;
    for id in ["a", "b"] {
        client.send("POST", &format!("/api/v1/aggregates/{id}/events"), &created(id)).await;
    }
    let mut stream = client.open("GET", "/api/v1/aggregates/b/events", &[("Accept", "text/event-stream")], None).await;
    let text = stream.read_until("id: 2").await;
    assert!(!text.contains("id: 1"), "{text}");
    drop(stream);
    serving.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_waiting_request_gets_a_response_when_an_event_is_appended() {
    let serving = serve().await;
    let client = &serving.client;
    let waiting = client.open("GET", "/api/v1/events?wait_ms=30000&types=article.created", &[], None).await;
    assert_eq!(client.send("POST", "/api/v1/aggregates/a/events", &created("one")).await.0, 201);
    let (status, body) = waiting.answer().await;
    assert_eq!(status, 200);
    assert!(body.contains("\"position\":1"), "{body}");
    serving.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chunked_body_is_accepted_up_to_the_size_limit() {
    let serving = serve().await;
    let client = &serving.client;
    let chunked = [("Transfer-Encoding", "chunked"), ("Content-Type", "application/json")];
    let mut request = client.open("POST", "/api/v1/projects", &chunked, None).await;
    for part in [r#"{"name":"#, r#""Docs"}"#, ""] {
        request.write(&format!("{:x}\r\n{part}\r\n", part.len())).await.expect("the server reads the body");
    }
    assert_eq!(request.answer().await.0, 201);
    let mut request = client.open("POST", "/api/v1/projects", &chunked, None).await;
    let part = "x".repeat(1 << 16);
    for _ in 0..20 {
        // The server may stop reading when the limit is reached.
        if request.write(&format!("{:x}\r\n{part}\r\n", part.len())).await.is_err() {
            break;
        }
    }
    let (status, body) = request.answer().await;
    assert_eq!(status, 413);
    assert!(body.contains("payload_too_large"), "{body}");
    serving.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopping_server_completes_requests_in_progress() {
    let serving = serve().await;
    let body = r#"{"name":"Docs"}"#;
    let length = body.len().to_string();
    let headers =
        [("Content-Length", length.as_str()), ("Content-Type", "application/json"), ("Expect", "100-continue")];
    let mut request = serving.client.open("POST", "/api/v1/projects", &headers, None).await;
    // Waits until the handler has begun to read the body.
    request.read_until("100 Continue\r\n\r\n").await;
    serving.stop.send(()).expect("the server runs");
    timeout(TIMEOUT, async { while serving.client.connects().await {} })
        .await
        .expect("the server stops accepting connections");
    request.write(body).await.expect("the server still reads the body");
    let (status, answer) = request.answer().await;
    assert_eq!(status, 201, "{answer}");
    timeout(TIMEOUT, serving.ended).await.expect("the server ends").expect("no panic").expect("a clean end");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_open_stream_ends_when_the_server_stops() {
    let serving = serve().await;
    let mut stream = serving.client.open("GET", "/api/v1/events", &[("Accept", "text/event-stream")], None).await;
    stream.read_until("\r\n\r\n").await;
    serving.end().await;
    assert!(stream.rest().await.ends_with("0\r\n\r\n"), "the stream ended without its last chunk");
}

/// Creates a key, and returns the key's id and a client that uses the key.
async fn made_key(client: &Client, expires_at: &str) -> (String, Client) {
    let body = format!(r#"{{"name":"k","scopes":["api:read"],"expires_at":{expires_at}}}"#);
    let (status, answer) = client.send("POST", "/api/v1/keys", &body).await;
    assert_eq!(status, 201, "{answer}");
    let answer: serde_json::Value = serde_json::from_str(&answer).expect("JSON");
    let text = |name: &str| answer[name].as_str().expect("a text").to_owned();
    (text("id"), Client { address: client.address, key: text("key") })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_and_a_waiting_request_end_when_their_key_is_revoked() {
    let serving = serve().await;
    let (id, reader) = made_key(&serving.client, "null").await;
    let mut stream = reader.open("GET", "/api/v1/events", &[("Accept", "text/event-stream")], None).await;
    assert!(stream.read_until("\r\n\r\n").await.contains("text/event-stream"));
    let waiting = reader.open("GET", "/api/v1/events?wait_ms=30000", &[], None).await;
    assert_eq!(serving.client.send("DELETE", &format!("/api/v1/keys/{id}"), "").await.0, 204);
    // Events that are appended after the revocation must not reach this key.
    assert_eq!(serving.client.send("POST", "/api/v1/aggregates/a/events", &created("one")).await.0, 201);
    let rest = stream.read_until("0\r\n\r\n").await;
    assert!(!rest.contains("\"one\""), "{rest}");
    let (status, answer) = waiting.answer().await;
    assert_eq!(status, 401, "{answer}");
    serving.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_ends_when_its_key_expires() {
    let serving = serve().await;
    let soon = foldwork_engine::clock::Clock::now_ms(&foldwork_engine::clock::SystemClock) + 5_000;
    let expires_at = format!("\"{}\"", foldwork_engine::model::date::format_date(soon));
    let (_, reader) = made_key(&serving.client, &expires_at).await;
    let mut stream = reader.open("GET", "/api/v1/events", &[("Accept", "text/event-stream")], None).await;
    assert!(stream.read_until("\r\n\r\n").await.contains("text/event-stream"));
    stream.read_until("0\r\n\r\n").await;
    assert_eq!(reader.send("GET", "/api/v1/keys/self", "").await.0, 401);
    serving.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn responses_to_head_requests_have_no_body() {
    let serving = serve().await;
    let text = serving.client.open("HEAD", "/api/v1/projects", &[("Connection", "close")], None).await.rest().await;
    let (head, body) = text.split_once("\r\n\r\n").expect("a head");
    assert!(head.starts_with("HTTP/1.1 200") && body.is_empty(), "{text}");
    serving.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_of_one_aggregate_starts_after_a_position_or_a_version() {
    let serving = serve().await;
    let client = &serving.client;
    for (id, title) in [("a", "one"), ("b", "two"), ("a", "three"), ("b", "four"), ("a", "five")] {
        let event = noted(title);
        assert_eq!(client.send("POST", &format!("/api/v1/aggregates/{id}/events"), &event).await.0, 201);
    }
    let resume = [("Accept", "text/event-stream"), ("Last-Event-ID", "2")];
    let path = "/api/v1/aggregates/a/events";
    let mut resumed = client.open("GET", path, &resume, None).await;
    let by_version = format!("{path}?after_version=1");
    let mut later = client.open("GET", &by_version, &[("Accept", "text/event-stream")], None).await;
    for stream in [&mut resumed, &mut later] {
        let text = stream.read_until("id: 5").await + stream.read_until("\n\n").await.as_str();
        assert!(text.contains("\"three\"") && text.contains("\"five\""), "{text}");
        assert!(!text.contains("\"one\"") && !text.contains("\"two\"") && !text.contains("\"four\""), "{text}");
    }
    for (id, title) in [("b", "six"), ("a", "seven")] {
        let event = noted(title);
        assert_eq!(client.send("POST", &format!("/api/v1/aggregates/{id}/events"), &event).await.0, 201);
    }
    for stream in [&mut resumed, &mut later] {
        let text = stream.read_until("id: 7").await + stream.read_until("\n\n").await.as_str();
        assert!(text.contains("\"seven\"") && !text.contains("\"six\"") && !text.contains("\"five\""), "{text}");
    }
    drop((resumed, later));
    serving.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_first_start_whose_port_is_in_use_stores_no_key() {
    let folder = tempfile::tempdir().expect("a folder");
    let taken = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let mut config = Config::default();
    config.store.url = format!("surrealkv://{}", folder.path().join("db").display());
    config.files.url = format!("file://{}", folder.path().join("files").display());
    config.http.listen = taken.local_addr().expect("an address").to_string();
    config.plugins.enabled.clear();
    let nothing = |key: &str| panic!("{key} is shown by a server that does not serve");
    let error = listen_with(config.clone(), None, nothing).await.err().expect("the port is taken");
    assert!(format!("{error:#}").starts_with("cannot listen on 127.0.0.1:"), "{error:#}");

    config.http.listen = "127.0.0.1:0".into();
    let mut shown = None;
    let show = |key: &str| {
        shown = Some(key.to_owned());
        Ok(())
    };
    let listening = listen_with(config, None, show).await.expect("a server");
    let client = Client { address: listening.address, key: shown.expect("the key is shown") };
    let (stop, stopped) = oneshot::channel();
    let ended = tokio::spawn(listening.run(async move { drop(stopped.await) }));
    assert_eq!(client.send("POST", "/api/v1/projects", r#"{"name":"Docs"}"#).await.0, 201);
    stop.send(()).expect("the server runs");
    timeout(TIMEOUT, ended).await.expect("the server ends").expect("no panic").expect("a clean end");
}
