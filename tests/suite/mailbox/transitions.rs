//! Tests every action in every status, against the table in `tests/mailbox/transitions.md`.

use std::collections::BTreeMap;
use std::sync::Arc;

use foldwork_engine::Plugins;
use foldwork_engine::hook::{
    Candidates, Failure, FailureKind, Hook, HookOutput, OnError, Outcome, Plugin, PluginAgent, PluginDescription,
    Subscription, WorkInput,
};
use foldwork_engine::model::event::StreamExpectation;
use foldwork_engine::model::facts::{Artifact, Product};
use foldwork_engine::model::task::{Act, Action, Deadline, Status, Verb};
use foldwork_engine::model::value::Object;
use foldwork_engine::workspace::agents::AgentChange;
use foldwork_tests::expectation::{all_well, read, root};
use foldwork_tests::server::{Server, worked};
use serde_json::{Value, json};
use strum::VariantArray;
use tokio::sync::watch;

use super::board::{Answer, DRAFTER, HELPER, bring, get, post, server, task, task_with};

/// A table of `transitions.md`. A row is the state of a task, and a column is an action. Each row maps the names of the
/// columns to the cells of the row.
struct Table {
    rows: Vec<(String, BTreeMap<String, String>)>,
    columns: Vec<String>,
}

impl Table {
    /// Parses the table under a heading.
    fn read(heading: &str) -> Table {
        let text = read(&root().join("tests/mailbox/transitions.md"));
        let (_, section) = text.split_once(&format!("# {heading}\n")).expect("a heading of the file");
        let lines = section.lines().take_while(|line| !line.starts_with('#')).filter(|line| line.starts_with('|'));
        let cells = |line: &str| -> Vec<String> {
            line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect()
        };
        let mut lines = lines.map(cells);
        let columns = lines.next().expect("a head").split_off(1);
        let rows = lines.skip(1).map(|mut cells| {
            let found = cells.split_off(1);
            assert_eq!(found.len(), columns.len(), "cells of the row {cells:?}");
            (cells.remove(0), columns.iter().cloned().zip(found).collect())
        });
        Table { rows: rows.collect(), columns }
    }
}

#[test]
fn the_transition_tables_have_every_status_and_every_act() {
    let mut done: Vec<String> = Vec::new();
    for heading in ["People", "Agents and creators", "Scripted agents and time"] {
        let table = Table::read(heading);
        for status in Status::VARIANTS {
            assert!(table.rows.iter().any(|(row, _)| row == status.name()), "{heading}: no row for {}", status.name());
        }
        done.extend(table.columns.iter().map(|column| column.trim_end_matches('*').to_owned()));
    }
    let people = Action::VARIANTS.iter().copied().map(Act::Person);
    let agents = Verb::VARIANTS.iter().copied().map(Act::Agent);
    let times = [Deadline::Overdue, Deadline::Escalate].map(Act::Time);
    for act in people.chain(agents).chain(times).chain([Act::AssigneeLeft]) {
        assert!(done.iter().any(|column| column == act.name()), "no column for {}", act.name());
    }
    assert_eq!(Deadline::VARIANTS.len(), 4, "the column `later` covers only leases and deferrals");
}

#[tokio::test(flavor = "multi_thread")]
async fn actions_of_people_match_the_table() {
    let (server, table) = (server().await, Table::read("People"));
    let mut failures = Vec::new();
    for (row, cells) in &table.rows {
        for (column, expected) in cells {
            let body = match column.as_str() {
                "edit" => json!({"modifications": {"title": "better"}}),
                "defer" => json!({"for_seconds": 600}),
                "defer*" => json!({"for_seconds": 1200}),
                "ask" | "request_changes" | "answer" => json!({"message": "why?"}),
                "assign" => json!({"assignee_type": "agent", "assignee_id": HELPER}),
                _ => json!({}),
            };
            let path = column.trim_end_matches('*').replace('_', "-");
            check(&server, row, cells, column, &path, &body, expected, &mut failures).await;
        }
    }
    all_well(failures);
}

