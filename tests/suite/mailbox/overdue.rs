//! Tests due dates that pass, escalations, and leases that end while no server runs.

use std::sync::Arc;
use std::time::Duration;

use foldwork_engine::clock::Clock;
use foldwork_engine::model::event::StreamExpectation;
use foldwork_engine::model::facts::Assignee;
use foldwork_engine::model::value::{Object, Value as Stored};
use foldwork_engine::workspace::events::{EventLimit, ReadDirection};
use foldwork_engine::workspace::mailbox::tasks::NewTask;
use foldwork_engine::workspace::mailbox::{AgentAction, Claimant};
use foldwork_engine::{Engine, EngineSettings, Store};
use foldwork_tests::agents::agents;
use foldwork_tests::clock::FixedClock;
use foldwork_tests::handles::{Handles, enter};
use foldwork_tests::server::Server;
use serde_json::{Value, json};

use super::board::{AGENTS, DRAFTER, HELPER, act, get, post, server, task, task_with};

const SECOND: i64 = 1_000;

/// Returns a task and the types of its events, in order.
async fn task_and_events(server: &Server, id: &str) -> (Value, Vec<String>) {
    let (_, task) = get(server, &format!("/mailbox/{id}")).await;
    let events = task["timeline"].as_array().into_iter().flatten();
    let types = events.map(|event| event["event_type"].as_str().unwrap_or_default().to_owned()).collect();
    (task, types)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_gets_one_event_per_due_date_and_becomes_unread_when_the_date_passes() {
    let server = server().await;
    let id = task_with(&server, DRAFTER, &json!({"due_at": "2026-01-01T00:01:00Z"})).await;
    act(&server, &id, "read", json!({})).await;
    server.pass(60 * SECOND - 1).await.expect("the timers");
    let (task, types) = task_and_events(&server, &id).await;
    assert_eq!((&task["overdue"], types), (&json!(false), vec!["task.created".into(), "task.read".into()]));
    server.pass(1).await.expect("the timers");
    let (task, types) = task_and_events(&server, &id).await;
    assert_eq!((&task["overdue"], &task["unread"], &task["status"]), (&json!(true), &json!(true), &json!("pending")));
    assert_eq!(types.last().map(String::as_str), Some("task.overdue"));
    server.pass(3_600 * SECOND).await.expect("the timers");
    assert_eq!(task_and_events(&server, &id).await.1.len(), types.len(), "there is one event per due date");
    // A task with a new due date can become overdue again. Assigning the same due date has no effect.
    let later = json!({"agent_id": DRAFTER, "due_at": "2026-01-01T02:00:00Z"});
    let moved = act(&server, &id, "assign", later.clone()).await;
    assert_eq!((&moved["overdue"], &moved["due_at"]), (&json!(false), &json!("2026-01-01T02:00:00.000Z")));
    assert_eq!(act(&server, &id, "assign", later).await["version"], moved["version"]);
    server.pass(3_600 * SECOND).await.expect("the timers");
    let (task, types) = task_and_events(&server, &id).await;
    assert_eq!(
        (&task["overdue"], types.iter().filter(|event_type| *event_type == "task.overdue").count()),
        (&json!(true), 2)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_that_is_approved_before_its_due_date_does_not_become_overdue() {
    let server = server().await;
    let id = task_with(&server, DRAFTER, &json!({"due_at": "2026-01-01T00:01:00Z"})).await;
    let ended = act(&server, &id, "approve", json!({})).await;
    server.pass(3_600 * SECOND).await.expect("the timers");
    assert_eq!(task_and_events(&server, &id).await.0["version"], ended["version"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn escalation_steps_are_taken_once_and_in_order() {
    let server = server().await;
    let owner = get(&server, "/workspace").await.1["owner_id"].as_str().expect("an owner").to_owned();
    let (_, passing) = post(&server, "/agents", &json!({"name": "Passing"})).await;
    let passing = passing["id"].as_str().expect("an id").to_owned();
    let steps = json!([
        {"after": 60, "priority": "high"},
        {"after": "2m", "to": {"agent_id": HELPER}, "priority": "low"},
        {"after": "PT3M", "to": format!("agent:{passing}")},
        {"after": "1h", "to": {"user_id": owner}, "priority": "urgent"},
    ]);
    let body = json!({"due_at": "2026-01-01T00:01:00Z", "metadata": {"review": {"escalate": steps}}});
    let id = task_with(&server, DRAFTER, &body).await;
    let workspace = server.workspace("owner").await.expect("the workspace");
    workspace.writer.delete_agent(&passing, StreamExpectation::Any, None).await.expect("deleted");
    act(&server, &id, "claim", json!({"agent_id": DRAFTER, "lease_seconds": 600})).await;
    let (_, feed) = get(&server, &format!("/agents/{HELPER}/events")).await;
    assert_eq!(feed["data"], json!([]));
    server.pass(120 * SECOND).await.expect("the timers");
    let (task, types) = task_and_events(&server, &id).await;
    assert_eq!(types[2..], ["task.overdue", "task.escalated"]);
    // The priority rises, and the agent keeps the task.
    assert_eq!((&task["priority"], &task["status"]), (&json!("high"), &json!("in_progress")));
    server.pass(60 * SECOND).await.expect("the timers");
    let (task, _) = task_and_events(&server, &id).await;
    assert_eq!((&task["priority"], &task["status"]), (&json!("high"), &json!("pending")), "no step lowers a priority");
    assert_eq!(
        (&task["assignee_id"], &task["claimed_by"], &task["escalated"]),
        (&json!(HELPER), &json!(null), &json!(2))
    );
    server.pass(60 * SECOND).await.expect("the timers");
    let (task, _) = task_and_events(&server, &id).await;
    assert_eq!(
        (&task["assignee_id"], &task["escalated"]),
        (&json!(owner), &json!(3)),
        "the owner gets the task of an agent who has left"
    );
    server.pass(86_400 * SECOND).await.expect("the timers");
    let (task, types) = task_and_events(&server, &id).await;
    assert_eq!((&task["assignee_type"], &task["assignee_id"]), (&json!("user"), &json!(owner)));
    assert_eq!((&task["priority"], types.len()), (&json!("urgent"), 7));
    // Both agents got events: the first agent lost the task, and the second agent got the task and lost it.
    for (agent, last) in [(DRAFTER, "task.unassigned"), (HELPER, "task.unassigned")] {
        let (_, feed) = get(&server, &format!("/agents/{agent}/events")).await;
        let received: Vec<&str> =
            feed["data"].as_array().into_iter().flatten().filter_map(|event| event["event"].as_str()).collect();
        assert_eq!(received.last(), Some(&last), "{agent}: {feed}");
        assert!(agent == HELPER || received.contains(&"task.overdue"), "{agent}: {feed}");
        assert!(agent == DRAFTER || received.contains(&"task.assigned"), "{agent}: {feed}");
    }
}

async fn engine(store: Store, clock: &Arc<FixedClock>) -> Arc<Engine> {
    let plugins = agents(&AGENTS.map(str::to_owned)).expect("agents");
    Engine::open(store, clock.clone() as Arc<dyn Clock>, EngineSettings::default(), plugins).await.expect("an engine")
}

/// Returns the number of events of a type in a task's stream.
async fn counted(client: &Handles, id: &str, event_type: &str) -> usize {
    let limit = EventLimit::events(100);
    let stream = client.reader.stream(id, None, limit, ReadDirection::Forward).await.expect("a stream").items;
    stream.iter().filter(|event| *event.event_type == *event_type).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn each_escalation_step_is_taken_once_with_two_servers_and_after_a_restart() {
    let clock = Arc::new(FixedClock::default());
    let store = Store::connect("mem://").await.expect("a store");
    let engines = [engine(store.share(), &clock).await, engine(store.share(), &clock).await];
    let key = engines[0].first_start(None).await.expect("a start").expect("an empty store").key;
    let clients =
        [enter(&engines[0], &key).await.expect("a workspace"), enter(&engines[1], &key).await.expect("a workspace")];
    let step =
        |after: i64| Stored::from(Object::from_iter([("after", Stored::Int(after)), ("priority", "high".into())]));
    let review = Object::from_iter([("escalate", Stored::from(vec![step(10), step(20), step(3_600)]))]);
    let new = NewTask {
        title: "Draft it".into(),
        due_at: Some(clock.now_ms() + 10 * SECOND),
        metadata: Object::from_iter([("review", review)]),
        ..NewTask::default()
    };
    let mut ids = Vec::new();
    for round in 0..10 {
        ids.push(clients[round % 2].writer.create_task(new.clone()).await.expect("a task").0.id.to_string());
    }
    for client in &clients {
        client.reader.task(&ids[9]).await.expect("known to both");
    }
    clock.advance(60 * SECOND);
    for engine in &engines {
        engine.deadlines_passed().await;
    }
    for id in &ids {
        let found = [counted(&clients[0], id, "task.overdue").await, counted(&clients[0], id, "task.escalated").await];
        assert_eq!(found, [1, 2], "{id}");
    }
    drop(clients);
    for engine in engines {
        engine.close().await;
    }
    clock.advance(3_600 * SECOND);
    let again = engine(store.share(), &clock).await;
    let client = enter(&again, &key).await.expect("the workspace");
    again.deadlines_passed().await;
    for id in &ids {
        let found = [counted(&client, id, "task.overdue").await, counted(&client, id, "task.escalated").await];
        assert_eq!(found, [1, 3], "{id}");
    }
}

/// Returns a store that no server has open, the owner's key, and the id of a task that an agent claimed for 60 seconds.
async fn left_claimed(clock: &Arc<FixedClock>) -> (Store, String, String) {
    let store = Store::connect("mem://").await.expect("a store");
    let before = engine(store.share(), clock).await;
    let key = before.first_start(None).await.expect("a start").expect("an empty store").key;
    let client = enter(&before, &key).await.expect("a workspace");
    let assignee = Some(Assignee::Agent(DRAFTER.into()));
    let new = NewTask { title: "Draft it".into(), assignee, ..NewTask::default() };
    let id = client.writer.create_task(new).await.expect("a task").0.id.to_string();
    let worker = Claimant::new(Some(DRAFTER.into()), None);
    let claim = AgentAction::Claim { seconds: 60, instance: None };
    client
        .writer
        .as_agent_writer()
        .work_on_task(&id, worker, claim, StreamExpectation::Any, None)
        .await
        .expect("claimed");
    drop(client);
    before.close().await;
    (store, key, id)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_that_expires_while_no_server_runs_does_not_count_as_an_attempt() {
    let clock = Arc::new(FixedClock::default());
    let (store, key, id) = left_claimed(&clock).await;
    clock.advance(3_600 * SECOND);
    let after = engine(store.share(), &clock).await;
    let client = enter(&after, &key).await.expect("the workspace");
    let status = async || {
        let task = client.reader.task(&id).await.expect("the task");
        let text = |name: &str| task.state.get(name).and_then(|value| value.as_str()).map(str::to_owned);
        (text("status").expect("a status"), task.state.get("attempt").and_then(|value| value.as_int()))
    };
    // A lease starts again when the server starts, so that the agent has time to send a heartbeat.
    after.deadlines_passed().await;
    assert_eq!(status().await, ("in_progress".to_owned(), Some(1)));
    clock.advance(60 * SECOND);
    after.deadlines_passed().await;
    assert_eq!(status().await, ("pending".to_owned(), Some(1)));
    // A lease that ends while a server runs counts as an attempt.
    let claim = AgentAction::Claim { seconds: 60, instance: None };
    let worker = Claimant::new(Some(DRAFTER.into()), None);
    client
        .writer
        .as_agent_writer()
        .work_on_task(&id, worker, claim, StreamExpectation::Any, None)
        .await
        .expect("claimed");
    clock.advance(60 * SECOND);
    after.deadlines_passed().await;
    assert_eq!(status().await, ("pending".to_owned(), Some(2)));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_returns_after_a_restart_keeps_its_tasks() {
    let clock = Arc::new(FixedClock::default());
    let (store, key, id) = left_claimed(&clock).await;
    clock.advance(3_600 * SECOND);
    let after = engine(store.share(), &clock).await;
    let client = enter(&after, &key).await.expect("the workspace");
    after.deadlines_passed().await;
    let renewed = client.writer.renew_leases(vec![DRAFTER.into()]).await.expect("renewed");
    assert_eq!(renewed.iter().filter(|lease| lease.until.is_some()).count(), 1);
    clock.advance(60 * SECOND - 1);
    after.deadlines_passed().await;
    let task = client.reader.task(&id).await.expect("the task");
    assert_eq!(task.state.get("status").and_then(|value| value.as_str()), Some("in_progress"));
}

#[tokio::test(flavor = "multi_thread")]
async fn leases_expire_on_time_after_the_clock_was_set_back() {
    let server = server().await;
    let id = task(&server, DRAFTER).await;
    server.clock.advance(-3_600 * SECOND);
    act(&server, &id, "claim", json!({"agent_id": DRAFTER, "lease_seconds": 60})).await;
    server.pass(60 * SECOND).await.expect("the timers");
    let (task, types) = task_and_events(&server, &id).await;
    assert_eq!((&task["status"], &task["attempt"]), (&json!("pending"), &json!(2)));
    assert_eq!(types.last().map(String::as_str), Some("task.expired"));
}

/// Waits until a condition holds.
async fn until(is_so: impl AsyncFn() -> bool) {
    let waiting = async {
        while !is_so().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), waiting).await.expect("the condition holds in time");
}

#[tokio::test(flavor = "multi_thread")]
async fn lease_records_are_removed_when_their_tasks_are_completed() {
    let server = server().await;
    let workspace = server.workspace("owner").await.expect("the workspace");
    let log = server.store.workspace(&workspace.reader.record().id).await.expect("the store");
    let (ended, open) = (task(&server, DRAFTER).await, task(&server, DRAFTER).await);
    for id in [&ended, &open] {
        act(&server, id, "claim", json!({"agent_id": DRAFTER, "lease_seconds": 600})).await;
    }
    workspace.writer.renew_leases(vec![DRAFTER.into()]).await.expect("renewed");
    assert_eq!(log.leased_tasks().await.expect("rows").len(), 2);
    act(&server, &ended, "complete", json!({"agent_id": DRAFTER, "review": false})).await;
    let only = |rows: Vec<String>| rows == [open.clone()];
    until(async || only(log.leased_tasks().await.expect("rows").iter().map(ToString::to_string).collect())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn presence_records_are_removed_with_their_agent() {
    let server = server().await;
    let workspace = server.workspace("owner").await.expect("the workspace");
    let log = server.store.workspace(&workspace.reader.record().id).await.expect("the store");
    let (_, agent) = post(&server, "/agents", &json!({"name": "Passing"})).await;
    let id = agent["id"].as_str().expect("an id").to_owned();
    let (status, _) = post(&server, "/agents/heartbeat", &json!({"agent_ids": [id]})).await;
    assert_eq!(status, 200);
    let kept = async || -> Vec<String> {
        let rows = log.read_presence().await.expect("rows");
        rows.into_iter().map(|(agent, _)| agent.to_string()).collect()
    };
    until(async || kept().await.contains(&id)).await;
    workspace.writer.delete_agent(&id, StreamExpectation::Any, None).await.expect("deleted");
    assert!(!kept().await.contains(&id));
}
