//! Tests that a change between an agent's read and the agent's delivery makes the approval stale.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use foldwork_engine::Plugins;
use foldwork_engine::hook::{
    Candidates, Hook, HookOutput, OnError, Outcome, Plugin, PluginAgent, PluginDescription, Subscription, WorkInput,
};
use foldwork_engine::model::facts::{Artifact, EventFact, Product};
use foldwork_engine::model::task::content::text_part;
use foldwork_engine::model::value::Object;
use foldwork_tests::server::{Server, worked};
use parking_lot::Mutex;
use serde_json::json;

use super::board::{self, DRAFTER, act, get, post};

/// An agent that reads its task, and delivers when the test allows the delivery.
struct Slow {
    about: PluginDescription,
    has_read: Sender<()>,
    may_deliver: Mutex<Receiver<()>>,
}

impl Plugin for Slow {
    fn about(&self) -> &PluginDescription {
        &self.about
    }

    fn work(&self, _: &WorkInput<'_>) -> Outcome<Product> {
        self.has_read.send(()).expect("the test waits");
        self.may_deliver.lock().recv().expect("the test lets the agent deliver");
        let effect = EventFact { event_type: "note.changed".into(), payload: Object::from_iter([("text", "drafted")]) };
        let artifact = Artifact { name: "note".into(), parts: vec![text_part("drafted")], effect: Some(effect) };
        Ok(HookOutput {
            value: Product { artifacts: vec![artifact], message: None, review: true, declined: None },
            operations: 0,
        })
    }
}

fn slow(has_read: Sender<()>, may_deliver: Receiver<()>) -> Plugins {
    let profile = PluginAgent { description: "Slow.".into(), traits: Vec::new(), capabilities: Object::new() };
    let about = PluginDescription {
        name: "slow".into(),
        version: "1.0.0".into(),
        description: "Takes its time.".into(),
        hooks: vec![Hook::Work],
        on: Subscription { events: Vec::new(), traits: Vec::new() },
        on_error: OnError::Park,
        settings: Object::new(),
        agent: Some(profile),
        tool: None,
        candidates: Candidates::default(),
    };
    Plugins::new(vec![Arc::new(Slow { about, has_read, may_deliver: Mutex::new(may_deliver) })], 1).expect("threads")
}

#[tokio::test(flavor = "multi_thread")]
async fn output_of_a_scripted_agent_is_stale_if_the_aggregate_changed_after_the_read() {
    let ((has_read, read), (deliver, may_deliver)) = (channel(), channel());
    let server = Server::start_with_native(slow(has_read, may_deliver)).await.expect("a server");
    post(&server, "/aggregates/define", &json!({"type_name": "note"})).await;
    let by = |text: &str| json!({"aggregate_type": "note", "event_type": "note.changed", "payload": {"text": text}});
    post(&server, "/aggregates/n-1/events", &by("first")).await;
    let task = json!({"title": "Draft it", "assignee_type": "agent", "assignee_id": "agent-slow",
        "source": {"aggregate_id": "n-1"}});
    let (status, task) = post(&server, "/mailbox", &task).await;
    assert_eq!(status, 201, "{task}");
    tokio::task::spawn_blocking(move || read.recv()).await.expect("no panic").expect("the agent reads");
    let (status, changed) = post(&server, "/aggregates/n-1/events", &by("by a person")).await;
    assert_eq!(status, 201, "{changed}");
    deliver.send(()).expect("the agent waits");
    worked(&server.workspace("owner").await.expect("the workspace")).await.expect("the agent delivers");
    let path = format!("/mailbox/{}", task["id"].as_str().expect("an id"));
    let (_, whole) = get(&server, &path).await;
    assert_eq!(whole["artifacts"][0]["effect"]["expected_version"], json!(1), "{whole}");
    let (status, refused) = post(&server, &format!("{path}/approve"), &json!({})).await;
    assert_eq!((status, &refused["code"]), (409, &json!("stale")), "{refused}");
    assert_eq!(refused["difference"], json!({"text": {"was": "first", "now": "by a person"}}));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delivery_without_a_version_is_stale_if_the_aggregate_changed_after_the_claim() {
    let server = board::server().await;
    post(&server, "/aggregates/define", &json!({"type_name": "note"})).await;
    let by = |text: &str| json!({"aggregate_type": "note", "event_type": "note.changed", "payload": {"text": text}});
    post(&server, "/aggregates/n-1/events", &by("first")).await;
    let id = board::task_with(&server, DRAFTER, &json!({"source": {"aggregate_id": "n-1"}})).await;
    act(&server, &id, "claim", json!({"agent_id": DRAFTER})).await;
    post(&server, "/aggregates/n-1/events", &by("by a person")).await;
    let draft = |effect: serde_json::Value| json!({"artifact": {"name": "note", "text": "drafted", "effect": effect}});
    let effect = json!({"event_type": "note.changed", "payload": {"text": "drafted"}});
    act(&server, &id, "complete", draft(effect.clone())).await;
    let (_, whole) = get(&server, &format!("/mailbox/{id}")).await;
    assert_eq!(whole["artifacts"][0]["effect"]["expected_version"], json!(1), "{whole}");
    let (status, refused) = post(&server, &format!("/mailbox/{id}/approve"), &json!({})).await;
    assert_eq!((status, &refused["code"]), (409, &json!("stale")), "{refused}");

    // The next claim begins with the current version. An agent that reads later states the version that it has read.
    act(&server, &id, "request-changes", json!({"message": "shorter"})).await;
    act(&server, &id, "claim", json!({"agent_id": DRAFTER})).await;
    post(&server, "/aggregates/n-1/events", &by("again by a person")).await;
    let mut read = effect;
    read["expected_version"] = json!(3);
    act(&server, &id, "complete", draft(read)).await;
    let approved = act(&server, &id, "approve", json!({})).await;
    assert_eq!(approved["status"], json!("approved"), "{approved}");
}
