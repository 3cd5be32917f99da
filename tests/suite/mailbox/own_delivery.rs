//! Tests keys that are bound to agents, and that users cannot decide on output that their own keys have delivered.

use foldwork_engine::error::ErrorCode;
use foldwork_engine::model::access::Role;
use foldwork_engine::model::event::StreamExpectation;
use foldwork_engine::workspace::mailbox::TaskCommand;
use foldwork_engine::{Error, Writer};
use foldwork_tests::handles::join;
use foldwork_tests::server::Server;
use serde_json::{Value, json};

use super::board::{AGENTS, Answer, DRAFTER, HELPER, delete, get, post, request};
use super::people::{first_workspace, joined, key_of};

async fn server() -> Server {
    let names: Vec<String> = AGENTS.map(str::to_owned).to_vec();
    Server::start_with_others_deciding(&names).await.expect("a server")
}

/// Creates a key and returns its secret.
async fn key(server: &Server, by: &str, more: Value) -> String {
    let mut body = json!({"name": "a key", "scopes": ["api:read", "api:write"]});
    for (name, value) in more.as_object().expect("fields") {
        body[name] = value.clone();
    }
    let (status, made) = request(server, by, "/keys", Some(&body)).await;
    assert_eq!(status, 201, "{made}");
    made["key"].as_str().expect("a secret").to_owned()
}

async fn new_task(server: &Server) -> String {
    let body = json!({"title": "Draft it", "assignee_type": "agent", "assignee_id": DRAFTER});
    let (status, task) = post(server, "/mailbox", &body).await;
    assert_eq!(status, 201, "{task}");
    task["id"].as_str().expect("an id").to_owned()
}

async fn deliver(server: &Server, by: &str, id: &str) {
    let artifact = json!({"name": "note", "text": "brief", "effect": {
        "aggregate_id": "a-1", "event_type": "article.created", "payload": {"title": "brief"}}});
    for (path, body) in [("claim", json!({"agent_id": DRAFTER})), ("complete", json!({"artifact": artifact}))] {
        let (status, answer) = request(server, by, &format!("/mailbox/{id}/{path}"), Some(&body)).await;
        assert_eq!(status, 200, "{path}: {answer}");
    }
}

