//! A server with agents and tasks, as the tests of the mailbox use it over HTTP.

use foldwork_tests::server::Server;
use poem::http::Method;
use poem::{Body, Request};
use serde_json::{Value, json};

/// The agents, by the names that a server is started with.
pub const AGENTS: [&str; 2] = ["drafter", "helper"];
pub const DRAFTER: &str = "agent-drafter";
pub const HELPER: &str = "agent-helper";

pub async fn server() -> Server {
    let names: Vec<String> = AGENTS.map(str::to_owned).to_vec();
    Server::start_with_agents(&names).await.expect("a server")
}

/// An answer: its status and body.
pub type Answer = (u16, Value);

pub async fn post(server: &Server, path: &str, body: &Value) -> Answer {
    call(server, Method::POST, path, Some(body)).await
}

pub async fn get(server: &Server, path: &str) -> Answer {
    call(server, Method::GET, path, None).await
}

async fn call(server: &Server, method: Method, path: &str, body: Option<&Value>) -> Answer {
    let key = server.key("owner").expect("the owner");
    let request = Request::builder()
        .method(method)
        .uri(format!("/api/v1{path}").parse().expect("a path"))
        .header("authorization", format!("Bearer {key}"))
        .content_type("application/json")
        .body(body.map_or_else(Body::empty, |body| Body::from_string(body.to_string())));
    let response = server.call(request).await;
    let status = response.status().as_u16();
    let text = response.into_body().into_string().await.expect("a text");
    (status, serde_json::from_str(&text).unwrap_or_default())
}

/// Does something with a task that must go well.
pub async fn act(server: &Server, id: &str, act: &str, body: Value) -> Value {
    let (status, answer) = post(server, &format!("/mailbox/{id}/{act}"), &body).await;
    assert!((200..300).contains(&status), "{act}: {status} {answer}");
    answer
}

/// A task for an agent, as it was made.
pub async fn task(server: &Server, agent: &str) -> String {
    task_with(server, agent, &json!({})).await
}

/// A task for an agent, with more said of it.
pub async fn task_with(server: &Server, agent: &str, more: &Value) -> String {
    let mut body = json!({"title": "Draft it", "assignee_type": "agent", "assignee_id": agent});
    for (name, value) in more.as_object().expect("fields") {
        body[name] = value.clone();
    }
    let (status, task) = post(server, "/mailbox", &body).await;
    assert_eq!(status, 201, "{task}");
    task["id"].as_str().expect("an id").to_owned()
}

/// Takes a task of an agent to where a row of the table begins.
pub async fn bring(server: &Server, id: &str, agent: &str, row: &str) {
    let claim = json!({"agent_id": agent, "lease_seconds": 60});
    let known: Option<&[(&str, Value)]> = match row {
        "pending" => Some(&[]),
        "in_progress" => Some(&[("claim", claim)]),
        "in_progress + output" => Some(&[("claim", claim), ("artifacts", json!({"name": "a", "text": "b"}))]),
        "review" => Some(&[("claim", claim), ("complete", json!({"artifact": {"name": "a", "text": "b"}}))]),
        "input_required" => Some(&[("claim", claim), ("request-input", json!({"message": "which?"}))]),
        "awaiting_reply" => Some(&[("ask", json!({"message": "why?"}))]),
        "deferred" => Some(&[("defer", json!({"for_seconds": 600}))]),
        "approved" => Some(&[("approve", json!({}))]),
        "rejected" => Some(&[("reject", json!({"reason": "no"}))]),
        "completed" => Some(&[("claim", claim), ("complete", json!({"review": false}))]),
        "failed" => Some(&[("claim", claim), ("fail", json!({"error": "broken"}))]),
        "canceled" => Some(&[("cancel", json!({}))]),
        _ => None,
    };
    let steps = known.expect("a row that the test knows the way to");
    for (step, body) in steps {
        act(server, id, step, body.clone()).await;
    }
    let status = row.split(' ').next().expect("a status");
    assert_eq!(get(server, &format!("/mailbox/{id}")).await.1["status"], status);
}
