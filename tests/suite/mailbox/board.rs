//! A server with agents and tasks, used over HTTP by the tests of the mailbox.

use foldwork_tests::server::{Server, Setup};
use poem::http::Method;
use poem::{Body, Request};
use serde_json::{Value, json};

/// The names of the agents on the server.
pub const AGENTS: [&str; 2] = ["drafter", "helper"];
/// The id of the first agent.
pub const DRAFTER: &str = "agent-drafter";
/// The id of the second agent.
pub const HELPER: &str = "agent-helper";

/// Starts a server with the agents.
pub async fn server() -> Server {
    let names: Vec<String> = AGENTS.map(str::to_owned).to_vec();
    Setup::with_agents(&names).start().await.expect("a server")
}

/// The status and body of a response.
pub type Answer = (u16, Value);

/// Sends a `POST` request with the owner's key.
pub async fn post(server: &Server, path: &str, body: &Value) -> Answer {
    call(server, Method::POST, path, Some(body)).await
}

/// Sends a `GET` request with the owner's key.
pub async fn get(server: &Server, path: &str) -> Answer {
    call(server, Method::GET, path, None).await
}

async fn call(server: &Server, method: Method, path: &str, body: Option<&Value>) -> Answer {
    call_with(server, server.key("owner").expect("the owner"), None, method, path, body).await
}

/// Sends a request with a key. The method is `POST` if there is a body, and `GET` otherwise.
pub async fn request(server: &Server, key: &str, path: &str, body: Option<&Value>) -> Answer {
    call_with(server, key, None, if body.is_some() { Method::POST } else { Method::GET }, path, body).await
}

/// Sends a `POST` request with a key or a token to the workspace with this id.
pub async fn post_in(server: &Server, workspace: &str, bearer: &str, path: &str, body: &Value) -> Answer {
    call_with(server, bearer, Some(workspace), Method::POST, path, Some(body)).await
}

/// Sends a request of any method with the owner's key.
pub async fn request_with(server: &Server, method: Method, path: &str, body: &Value) -> Answer {
    call(server, method, path, Some(body)).await
}

/// Sends a `DELETE` request with a key.
pub async fn delete(server: &Server, key: &str, path: &str) -> Answer {
    call_with(server, key, None, Method::DELETE, path, None).await
}

async fn call_with(
    server: &Server,
    bearer: &str,
    workspace: Option<&str>,
    method: Method,
    path: &str,
    body: Option<&Value>,
) -> Answer {
    let mut request = Request::builder()
        .method(method)
        .uri(format!("/api/v1{path}").parse().expect("a path"))
        .header("authorization", format!("Bearer {bearer}"))
        .content_type("application/json");
    if let Some(workspace) = workspace {
        request = request.header("foldwork-workspace", workspace);
    }
    let body = body.map_or_else(Body::empty, |body| Body::from_string(body.to_string()));
    let response = server.call(request.body(body)).await;
    let status = response.status().as_u16();
    let text = response.into_body().into_string().await.expect("a text");
    (status, serde_json::from_str(&text).unwrap_or_default())
}

/// Performs an action on a task, checks that the action succeeds, and returns the response.
pub async fn act(server: &Server, id: &str, act: &str, body: Value) -> Value {
    let (status, answer) = post(server, &format!("/mailbox/{id}/{act}"), &body).await;
    assert!((200..300).contains(&status), "{act}: {status} {answer}");
    answer
}

/// Creates a task for an agent. Returns the id of the task.
pub async fn task(server: &Server, agent: &str) -> String {
    task_with(server, agent, &json!({})).await
}

/// Creates a task for an agent. `more` contains additional fields of the request.
pub async fn task_with(server: &Server, agent: &str, more: &Value) -> String {
    let mut body = json!({"title": "Draft it", "assignee_type": "agent", "assignee_id": agent});
    for (name, value) in more.as_object().expect("fields") {
        body[name] = value.clone();
    }
    let (status, task) = post(server, "/mailbox", &body).await;
    assert_eq!(status, 201, "{task}");
    task["id"].as_str().expect("an id").to_owned()
}

/// Brings a task of an agent into a state. `row` names the state: a status, or `in_progress + output`.
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
    let steps = known.expect("the test knows how to reach this row");
    for (step, body) in steps {
        act(server, id, step, body.clone()).await;
    }
    let status = row.split(' ').next().expect("a status");
    assert_eq!(get(server, &format!("/mailbox/{id}")).await.1["status"], status);
}
