//! Tests that a key that is bound to agents can neither replace the output of a person nor skip a required review, and
//! that requests with an ended claim are rejected.

use foldwork_engine::model::access::Role;
use foldwork_tests::server::Server;
use serde_json::{Value, json};

use super::board::{AGENTS, DRAFTER, act, get, post, post_in, request, task_with};
use super::people::{first_workspace, joined, key_of};

/// A server, and a key that is bound to the first agent.
struct Bench {
    server: Server,
    workspace: String,
    agent: String,
}

impl Bench {
    async fn start() -> Bench {
        let server = Server::start_with_others_deciding(&AGENTS.map(str::to_owned)).await.expect("a server");
        let workspace = first_workspace(&server).await;
        let owner = server.key("owner").expect("the owner").to_owned();
        let agent = key_of(&server, &workspace, &owner, &json!({"agent_ids": [DRAFTER]})).await.secret;
        Bench { server, workspace, agent }
    }

    /// Performs an action with the agent's key. Returns the status, and the code of a refusal.
    async fn work(&self, id: &str, verb: &str, body: Value) -> (u16, String) {
        let (status, answer) = request(&self.server, &self.agent, &format!("/mailbox/{id}/{verb}"), Some(&body)).await;
        (status, answer["code"].as_str().unwrap_or_default().to_owned())
    }
}

fn output(name: &str, text: &str) -> Value {
    json!({"name": name, "text": text, "effect": {
        "aggregate_id": "a-1", "event_type": "article.created", "payload": {"title": text}}})
}

fn refused(status: u16, code: &str) -> (u16, String) {
    (status, code.to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_can_neither_replace_the_output_of_a_person_nor_skip_the_review() {
    let bench = Bench::start().await;
    joined(&bench.server, "bob", Role::Editor).await;
    let token = bench.server.key("bob").expect("a token");
    let new = json!({"title": "Sign it", "artifacts": [output("contract", "as bob wrote it")],
        "metadata": {"review": {"required_role": "owner"}}});
    let (status, task) = post_in(&bench.server, &bench.workspace, token, "/mailbox", &new).await;
    assert_eq!(status, 201, "{task}");
    let id = task["id"].as_str().expect("an id");
    assert_eq!(bench.work(id, "claim", json!({"agent_id": DRAFTER})).await, refused(403, "others_output"));

    // Even if a person assigns the task to the agent, the agent neither replaces the output nor skips the review.
    act(&bench.server, id, "assign", json!({"agent_id": DRAFTER})).await;
    assert_eq!(bench.work(id, "claim", json!({"agent_id": DRAFTER})).await.0, 200);
    let artifact = output("contract", "as the agent likes it");
    assert_eq!(bench.work(id, "artifacts", artifact.clone()).await, refused(403, "not_author"));
    let whole = get(&bench.server, &format!("/mailbox/{id}")).await.1;
    let mut superseding = artifact;
    superseding["id"] = whole["artifacts"][0]["id"].clone();
    assert_eq!(bench.work(id, "artifacts", superseding.clone()).await, refused(403, "not_author"));
    assert_eq!(bench.work(id, "complete", json!({"artifact": superseding})).await, refused(403, "not_author"));
    assert_eq!(bench.work(id, "complete", json!({"review": false})).await, refused(409, "review_required"));
    assert_eq!(bench.work(id, "release", json!({})).await.0, 200);
    let shown = &get(&bench.server, &format!("/mailbox/{id}")).await.1["would_append"];
    assert_eq!(shown[0]["payload"]["title"], "as bob wrote it", "{shown}");

    act(&bench.server, id, "approve", json!({})).await;
    let (_, article) = get(&bench.server, "/aggregates/a-1/events").await;
    assert_eq!(article["data"][0]["payload"]["title"], "as bob wrote it", "{article}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_whose_output_has_an_effect_cannot_be_completed_without_a_review() {
    let bench = Bench::start().await;
    let id = task_with(&bench.server, DRAFTER, &json!({})).await;
    assert_eq!(bench.work(&id, "claim", json!({"agent_id": DRAFTER})).await.0, 200);
    let all = json!({"artifact": output("note", "brief"), "review": false});
    assert_eq!(bench.work(&id, "complete", all).await, refused(409, "review_required"));
    assert_eq!(bench.work(&id, "artifacts", output("note", "brief")).await.0, 201);
    assert_eq!(bench.work(&id, "complete", json!({"review": false})).await, refused(409, "review_required"));
    // The author replaces its own output.
    assert_eq!(bench.work(&id, "artifacts", output("note", "briefer")).await.0, 201);
    assert_eq!(bench.work(&id, "complete", json!({})).await.0, 200);
    act(&bench.server, &id, "approve", json!({})).await;
    let (_, article) = get(&bench.server, "/aggregates/a-1/events").await;
    assert_eq!(article["data"][0]["payload"]["title"], "briefer", "{article}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_whose_output_has_no_effect_can_be_completed_without_a_review() {
    let bench = Bench::start().await;
    let (status, task) = post(&bench.server, "/mailbox", &json!({"title": "Open to agents"})).await;
    assert_eq!(status, 201, "{task}");
    let id = task["id"].as_str().expect("an id");
    assert_eq!(bench.work(id, "claim", json!({"agent_id": DRAFTER})).await.0, 200);
    let plain = json!({"artifact": {"name": "note", "text": "brief"}, "review": false});
    assert_eq!(bench.work(id, "complete", plain).await.0, 200);
    assert_eq!(get(&bench.server, &format!("/mailbox/{id}")).await.1["status"], "completed");
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_and_artifacts_are_rejected_after_the_end_of_their_claim() {
    let bench = Bench::start().await;
    let id = task_with(&bench.server, DRAFTER, &json!({})).await;
    let claim = json!({"agent_id": DRAFTER, "lease_seconds": 60});
    let path = format!("/mailbox/{id}/claim");
    let first = request(&bench.server, &bench.agent, &path, Some(&claim)).await.1["lease"]["claim"].clone();
    let message = |claim: &Value| json!({"text": "so it is", "claim": claim});
    assert_eq!(bench.work(&id, "messages", message(&first)).await.0, 201);
    bench.server.pass(60_000).await.expect("the timers");
    assert_eq!(bench.work(&id, "messages", message(&first)).await, refused(409, "not_lease_holder"));
    let second = request(&bench.server, &bench.agent, &path, Some(&claim)).await.1["lease"]["claim"].clone();
    assert_ne!(first, second);
    assert_eq!(bench.work(&id, "messages", message(&first)).await, refused(409, "not_lease_holder"));
    assert_eq!(bench.work(&id, "artifacts", json!({"text": "late", "claim": first})).await.0, 409);
    assert_eq!(bench.work(&id, "messages", message(&second)).await.0, 201);
    assert_eq!(bench.work(&id, "messages", json!({"text": "without a claim"})).await.0, 201);
}
