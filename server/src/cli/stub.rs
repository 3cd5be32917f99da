//! A minimal HTTP server for tests. The server sends replies chosen by the test and records requests.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

use super::client::Client;
use super::retry::CallRetries;

/// A received request.
#[derive(Clone, Debug)]
pub struct StubRequest {
    pub method: String,
    pub target: String,
    pub headers: String,
    pub body: Value,
}

/// A reply: the status, additional headers, and the body.
pub type Reply = (u16, &'static str, Value);

/// A listening stub server.
pub struct Stub {
    address: String,
    requests: Arc<Mutex<Vec<StubRequest>>>,
}

/// A store of projects, types and events that imitates the server, for tests of import and export.
#[derive(Default)]
pub struct StubStore {
    pub projects: Vec<Value>,
    pub types: Vec<Value>,
    pub events: Vec<Value>,
}

impl Stub {
    /// Listens on a free port, and replies with the result of `reply`.
    pub async fn start(reply: impl FnMut(&StubRequest) -> Reply + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = format!("http://{}", listener.local_addr().expect("an address"));
        let requests: Arc<Mutex<Vec<StubRequest>>> = Arc::default();
        tokio::spawn(serve(listener, Arc::clone(&requests), reply));
        Self { address, requests }
    }

    /// Returns a client for this stub with short waits between retries.
    pub fn client(&self) -> Client {
        let wait = std::time::Duration::from_millis(1);
        let retry_policy = CallRetries { tries: 4, first_wait: wait, longest_wait: wait };
        Client::new(&self.address, "sk_test").expect("valid address").with_retry_policy(retry_policy)
    }

    /// Returns the received requests whose request line begins with `beginning`, such as `GET /api/v1/projects`.
    pub fn requests(&self, beginning: &str) -> Vec<StubRequest> {
        let all = self.requests.lock().expect("not poisoned");
        all.iter()
            .filter(|request| format!("{} {}", request.method, request.target).starts_with(beginning))
            .cloned()
            .collect()
    }
}

impl StubStore {
    /// Handles a request as the server would, and returns the reply.
    pub fn reply(&mut self, request: &StubRequest) -> Reply {
        let path = request.target.split('?').next().unwrap_or_default();
        match (request.method.as_str(), path) {
            ("GET", "/api/v1/projects") => (200, "", json!({"data": self.projects, "next_cursor": null})),
            ("POST", "/api/v1/projects") => {
                let id = format!("id-of-{}", request.body["slug"].as_str().unwrap_or_default());
                let project = json!({
                    "id": id, "slug": request.body["slug"], "name": request.body["name"],
                    "description": request.body["description"],
                });
                self.projects.push(project.clone());
                (201, "", project)
            }
            ("GET", "/api/v1/workspace") => {
                let id = "019b76da-a800-7001-8000-000000000001";
                (
                    200,
                    "",
                    json!({"id": id, "name": "w", "slug": "w", "owner_id": id, "created_at": "2026-01-01T00:00:00Z"}),
                )
            }
            ("GET", "/api/v1/aggregate-types") => (200, "", json!({"data": self.types, "next_cursor": null})),
            ("GET", "/api/v1/aggregate-types/definitions") => {
                let is_own = |known: &&Value| known["managed"] == false;
                let past = |known: &Value| {
                    let (name, fields) = (&known["type_name"], &known["fields"]);
                    json!({"type_name": name, "position": 0, "definition": {"type_name": name, "fields": fields}})
                };
                let data: Vec<Value> = self.types.iter().filter(is_own).map(past).collect();
                (200, "", json!({"data": data, "next_cursor": null}))
            }
            ("POST", "/api/v1/aggregates/define") => {
                self.types.retain(|known| known["type_name"] != request.body["type_name"]);
                let mut defined = request.body.clone();
                (defined["builtin"], defined["managed"]) = (false.into(), false.into());
                self.types.push(defined.clone());
                (201, "", defined)
            }
            ("POST", "/api/v1/events") => self.append(&request.body),
            ("GET", "/api/v1/events") => {
                let after = request.target.split("after=").nth(1).and_then(|rest| rest.split('&').next());
                let after: usize = after.and_then(|after| after.parse().ok()).unwrap_or(0);
                let page: Vec<&Value> = self.events.iter().skip(after).take(3).collect();
                (200, "", json!({"data": page, "next_cursor": null}))
            }
            _ => (404, "", json!({"error": "no such route", "code": "not_found", "request_id": "r"})),
        }
    }

    fn append(&mut self, body: &Value) -> Reply {
        let sent = body["events"].as_array().cloned().unwrap_or_default();
        let before = self.events.len();
        for mut event in sent.clone() {
            if !self.events.iter().any(|known| known["event_id"] == event["event_id"]) {
                event["position"] = (self.events.len() + 1).into();
                if let Some(slug) = event["project_id"].as_str() {
                    event["project_id"] = format!("id-of-{slug}").into();
                }
                self.events.push(event);
            }
        }
        let appended = self.events.len() - before;
        let counts = json!({"appended": appended, "repeated": sent.len() - appended});
        if appended == 0 { (200, "Idempotency-Replayed: true\r\n", counts) } else { (201, "", counts) }
    }
}

async fn serve(
    listener: TcpListener,
    requests: Arc<Mutex<Vec<StubRequest>>>,
    mut reply: impl FnMut(&StubRequest) -> Reply + Send + 'static,
) {
    while let Ok((stream, _)) = listener.accept().await {
        let mut stream = BufReader::new(stream);
        let Some(request) = read(&mut stream).await else { continue };
        let (status, headers, body) = reply(&request);
        requests.lock().expect("not poisoned").push(request);
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let head = format!(
            "HTTP/1.1 {status} X\r\n{headers}Content-Type: application/json\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        let _ = stream.write_all((head + body.as_str()).as_bytes()).await;
    }
}

async fn read(stream: &mut BufReader<TcpStream>) -> Option<StubRequest> {
    let mut headers = String::new();
    while !headers.ends_with("\r\n\r\n") {
        if stream.read_line(&mut headers).await.ok()? == 0 {
            return None;
        }
    }
    let mut first = headers.lines().next()?.split(' ');
    let (method, target) = (first.next()?.to_owned(), first.next()?.to_owned());
    let headers = headers.to_ascii_lowercase();
    let length = headers.lines().find_map(|line| line.strip_prefix("content-length: ")?.trim().parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    stream.read_exact(&mut body).await.ok()?;
    Some(StubRequest { method, target, headers, body: serde_json::from_slice(&body).unwrap_or_default() })
}
