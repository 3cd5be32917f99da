//! Tests the limits of a task's content, and the preview of several effects on one aggregate.

use serde_json::{Value, json};

use super::board::{Answer, DRAFTER, act, get, post, server, task};

/// The maximum number of artifacts of a task.
const ARTIFACTS: usize = 500;
/// The maximum number of artifact versions in a task, counted over all artifacts.
const VERSIONS: usize = 2_000;
/// The maximum number of caused events in a response.
const CAUSED: usize = 200;
/// The maximum number of artifacts in one request.
const DELIVERED: usize = 100;

fn code(answer: &Answer) -> (u16, &str) {
    (answer.0, answer.1["code"].as_str().unwrap_or_default())
}

#[tokio::test]
async fn the_approval_of_a_full_task_appends_all_its_effects() {
    let server = server().await;
    let id = task(&server, DRAFTER).await;
    act(&server, &id, "claim", json!({"agent_id": DRAFTER})).await;
    let effect = json!({"aggregate_id": "n-1", "event_type": "note.changed", "payload": {"text": "x"}});
    post(&server, "/aggregates/define", &json!({"type_name": "note"})).await;
    let path = format!("/mailbox/{id}/artifacts");
    for number in 0..ARTIFACTS {
        let artifact = json!({"name": format!("a{number}"), "text": "x", "effect": effect});
        let (status, answer) = post(&server, &path, &with_agent(artifact)).await;
        assert!((200..300).contains(&status), "{answer}");
    }
    let refused = post(&server, &path, &with_agent(json!({"name": "more", "text": "x"}))).await;
    assert_eq!(code(&refused), (409, "task_full"), "{}", refused.1);
    assert_eq!(refused.1["maximum"], json!(ARTIFACTS), "{}", refused.1);
    let (status, answer) = post(&server, &path, &with_agent(json!({"name": "a7", "text": "y", "effect": null}))).await;
    assert!((200..300).contains(&status), "{answer}");
    act(&server, &id, "complete", json!({"agent_id": DRAFTER})).await;
    let (_, whole) = get(&server, &format!("/mailbox/{id}")).await;
    assert_eq!(whole["would_append"].as_array().map(Vec::len), Some(ARTIFACTS - 1), "{}", whole["would_refuse"]);
    let approved = act(&server, &id, "approve", json!({})).await;
    assert_eq!(approved["appended"].as_array().map(Vec::len), Some(ARTIFACTS - 1));
    let (_, newest) = get(&server, &format!("/aggregates/{id}/events?direction=desc&limit=1")).await;
    let approval = newest["data"][0]["event_id"].as_str().expect("the approval");
    let (_, found) = get(&server, &format!("/events/{approval}")).await;
    assert_eq!((found["caused"].as_array().map(Vec::len), &found["more"]), (Some(CAUSED), &json!(true)), "{found}");
}

#[tokio::test]
async fn a_task_at_the_limit_of_artifact_versions_can_be_completed_and_approved() {
    let server = server().await;
    let id = task(&server, DRAFTER).await;
    let artifacts: Vec<Value> =
        (0..DELIVERED).map(|number| json!({"name": format!("a{number}"), "text": "x"})).collect();
    for _ in 0..VERSIONS / DELIVERED {
        act(&server, &id, "claim", json!({"agent_id": DRAFTER})).await;
        act(&server, &id, "complete", json!({"agent_id": DRAFTER, "artifacts": artifacts})).await;
        act(&server, &id, "request-changes", json!({"message": "Once more."})).await;
    }
    act(&server, &id, "claim", json!({"agent_id": DRAFTER})).await;
    let more = with_agent(json!({"name": "a0", "text": "y"}));
    let refused = post(&server, &format!("/mailbox/{id}/artifacts"), &more).await;
    assert_eq!(code(&refused), (409, "task_full"), "{}", refused.1);
    assert_eq!((&refused.1["limit"], &refused.1["maximum"]), (&json!("versions of artifacts"), &json!(VERSIONS)));
    let error = refused.1["error"].as_str().expect("a text");
    assert!(error.ends_with("; instead, finish this task, and continue in another one"), "{error}");
    act(&server, &id, "complete", json!({"agent_id": DRAFTER})).await;
    act(&server, &id, "approve", json!({"accept_superseded": true})).await;
    let (_, whole) = get(&server, &format!("/mailbox/{id}")).await;
    assert_eq!((&whole["status"], whole["artifacts"].as_array().map(Vec::len)), (&json!("approved"), Some(VERSIONS)));
}

fn with_agent(mut artifact: Value) -> Value {
    artifact["agent_id"] = json!(DRAFTER);
    artifact
}

#[tokio::test]
async fn effects_on_one_aggregate_show_the_changes_since_their_expected_versions() {
    let server = server().await;
    post(&server, "/aggregates/define", &json!({"type_name": "note"})).await;
    for text in ["one", "two", "three"] {
        let event = json!({"aggregate_type": "note", "event_type": "note.changed", "payload": {"text": text}});
        let (status, answer) = post(&server, "/aggregates/n-1/events", &event).await;
        assert_eq!(status, 201, "{answer}");
    }
    let artifact = |read: u64| {
        let effect = json!({"aggregate_id": "n-1", "event_type": "note.changed", "payload": {"text": "new"},
            "expected_version": read});
        json!({"name": format!("since {read}"), "text": "x", "effect": effect})
    };
    let body = json!({"title": "Change it", "artifacts": [artifact(1), artifact(2), artifact(3), artifact(0)]});
    let (status, task) = post(&server, "/mailbox", &body).await;
    assert_eq!(status, 201, "{task}");
    let (_, whole) = get(&server, &format!("/mailbox/{}", task["id"].as_str().expect("an id"))).await;
    let stale: Vec<&Value> = (0..4).map(|index| &whole["would_append"][index]["stale"]).collect();
    let since = |read: u64, was: &str| {
        let change = json!({"was": was, "now": "three"});
        json!({"expected_version": read, "current_version": 3, "difference": {"text": change}})
    };
    assert_eq!(*stale[0], since(1, "one"), "{whole}");
    assert_eq!(*stale[1], since(2, "two"), "{whole}");
    assert!(stale[2].is_null(), "{whole}");
    assert_eq!(stale[3]["difference"]["text"]["now"], json!("three"), "{whole}");
}