#[tokio::test(flavor = "multi_thread")]
async fn actions_of_agents_match_the_table() {
    let (server, people) = (server().await, Table::read("People"));
    let mut failures = Vec::new();
    for (row, cells) in &Table::read("Agents and creators").rows {
        let (_, allowed) = people.rows.iter().find(|(name, _)| name == row).expect("the row for people");
        for (column, expected) in cells {
            let body = match column.as_str() {
                "claim" if row.starts_with("in_progress") => json!({"agent_id": HELPER}),
                "claim" => json!({"agent_id": DRAFTER}),
                "message" => json!({"agent_id": DRAFTER, "text": "so it is"}),
                "artifact" => json!({"name": "more", "text": "text"}),
                "complete" => json!({"artifact": {"name": "all", "text": "text"}}),
                "complete*" => json!({"review": false}),
                "request_input" => json!({"message": "which?"}),
                "fail" => json!({"error": "broken"}),
                "fail*" => json!({"error": "busy", "retryable": true}),
                _ => json!({}),
            };
            let path = match column.as_str() {
                "message" => "messages",
                "artifact" => "artifacts",
                "request_input" => "request-input",
                other => other.trim_end_matches('*'),
            };
            check(&server, row, allowed, column, path, &body, expected, &mut failures).await;
        }
    }
    all_well(failures);
}

/// Brings a task into the state of the row, performs the action of the column, and compares the result with the cell.
#[expect(clippy::too_many_arguments, reason = "a cell of the table and everything needed to test it")]
async fn check(
    server: &Server,
    row: &str,
    people: &BTreeMap<String, String>,
    column: &str,
    path: &str,
    body: &Value,
    expected: &str,
    failures: &mut Vec<String>,
) {
    let id = task(server, DRAFTER).await;
    bring(server, &id, DRAFTER, row).await;
    let (_, before) = get(server, &format!("/mailbox/{id}")).await;
    let (status, answer) = post(server, &format!("/mailbox/{id}/{path}"), body).await;
    let (_, after) = get(server, &format!("/mailbox/{id}")).await;
    let wrong = match expected {
        "409" => refused_otherwise(row, people, column, &(status, answer.clone()), &before, &after),
        next => (!(200..300).contains(&status) || after["status"] != next).then(|| format!("the status {next}")),
    };
    // The task must list the same allowed actions as the table.
    let difference =
        wrong.or_else(|| (before["allowed_actions"] != json!(allowed(people))).then(|| "other allowed actions".into()));
    failures
        .extend(difference.map(|wrong| {
            format!("{row}, {column}: expected {wrong}, found {status} {answer} and {}", after["status"])
        }));
}

/// Checks a request that must be rejected. Returns a description of the expected result if the error response is wrong,
/// or if the request changed the task.
fn refused_otherwise(
    row: &str,
    people: &BTreeMap<String, String>,
    column: &str,
    (status, answer): &Answer,
    before: &Value,
    after: &Value,
) -> Option<String> {
    let action = column.trim_end_matches('*');
    let stood = row.split(' ').next().unwrap_or_default();
    let phrase = match action {
        "message" => "add a message to",
        "artifact" => "add an artifact to",
        "request_input" => "request input for",
        "give_up" => "end",
        "request_changes" => "request changes to the output of",
        "ask" => "ask about",
        other => other,
    };
    let expected = json!({
        "error": format!("cannot {phrase} a task that is {stood}"),
        "code": "task_state_conflict",
        "status": stood,
        "action": action,
        "allowed_actions": allowed(people),
        "request_id": answer["request_id"],
    });
    if *status != 409 || *answer != expected {
        return Some(format!("409 {expected}"));
    }
    (before != after).then(|| "no change".into())
}