fn code((status, body): &Answer) -> (u16, &str) {
    (*status, body["code"].as_str().unwrap_or_default())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_of_an_agent_cannot_decide_on_tasks_or_act_for_other_agents() {
    let server = server().await;
    let owner = server.key("owner").expect("the owner").to_owned();
    let agent = key(&server, &owner, json!({"agent_ids": [DRAFTER]})).await;
    let id = new_task(&server).await;
    deliver(&server, &agent, &id).await;
    for (path, body) in [
        (format!("/mailbox/{id}/approve"), json!({})),
        (format!("/mailbox/{id}/reject"), json!({})),
        (format!("/mailbox/{id}/cancel"), json!({})),
        ("/mailbox/actions".into(), json!({"ids": [id], "action": "approve"})),
        ("/mailbox".into(), json!({"title": "more work"})),
        ("/keys".into(), json!({"name": "free", "scopes": ["api:write"]})),
        ("/aggregates/a-1/events".into(), json!({"aggregate_type": "article", "event_type": "article.created"})),
    ] {
        let answer = request(&server, &agent, &path, Some(&body)).await;
        assert_eq!(code(&answer), (403, "agent_key"), "{path}: {}", answer.1);
    }
    let path = format!("/mailbox/{id}/messages");
    let answer = request(&server, &agent, &path, Some(&json!({"agent_id": HELPER, "text": "mine"}))).await;
    assert_eq!(code(&answer), (403, "other_agent"), "{}", answer.1);
    let answer = request(&server, &agent, "/agents/heartbeat", Some(&json!({"agent_ids": [HELPER]}))).await;
    assert_eq!(answer.0, 404, "{}", answer.1);
    let (_, keys) = request(&server, &agent, "/keys", None).await;
    assert_eq!(keys["data"].as_array().map(Vec::len), Some(1), "{keys}");
    assert_eq!(keys["data"][0]["agent_ids"], json!([DRAFTER]));

    // The owner's key, which created the agent's key, approves the task. The log distinguishes the person, the keys and
    // the agent.
    let (status, approved) = post(&server, &format!("/mailbox/{id}/approve"), &json!({})).await;
    assert_eq!(status, 200, "{approved}");
    let (_, whole) = get(&server, &format!("/mailbox/{id}")).await;
    let entries = whole["timeline"].as_array().expect("a timeline").clone();
    let of = |name: &str| entries.iter().find(|entry| entry["event_type"] == name).expect("an entry");
    let (delivered, decided) = (of("task.delivered"), of("task.approved"));
    assert_eq!((&delivered["agent_id"], &decided["agent_id"]), (&json!(DRAFTER), &Value::Null));
    assert_eq!(delivered["key_id"], keys["data"][0]["id"]);
    assert_ne!(decided["key_id"], delivered["key_id"]);
    assert_eq!(decided["user_id"], whole["resolution"]["by"]);
    let (_, events) = get(&server, "/aggregates/a-1/events").await;
    let metadata = &events["data"][0]["metadata"];
    assert_eq!((&metadata["agent_id"], &metadata["key_id"]), (&json!(DRAFTER), &decided["key_id"]), "{events}");
}

#[tokio::test(flavor = "multi_thread")]
async fn users_cannot_approve_their_own_deliveries() {
    let server = server().await;
    let owner = server.key("owner").expect("the owner").to_owned();
    let worker = key(&server, &owner, json!({})).await;
    let derived = key(&server, &worker, json!({})).await;
    let other = key(&server, &owner, json!({})).await;
    let bob = key_of_bob(&server).await;
    let id = new_task(&server).await;
    deliver(&server, &worker, &id).await;
    let approve = format!("/mailbox/{id}/approve");
    // No key of the user can decide on the output: neither the delivering key, nor the keys that it created, nor the
    // key that created it, nor another key.
    for by in [&worker, &derived, &owner, &other] {
        let answer = request(&server, by, &approve, Some(&json!({}))).await;
        assert_eq!(code(&answer), (403, "own_delivery"), "{}", answer.1);
    }
    let answer = request(&server, &bob, &approve, Some(&json!({}))).await;
    assert_eq!(answer.0, 200, "{}", answer.1);
}

/// Adds a member, and returns the secret of a key of the member.
async fn key_of_bob(server: &Server) -> String {
    joined(server, "bob", Role::Editor).await;
    let (workspace, token) = (first_workspace(server).await, server.key("bob").expect("a token").to_owned());
    key_of(server, &workspace, &token, &json!({})).await.secret
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_has_at_most_100_deliverers_and_a_deliverer_cannot_approve_the_task() {
    let server = server().await;
    let owner = server.key("owner").expect("the owner").to_owned();
    let first = key(&server, &owner, json!({})).await;
    let id = new_task(&server).await;
    let path = |verb: &str| format!("/mailbox/{id}/{verb}");
    let claimed = request(&server, &first, &path("claim"), Some(&json!({"agent_id": DRAFTER}))).await;
    assert_eq!(claimed.0, 200, "{}", claimed.1);
    let artifact = json!({"name": "note", "text": "brief"});
    let mut deliverers = vec![first.clone()];
    for number in 0..100 {
        let answer = request(&server, &deliverers[number], &path("artifacts"), Some(&artifact)).await;
        assert_eq!(answer.0, 201, "{number}: {}", answer.1);
        deliverers.push(key(&server, &owner, json!({})).await);
    }
    let last = deliverers.pop().expect("a key");
    let refused = request(&server, &last, &path("artifacts"), Some(&artifact)).await;
    assert_eq!(code(&refused), (409, "too_many_deliverers"), "{}", refused.1);
    let completed = request(&server, &first, &path("complete"), Some(&json!({}))).await;
    assert_eq!(completed.0, 200, "{}", completed.1);
    for by in deliverers.iter().take(2) {
        let refused = request(&server, by, &path("approve"), Some(&json!({}))).await;
        assert_eq!(code(&refused), (403, "own_delivery"), "{}", refused.1);
    }
    let bob = key_of_bob(&server).await;
    let approved = request(&server, &bob, &path("approve"), Some(&json!({}))).await;
    assert_eq!(approved.0, 200, "{}", approved.1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_of_an_agent_can_revoke_only_itself() {
    let server = server().await;
    let owner = server.key("owner").expect("the owner").to_owned();
    let agent = key(&server, &owner, json!({"agent_ids": [DRAFTER]})).await;
    let (_, own) = request(&server, &agent, "/keys/self", None).await;
    let (_, others) = request(&server, &owner, "/keys/self", None).await;
    let path = |key: &Value| format!("/keys/{}", key["id"].as_str().expect("an id"));
    let refused = delete(&server, &agent, &path(&others)).await;
    assert_eq!(code(&refused), (403, "agent_key"), "{}", refused.1);
    assert_eq!(delete(&server, &agent, &path(&own)).await.0, 204);
    assert_eq!(request(&server, &agent, "/keys/self", None).await.0, 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_editor_cannot_reject_a_task_whose_review_requires_an_owner() {
    let server = server().await;
    let body = json!({"title": "Sign it", "metadata": {"review": {"required_role": "owner"}}});
    let (status, task) = post(&server, "/mailbox", &body).await;
    assert_eq!(status, 201, "{task}");
    let id = task["id"].as_str().expect("an id");
    let workspace = server.workspace("owner").await.expect("the workspace");
    let token = server.key("bob").expect("a token").to_owned();
    let bob = join(&server.engine, &workspace.owner, &token, "bob@example.com", Role::Editor).await.expect("joined");
    let editor: Writer = server.engine.enter(bob).await.expect("an editor");
    let reject = TaskCommand::Reject { reason: None };
    let refused = editor.act_on_task(id, reject.clone(), StreamExpectation::Any).await.err().expect("refused");
    assert!(matches!(refused, Error::Forbidden { code: ErrorCode::InsufficientRole, .. }), "{refused}");
    workspace.writer.act_on_task(id, reject, StreamExpectation::Any).await.map(drop).expect("the owner decides");
}
