//! Tests the removal of members and agents: no task stays assigned to a removed member or agent.

use foldwork_engine::model::access::{Caller, Role};
use foldwork_engine::model::event::StreamExpectation;
use foldwork_engine::model::facts::Assignee;
use foldwork_engine::workspace::mailbox::TaskCommand;
use foldwork_engine::{Error, Writer};
use foldwork_tests::handles::join;
use foldwork_tests::server::Server;
use serde_json::{Value, json};

use super::board::{DRAFTER, HELPER, act, delete, get, post, server, task, task_with};

/// Adds a user of the tests to the first workspace as an editor.
async fn joined(server: &Server, name: &str) -> Caller {
    let workspace = server.workspace("owner").await.expect("the workspace");
    let token = server.key(name).expect("a token").to_owned();
    let email = format!("{name}@example.com");
    join(&server.engine, &workspace.owner, &token, &email, Role::Editor).await.expect("joined")
}

async fn task_of(server: &Server, user: &str) -> String {
    let body = json!({"title": "Read it", "assignee_type": "user", "assignee_id": user});
    let (status, task) = post(server, "/mailbox", &body).await;
    assert_eq!(status, 201, "{task}");
    task["id"].as_str().expect("an id").to_owned()
}

async fn shown(server: &Server, id: &str) -> Value {
    let (status, task) = get(server, &format!("/mailbox/{id}")).await;
    assert_eq!(status, 200, "{task}");
    task
}