/// Returns the actions that the table allows people, in the order of [`Action`].
fn allowed(people: &BTreeMap<String, String>) -> Vec<&'static str> {
    let goes = |name: &str| people.get(name).is_some_and(|cell| cell != "409");
    let names = Action::VARIANTS.iter().map(|action| action.name());
    names.filter(|name| goes(name) || goes(&format!("{name}*"))).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn statuses_after_an_hour_match_the_table() {
    let (server, table) = (server().await, Table::read("Scripted agents and time"));
    let mut tasks = Vec::new();
    for (row, cells) in &table.rows {
        let id = task(&server, DRAFTER).await;
        bring(&server, &id, DRAFTER, row).await;
        tasks.push((id, row, &cells["later"]));
    }
    server.pass(3_600_000).await.expect("the timers");
    let mut failures = Vec::new();
    for (id, row, expected) in tasks {
        let (_, after) = get(&server, &format!("/mailbox/{id}")).await;
        if after["status"] != *expected.as_str() {
            failures.push(format!("{row}, later: expected {expected}, found {}", after["status"]));
        }
    }
    all_well(failures);
}

#[tokio::test(flavor = "multi_thread")]
async fn overdue_tasks_match_the_table() {
    let (server, table) = (server().await, Table::read("Scripted agents and time"));
    let mut failures = Vec::new();
    // The due dates pass within half a minute. No lease and no deferral ends in this time.
    let due = json!({"due_at": "2026-01-01T00:00:20Z"});
    let escalated = json!({"due_at": "2026-01-01T00:00:10Z", "metadata": {"review": {"escalate": [
        {"after": 10, "to": {"assignee_type": "agent", "assignee_id": HELPER}, "priority": "urgent"}]}}});
    let mut tasks = Vec::new();
    for (row, cells) in &table.rows {
        for (column, body) in [("overdue", &due), ("escalate", &escalated)] {
            let id = task_with(&server, DRAFTER, body).await;
            bring(&server, &id, DRAFTER, row).await;
            tasks.push((id, row, column, &cells[column]));
        }
    }
    server.pass(20_000).await.expect("the timers");
    for (id, row, column, expected) in tasks {
        let (_, after) = get(&server, &format!("/mailbox/{id}")).await;
        let is_open = after["resolution"].is_null();
        let is_marked = after["overdue"] == json!(is_open) && (!is_open || after["unread"] == json!(true));
        let is_assigned = column == "overdue" || !is_open || after["assignee_id"] == HELPER;
        if after["status"] != *expected.as_str() || !is_marked || !is_assigned {
            failures.push(format!("{row}, {column}: expected {expected}, found {after}"));
        }
    }
    all_well(failures);
}

#[tokio::test(flavor = "multi_thread")]
async fn tasks_of_a_disabled_agent_match_the_table() {
    let (server, table) = (server().await, Table::read("Scripted agents and time"));
    let (mut failures, mut tasks) = (Vec::new(), Vec::new());
    for (row, cells) in &table.rows {
        let id = task(&server, DRAFTER).await;
        bring(&server, &id, DRAFTER, row).await;
        tasks.push((id, row, &cells["hand over"]));
    }
    let workspace = server.workspace("owner").await.expect("the workspace");
    let disabled = AgentChange { is_disabled: Some(true), ..AgentChange::default() };
    workspace.writer.change_agent(DRAFTER, disabled, StreamExpectation::Any).await.map(drop).expect("disabled");
    for (id, row, expected) in tasks {
        let (_, after) = get(&server, &format!("/mailbox/{id}")).await;
        let is_open = after["resolution"].is_null();
        if after["status"] != *expected.as_str() || after["assignee_id"].is_null() != is_open {
            failures.push(format!("{row}, hand over: expected {expected}, found {after}"));
        }
    }
    all_well(failures);
}

/// A plugin that does the work of an agent. When the test allows the plugin to finish, the plugin delivers, declines
/// or fails.
struct Slow {
    about: PluginDescription,
    answer: String,
    go: watch::Receiver<bool>,
}

