//! Tests the resource limits of clients. Clients that are slow or silent, or exceed a limit, get an error or are
//! disconnected.

use std::time::Duration;

use foldwork_server::Config;
use foldwork_server::config::{Http, TimeSpan};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::{Serving, TIMEOUT, noted, serve_with};

const STREAM: [(&str, &str); 1] = [("Accept", "text/event-stream")];

fn config(change: impl FnOnce(&mut Http)) -> Config {
    let mut config = Config::default();
    change(&mut config.http);
    config
}

/// Returns the text that the server sends before the server closes the connection.
async fn rest(socket: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    // Ignores an error, because a server that closes the connection with unread bytes may reset the connection.
    let _ = timeout(TIMEOUT, socket.read_to_end(&mut bytes)).await.expect("the server closes");
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Repeats a request until its response has this status. Earlier attempts may be rejected or disconnected.
async fn answered(serving: &Serving, path: &str, headers: &[(&str, &str)], status: u16) {
    let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let key = &serving.client.key;
    let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\n{headers}\r\n");
    let status_line = format!("HTTP/1.1 {status} ");
    let polling = async {
        loop {
            let mut socket = TcpStream::connect(serving.client.address).await.expect("a connection");
            let mut begin = vec![0; status_line.len()];
            let is_read = match socket.write_all(request.as_bytes()).await {
                Ok(()) => socket.read_exact(&mut begin).await.is_ok(),
                Err(_) => false,
            };
            if is_read && begin == status_line.as_bytes() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(TIMEOUT, polling).await.expect("the wanted status arrives");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_over_the_limit_gets_503() {
    let serving = serve_with(config(|http| http.max_connections = 1)).await;
    let mut first = serving.client.open("GET", "/healthz", &[], None).await;
    first.read_until("\r\n\r\n").await;
    let mut second = TcpStream::connect(serving.client.address).await.expect("a connection");
    let response = rest(&mut second).await;
    assert!(response.starts_with("HTTP/1.1 503") && response.contains("retry-after: 1"), "{response}");
    assert!(response.contains(r#""code":"busy""#) && response.contains(r#""request_id":""#), "{response}");
    drop(first);
    answered(&serving, "/healthz", &[], 200).await;
    serving.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_over_the_limit_of_its_address_gets_429() {
    let serving = serve_with(config(|http| http.max_connections_per_address = 1)).await;
    let mut first = serving.client.open("GET", "/healthz", &[], None).await;
    first.read_until("\r\n\r\n").await;
    let mut second = TcpStream::connect(serving.client.address).await.expect("a connection");
    let response = rest(&mut second).await;
    assert!(response.starts_with("HTTP/1.1 429") && response.contains("too_many_connections"), "{response}");
    drop(first);
    answered(&serving, "/healthz", &[], 200).await;
    serving.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_stream_over_the_limit_gets_429() {
    let serving = serve_with(config(|http| http.streams_per_workspace = 1)).await;
    let mut first = serving.client.open("GET", "/api/v1/events", &STREAM, None).await;
    first.read_until("\r\n\r\n").await;
    let mut second = serving.client.open("GET", "/api/v1/events", &STREAM, None).await;
    let head = second.read_until("\r\n\r\n").await;
    assert!(head.starts_with("HTTP/1.1 429") && head.contains("retry-after: 5"), "{head}");
    drop(first);
    answered(&serving, "/api/v1/events", &STREAM, 200).await;
    serving.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_whose_body_never_arrives_gets_408() {
    let mut config = Config::default();
    config.constants.body_timeout = Duration::ZERO;
    let serving = serve_with(config).await;
    let headers = [("Content-Length", "20"), ("Content-Type", "application/json")];
    let mut request = serving.client.open("POST", "/api/v1/projects", &headers, None).await;
    let head = request.read_until("\r\n\r\n").await;
    assert!(head.starts_with("HTTP/1.1 408"), "{head}");
    serving.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_over_the_shared_limit_of_unfinished_bodies_gets_503() {
    let body = r#"{"name":"Docs"}"#;
    let mut config = Config::default();
    config.constants.bodies_in_flight = body.len();
    let serving = serve_with(config).await;
    let (status, answer) = serving.client.send("POST", "/api/v1/projects", r#"{"name":"Documents"}"#).await;
    assert_eq!(status, 503, "{answer}");
    assert!(answer.contains(r#""code":"busy""#), "{answer}");
    for name in ["Docs", "Logs", "Apis"] {
        let (status, answer) = serving.client.send("POST", "/api/v1/projects", &body.replace("Docs", name)).await;
        assert_eq!(status, 201, "{answer}");
    }
    serving.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_sends_no_complete_request_in_time_is_disconnected() {
    let serving = serve_with(config(|http| http.idle_timeout = TimeSpan::from_secs(1))).await;
    for partial_head in ["", "PRI", "GET /healthz HTTP/1.1\r\nHost: x\r\nX-Slow: "] {
        let mut socket = TcpStream::connect(serving.client.address).await.expect("a connection");
        socket.write_all(partial_head.as_bytes()).await.expect("sent");
        assert!(!rest(&mut socket).await.contains("200 OK"));
    }
    // A client that sends no second request after its response is disconnected too.
    let mut idle = serving.client.open("GET", "/healthz", &[], None).await;
    idle.read_until("\r\n\r\n").await;
    assert_eq!(idle.rest().await, r#"{"status":"ok"}"#);
    serving.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_that_never_read_are_disconnected() {
    let mut config = config(|http| http.streams_per_workspace = 1);
    config.constants.stalled_reader = Duration::from_secs(1);
    let serving = serve_with(config).await;
    // Appends more bytes than fit into the socket buffers of both ends.
    let text = "x".repeat(1_000_000);
    for number in 0..32 {
        let path = format!("/api/v1/aggregates/a{number}/events");
        assert_eq!(serving.client.send("POST", &path, &noted(&text)).await.0, 201);
    }
    let mut stalled = serving.client.open("GET", "/api/v1/events", &STREAM, None).await;
    stalled.read_until("\r\n\r\n").await;
    // The slot of the disconnected reader is free again, although the reader never closed its side.
    answered(&serving, "/api/v1/events?after=32", &STREAM, 200).await;
    serving.end().await;
    drop(stalled);
}