#[tokio::test(flavor = "multi_thread")]
async fn open_tasks_of_a_removed_member_are_assigned_to_the_successor_or_unassigned() {
    let server = server().await;
    let owner = server.key("owner").expect("the owner").to_owned();
    let (ada, bob, cleo) = (joined(&server, "ada").await, joined(&server, "bob").await, joined(&server, "cleo").await);
    let (of_ada, of_bob) = (task_of(&server, ada.user_id()).await, task_of(&server, bob.user_id()).await);
    let deferred = task_of(&server, bob.user_id()).await;
    act(&server, &deferred, "defer", json!({"for_seconds": 600})).await;
    let ended = task_of(&server, bob.user_id()).await;
    act(&server, &ended, "reject", json!({})).await;

    let member = |caller: &Caller| format!("/members/{}", caller.user_id());
    for (successor, status) in [("nobody", 400), ("user:nobody", 404), ("agent:nobody", 404)] {
        let path = format!("{}?reassign_to={successor}", member(&bob));
        assert_eq!(delete(&server, &owner, &path).await.0, status, "{successor}");
    }
    let own = format!("{}?reassign_to=user:{}", member(&bob), bob.user_id());
    assert_eq!(delete(&server, &owner, &own).await.0, 400);
    assert_eq!(shown(&server, &of_bob).await["assignee_id"], bob.user_id(), "the assignee is unchanged");

    let to_cleo = format!("{}?reassign_to=user:{}", member(&bob), cleo.user_id());
    assert_eq!(delete(&server, &owner, &to_cleo).await.0, 204);
    for (id, status) in [(&of_bob, "pending"), (&deferred, "deferred")] {
        let task = shown(&server, id).await;
        assert_eq!((&task["assignee_id"], &task["status"]), (&json!(cleo.user_id()), &json!(status)), "{task}");
        let last = task["timeline"].as_array().and_then(|entries| entries.last()).expect("an entry");
        assert_eq!(last["event_type"], "task.assigned");
    }
    assert_eq!(shown(&server, &ended).await["assignee_id"], bob.user_id(), "an ended task keeps its assignee");

    assert_eq!(delete(&server, &owner, &member(&ada)).await.0, 204);
    let task = shown(&server, &of_ada).await;
    assert_eq!((&task["assignee_id"], &task["waiting_on"]), (&Value::Null, &json!("human")), "{task}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_request_returns_the_task_even_if_the_assignee_was_removed() {
    let server = server().await;
    let owner = server.key("owner").expect("the owner").to_owned();
    let bob = joined(&server, "bob").await;
    let steps = json!([{"after": 60, "to": {"user_id": bob.user_id()}}]);
    let body = json!({
        "title": "Read it",
        "assignee_type": "user",
        "assignee_id": bob.user_id(),
        "due_at": "2026-01-01T00:01:00Z",
        "metadata": {"review": {"escalate": steps}},
        "idempotency_key": "of-bob",
    });
    let (status, first) = post(&server, "/mailbox", &body).await;
    assert_eq!(status, 201, "{first}");
    assert_eq!(delete(&server, &owner, &format!("/members/{}", bob.user_id())).await.0, 204);
    let (status, repeated) = post(&server, "/mailbox", &body).await;
    assert_eq!((status, &repeated["id"]), (200, &first["id"]), "{repeated}");
    assert_eq!(repeated["assignee_id"], Value::Null, "{repeated}");
    let other = json!({"title": "Read it", "assignee_type": "user", "assignee_id": bob.user_id()});
    assert_eq!(post(&server, "/mailbox", &other).await.0, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_escalation_to_a_removed_member_goes_to_the_owner() {
    let server = server().await;
    let owner = server.key("owner").expect("the owner").to_owned();
    let bob = joined(&server, "bob").await;
    let steps = json!([{"after": 60, "to": {"user_id": bob.user_id()}, "priority": "urgent"}]);
    let body = json!({"due_at": "2026-01-01T00:01:00Z", "metadata": {"review": {"escalate": steps}}});
    let id = task_with(&server, DRAFTER, &body).await;
    assert_eq!(delete(&server, &owner, &format!("/members/{}", bob.user_id())).await.0, 204);
    server.pass(120_000).await.expect("the timers");
    let task = shown(&server, &id).await;
    let founder = &get(&server, "/workspace").await.1["owner_id"];
    assert_eq!((&task["assignee_id"], &task["priority"]), (founder, &json!("urgent")), "{task}");
    let last = task["timeline"].as_array().and_then(|entries| entries.last()).expect("an entry");
    assert_eq!(last["event_type"], "task.escalated", "{last}");
}

#[tokio::test(flavor = "multi_thread")]
async fn no_task_stays_assigned_to_a_user_who_is_removed_concurrently() {
    for round in 0..10 {
        let server = server().await;
        let bob = joined(&server, "bob").await;
        let workspace = server.workspace("owner").await.expect("the workspace");
        let id = task(&server, DRAFTER).await;
        let to_bob = TaskCommand::Assign { assignee: Some(Assignee::User(bob.user_id().into())), due_at: None };
        let writer: Writer = workspace.writer.clone();
        let (assigned, removed) = tokio::join!(
            writer.act_on_task(&id, to_bob, StreamExpectation::Any),
            workspace.owner.remove_member(bob.user_id(), None),
        );
        removed.expect("removed");
        let refused = assigned.err();
        assert!(refused.is_none_or(|error| matches!(error, Error::NotFound { .. })), "round {round}");
        let assignee = shown(&server, &id).await["assignee_id"].clone();
        assert!(assignee == DRAFTER || assignee.is_null(), "round {round}: {assignee}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_removal_gets_404_and_the_task_stays_unassigned() {
    let server = server().await;
    let owner = server.key("owner").expect("the owner").to_owned();
    let bob = joined(&server, "bob").await;
    let id = task_of(&server, bob.user_id()).await;
    act(&server, &id, "read", json!({})).await;
    let path = format!("/members/{}", bob.user_id());
    assert_eq!(delete(&server, &owner, &path).await.0, 204);
    assert_eq!(delete(&server, &owner, &path).await.0, 404);
    assert_eq!(shown(&server, &id).await["assignee_id"], Value::Null);
}

#[tokio::test(flavor = "multi_thread")]
async fn disabling_an_agent_moves_its_tasks_to_the_successor_without_counting_an_attempt() {
    let server = server().await;
    let workspace = server.workspace("owner").await.expect("the workspace");
    let (held, reviewed) = (task(&server, DRAFTER).await, task(&server, DRAFTER).await);
    act(&server, &held, "claim", json!({"agent_id": DRAFTER, "lease_seconds": 600})).await;
    act(&server, &reviewed, "claim", json!({"agent_id": DRAFTER})).await;
    act(&server, &reviewed, "complete", json!({"artifact": {"name": "a", "text": "b"}})).await;
    let disabled = foldwork_engine::workspace::agents::AgentChange {
        is_disabled: Some(true),
        successor: Some(Assignee::Agent(HELPER.into())),
        ..Default::default()
    };
    workspace.writer.change_agent(DRAFTER, disabled, StreamExpectation::Any).await.map(drop).expect("disabled");
    for (id, status) in [(&held, "pending"), (&reviewed, "review")] {
        let task = shown(&server, id).await;
        assert_eq!((&task["assignee_id"], &task["status"]), (&json!(HELPER), &json!(status)), "{task}");
        assert_eq!((&task["attempt"], &task["claimed_by"]), (&json!(1), &Value::Null), "{task}");
    }
    act(&server, &held, "claim", json!({"agent_id": HELPER})).await;
}