impl Plugin for Slow {
    fn about(&self) -> &PluginDescription {
        &self.about
    }

    fn work(&self, _: &WorkInput<'_>) -> Outcome<Product> {
        let mut go = self.go.clone();
        while !*go.borrow_and_update() {
            std::thread::yield_now();
        }
        let artifact = Artifact { name: "made".into(), parts: vec![part("text")], effect: None };
        let value = match self.answer.as_str() {
            "deliver" => Product { artifacts: vec![artifact], review: true, ..Product::default() },
            "decline" => Product { declined: Some("not for me".into()), ..Product::default() },
            _ => {
                let (kind, message) = (FailureKind::Thrown, "broken".to_owned());
                return Err(Failure { kind, message, line: Some(3), column: None });
            }
        };
        Ok(HookOutput { value, operations: 0 })
    }
}

fn part(text: &str) -> foldwork_engine::model::value::Value {
    Object::from_iter([("text", text)]).into()
}

fn slow(answer: &str, go: watch::Receiver<bool>) -> Plugins {
    let profile = PluginAgent { description: "Slow.".into(), traits: Vec::new(), capabilities: Object::new() };
    let about = PluginDescription {
        name: "slow".into(),
        version: "1.0.0".into(),
        description: "Answers when the test allows it.".into(),
        hooks: vec![Hook::Work],
        on: Subscription { events: Vec::new(), traits: Vec::new() },
        on_error: OnError::Park,
        settings: Object::new(),
        agent: Some(profile),
        tool: None,
        candidates: Candidates::default(),
    };
    Plugins::new(vec![Arc::new(Slow { about, answer: answer.to_owned(), go })], 1).expect("threads")
}

/// Changes a task while the script works on it. The task's status at the time of the script's output determines the
/// result.
#[tokio::test(flavor = "multi_thread")]
async fn scripted_agents_match_the_table() {
    let mut failures = Vec::new();
    for (row, cells) in &Table::read("Scripted agents and time").rows {
        for (column, event_type) in
            [("deliver", "task.delivered"), ("decline", "task.unassigned"), ("give_up", "task.failed")]
        {
            let (go, gone) = watch::channel(false);
            let server = Server::start_with_native(slow(column, gone)).await.expect("a server");
            let id = task(&server, "agent-slow").await;
            bring(&server, &id, "agent-slow", row).await;
            let (_, before) = get(&server, &format!("/mailbox/{id}")).await;
            go.send_replace(true);
            worked(&server.workspace("owner").await.expect("the workspace")).await.expect("the work is done");
            let (_, after) = get(&server, &format!("/mailbox/{id}")).await;
            let expected = &cells[column];
            let count = |task: &Value| {
                let timeline = task["timeline"].as_array().into_iter().flatten();
                timeline.filter(|entry| entry["event_type"] == event_type).count()
            };
            // The agent works twice on a task with an open question. The second output comes too late.
            let answered = before["status"] != *expected.as_str() || (column == "decline" && row == "pending");
            if after["status"] != *expected.as_str() || count(&after) - count(&before) != usize::from(answered) {
                failures.push(format!("{row}, {column}: expected {expected}, found {after}"));
            }
            if answered && column == "decline" && !after["assignee_id"].is_null() {
                failures.push(format!("{row}, decline: the task is still assigned: {after}"));
            }
            if answered
                && column == "give_up"
                && after["resolution"]["error"] != "the plugin slow failed: broken (line 3)"
            {
                failures.push(format!("{row}, give_up: the task has no reason: {after}"));
            }
            let (_, parked) = get(&server, "/parked").await;
            let is_parked = parked["data"].as_array().is_some_and(|data| !data.is_empty());
            assert_eq!(is_parked, column == "give_up", "{row}, {column}");
        }
    }
    all_well(failures);
}
