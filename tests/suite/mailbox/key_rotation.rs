//! Tests that a user who has delivered output cannot gain the right to decide by revoking or rotating keys, and that
//! only owners can cancel the tasks of other users.

use foldwork_engine::model::access::Role;
use foldwork_tests::server::Server;
use serde_json::json;

use super::board::{AGENTS, DRAFTER, delete, post_in, request};
use super::people::{Made, first_workspace, joined, key_of};

async fn deliver(server: &Server, by: &str) -> String {
    let new = json!({"title": "Draft it", "assignee_type": "agent", "assignee_id": DRAFTER});
    let (status, task) = request(server, by, "/mailbox", Some(&new)).await;
    assert_eq!(status, 201, "{task}");
    let id = task["id"].as_str().expect("an id").to_owned();
    let artifact = json!({"name": "note", "text": "brief"});
    for (path, body) in [("claim", json!({"agent_id": DRAFTER})), ("complete", json!({"artifact": artifact}))] {
        let (status, answer) = request(server, by, &format!("/mailbox/{id}/{path}"), Some(&body)).await;
        assert_eq!(status, 200, "{path}: {answer}");
    }
    id
}

async fn assert_own_delivery(server: &Server, by: &str, id: &str) {
    let (status, answer) = request(server, by, &format!("/mailbox/{id}/approve"), Some(&json!({}))).await;
    assert_eq!((status, answer["code"].as_str()), (403, Some("own_delivery")), "{answer}");
}

async fn rotated(server: &Server, by: &str, key: &Made) -> Made {
    let path = format!("/keys/{}/rotate", key.id);
    let (status, made) = request(server, by, &path, Some(&json!({"ends_after_seconds": 60}))).await;
    assert_eq!(status, 201, "{made}");
    let text = |name: &str| made[name].as_str().expect("a text").to_owned();
    Made { id: text("id"), secret: text("key") }
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_derived_or_rotated_from_a_key_cannot_approve_its_deliveries() {
    let server = Server::start_with_others_deciding(&AGENTS.map(str::to_owned)).await.expect("a server");
    let (workspace, owner) = (first_workspace(&server).await, server.key("owner").expect("the owner").to_owned());
    let worker = key_of(&server, &workspace, &owner, &json!({})).await;
    let below = key_of(&server, &workspace, &worker.secret, &json!({})).await;
    let id = deliver(&server, &worker.secret).await;
    let successor = rotated(&server, &owner, &worker).await;
    for by in [&worker.secret, &successor.secret, &below.secret] {
        assert_own_delivery(&server, by, &id).await;
    }
    let path = format!("/keys/{}?cascade=false", successor.id);
    assert_eq!(delete(&server, &owner, &path).await.0, 204);
    assert_own_delivery(&server, &below.secret, &id).await;
    assert_own_delivery(&server, &owner, &id).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn owners_can_cancel_tasks_of_other_users_but_editors_cannot() {
    let server = Server::start_with_others_deciding(&AGENTS.map(str::to_owned)).await.expect("a server");
    let (workspace, owner) = (first_workspace(&server).await, server.key("owner").expect("the owner").to_owned());
    for (name, role, expected) in [("ada", Role::Owner, 200), ("bob", Role::Editor, 403)] {
        joined(&server, name, role).await;
        let token = server.key(name).expect("a token").to_owned();
        let id = deliver(&server, &owner).await;
        let (status, answer) = post_in(&server, &workspace, &token, &format!("/mailbox/{id}/cancel"), &json!({})).await;
        assert_eq!(status, expected, "{name}: {answer}");
    }
}
