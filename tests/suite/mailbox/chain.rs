//! Tests scripted agents whose output needs no review and causes their next task.

use std::sync::Arc;

use foldwork_engine::Plugins;
use foldwork_engine::hook::{
    Candidates, Hook, HookOutput, OnError, Outcome, Plugin, PluginAgent, PluginDescription, RouteInput, Subscription,
    WorkInput,
};
use foldwork_engine::model::facts::{Artifact, Assignee, Assignment, EventFact, Priority, Product};
use foldwork_engine::model::task::content::text_part;
use foldwork_engine::model::value::Object;
use foldwork_tests::server::{Server, worked};
use serde_json::json;

use super::board::{get, post};

/// An agent that changes a note because the note has changed.
struct Restless {
    about: PluginDescription,
}

impl Plugin for Restless {
    fn about(&self) -> &PluginDescription {
        &self.about
    }

    fn route(&self, _: &RouteInput<'_>) -> Outcome<Vec<Assignment>> {
        let assignment = Assignment {
            assignee: Assignee::Agent("agent-restless".into()),
            title: None,
            priority: Priority::Normal,
            metadata: Object::new(),
            due_in_s: None,
        };
        Ok(HookOutput { value: vec![assignment], operations: 0 })
    }

    fn work(&self, _: &WorkInput<'_>) -> Outcome<Product> {
        let effect = EventFact { event_type: "note.changed".into(), payload: Object::from_iter([("text", "again")]) };
        let artifact = Artifact { name: "note".into(), parts: vec![text_part("again")], effect: Some(effect) };
        Ok(HookOutput {
            value: Product { artifacts: vec![artifact], message: None, review: false, declined: None },
            operations: 0,
        })
    }
}

fn restless() -> Plugins {
    let profile = PluginAgent { description: "Restless.".into(), traits: Vec::new(), capabilities: Object::new() };
    let about = PluginDescription {
        name: "restless".into(),
        version: "1.0.0".into(),
        description: "Changes what has changed.".into(),
        hooks: vec![Hook::Route, Hook::Work],
        on: Subscription { events: vec!["note.changed".into()], traits: Vec::new() },
        on_error: OnError::Park,
        settings: Object::new(),
        agent: Some(profile),
        tool: None,
        candidates: Candidates::default(),
    };
    Plugins::new(vec![Arc::new(Restless { about })], 1).expect("threads")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chain_of_unreviewed_effects_eventually_requires_a_review() {
    let server = Server::start_with_native(restless()).await.expect("a server");
    post(&server, "/aggregates/define", &json!({"type_name": "note"})).await;
    let event = json!({"aggregate_type": "note", "event_type": "note.changed", "payload": {"text": "once"}});
    let (status, appended) = post(&server, "/aggregates/n-1/events", &event).await;
    assert_eq!(status, 201, "{appended}");
    worked(&server.workspace("owner").await.expect("the workspace")).await.expect("the chain ends");
    let (_, waiting) = get(&server, "/mailbox?status=open").await;
    let open = waiting["data"].as_array().expect("tasks");
    assert_eq!((open.len(), &open[0]["status"]), (1, &json!("review")), "{waiting}");
    let (_, ended) = get(&server, "/mailbox?status=completed").await;
    let ended = ended["data"].as_array().expect("tasks").len();
    assert!((1..8).contains(&ended), "{ended} completed tasks");
}

#[tokio::test(flavor = "multi_thread")]
async fn effects_of_a_script_wait_for_a_required_review() {
    let server = Server::start_with_native(restless()).await.expect("a server");
    post(&server, "/aggregates/define", &json!({"type_name": "note"})).await;
    let event = json!({"aggregate_type": "note", "event_type": "note.created", "payload": {"text": "once"}});
    let (status, appended) = post(&server, "/aggregates/n-1/events", &event).await;
    assert_eq!(status, 201, "{appended}");
    let new = json!({"title": "Change it", "assignee_type": "agent", "assignee_id": "agent-restless",
        "source": {"aggregate_id": "n-1"}, "metadata": {"review": {"required_role": "owner"}}});
    let (status, task) = post(&server, "/mailbox", &new).await;
    assert_eq!(status, 201, "{task}");
    worked(&server.workspace("owner").await.expect("the workspace")).await.expect("the work is done");
    let path = format!("/mailbox/{}", task["id"].as_str().expect("an id"));
    let (_, task) = get(&server, &path).await;
    assert_eq!(task["status"], "review", "{task}");
    let (_, stream) = get(&server, "/aggregates/n-1/events").await;
    assert_eq!(stream["data"].as_array().map(Vec::len), Some(1), "{stream}");
    let (status, approved) = post(&server, &format!("{path}/approve"), &json!({})).await;
    assert_eq!((status, &approved["appended"][0]["event_type"]), (200, &json!("note.changed")), "{approved}");
}
