//! Tests a plugin that is removed from the configuration and added again. While the plugin is removed, its facts, edges
//! and labels are hidden, and its agent gets no work.

use std::collections::BTreeMap;
use std::sync::Arc;

use foldwork_engine::clock::SystemClock;
use foldwork_engine::error::ErrorCode;
use foldwork_engine::model::agent::AgentStatus;
use foldwork_engine::model::event::{NewEvent, StreamExpectation};
use foldwork_engine::model::facts::Assignee;
use foldwork_engine::model::graph::Direction;
use foldwork_engine::model::value::Value;
use foldwork_engine::workspace::mailbox::tasks::NewTask;
use foldwork_engine::workspace::query::Query;
use foldwork_engine::workspace::search::SearchRequest;
use foldwork_engine::{Engine, EngineSettings, Error, Plugins, Store};
use foldwork_plugins::limits::CallLimits;
use foldwork_tests::expectation::root;
use foldwork_tests::handles::{Handles, enter};
use foldwork_tests::server::worked;

/// Opens an engine with plugins from `tests/plugins`.
async fn engine(store: &Store, enabled: &[&str]) -> Arc<Engine> {
    let enabled: Vec<String> = enabled.iter().map(|name| (*name).to_owned()).collect();
    // Debug builds on a busy machine are slow.
    let limits = CallLimits { deadline_ms: 10_000, ..CallLimits::default() };
    let loaded = foldwork_plugins::load(&enabled, &root().join("tests/plugins"), &BTreeMap::new(), limits);
    let plugins = Plugins::new(loaded.expect("plugins"), 2).expect("threads");
    Engine::open(store.share(), Arc::new(SystemClock), EngineSettings::default(), plugins).await.expect("an engine")
}

async fn append(workspace: &Handles, id: &str, payload: &str) {
    let payload: Value = serde_json::from_str(payload).expect("JSON");
    let event = NewEvent {
        aggregate_id: id.into(),
        aggregate_type: "note".into(),
        event_type: "note.changed".into(),
        payload: payload.as_object().expect("an object").clone(),
        ..NewEvent::default()
    };
    workspace.writer.append_events(vec![event]).await.expect("appended");
    worked(workspace).await.expect("the plugins' turn");
}

/// The visible results of plugins.
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    /// The facts about the note `a`.
    facts: String,
    /// The kinds of the open edges that start at the note `a`.
    edges: Vec<String>,
    /// The notes that a search finds by a label of the plugin `echo`.
    found: Vec<String>,
    parked: Vec<String>,
    parked_count: u64,
}

async fn seen(workspace: &Handles) -> Seen {
    worked(workspace).await.expect("the plugins' turn");
    let reader = &workspace.reader;
    let pipeline = r#"[{"$match": {"aggregate_id": "a"}}, {"$fold": {}}, {"$project": {"_id": 0, "_facts": 1}}]"#;
    let query = Query::new(serde_json::from_str(pipeline).expect("JSON"));
    let facts = serde_json::to_string(&reader.query(query).await.expect("an answer").rows).expect("JSON");
    let around = reader.graph("a", 1, Vec::new(), Direction::Out, false, None).await.expect("a graph");
    let search = SearchRequest { query: "note one".into(), aggregate_type: None, project: None, limit: None };
    let found = reader.search(search).await.expect("an answer").results;
    let parked = reader.list_parked(None, None, 10).await.expect("a list");
    let followers = reader.followers().await.expect("a list");
    assert_eq!(followers.iter().map(|follower| follower.unsettled).sum::<u64>(), 0);
    Seen {
        facts,
        edges: around.edges.iter().map(|edge| edge.kind.to_string()).collect(),
        found: found.iter().filter(|hit| hit.score >= 1.0).map(|hit| hit.aggregate.id.to_string()).collect(),
        parked: parked.iter().map(|step| step.id.text()).collect(),
        parked_count: followers.iter().map(|follower| follower.parked).sum(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn results_of_a_removed_plugin_are_hidden_until_the_plugin_is_enabled_again() {
    const ALL: [&str; 3] = ["echo", "caller", "doorbell"];
    let store = Store::connect("mem://").await.expect("a store");
    let first = engine(&store, &ALL).await;
    let key = first.first_start(None).await.expect("a start").expect("an empty store").key;
    let workspace = enter(&first, &key).await.expect("a workspace");
    let note = serde_json::from_str(r#"{"type_name": "note"}"#).expect("JSON");
    workspace.writer.define_type(&note, false).await.expect("a type");
    append(&workspace, "b", r#"{"slug": "two", "title": "Beta"}"#).await;
    append(&workspace, "a", r#"{"slug": "one", "to": "two", "calls": "Beta"}"#).await;
    append(&workspace, "c", r#"{"slug": "three", "broken": true}"#).await;
    let before = seen(&workspace).await;
    assert_eq!(before.facts, r#"[{"_facts":{"caller":{"calls":1},"echo":{"version":1}}}]"#);
    assert_eq!((before.edges.len(), before.found.len(), before.parked.len(), before.parked_count), (2, 1, 1, 1));
    drop(workspace);
    first.close().await;

    let without = engine(&store, &["caller"]).await;
    let workspace = enter(&without, &key).await.expect("a workspace");
    let hidden = seen(&workspace).await;
    assert_eq!(hidden.facts, r#"[{"_facts":{"caller":{"calls":1}}}]"#);
    assert_eq!((hidden.edges, hidden.found.len()), (vec!["calls".to_owned()], 0));
    assert_eq!((hidden.parked.len(), hidden.parked_count), (0, 0));
    let parked = workspace.reader.list_parked(Some("doorbell"), None, 10).await.expect("a list");
    assert_eq!(parked.len(), 1, "the steps of a removed plugin are listed by its name");
    // New facts of another plugin do not delete the hidden facts.
    append(&workspace, "a", r#"{"calls": null}"#).await;
    assert_eq!(seen(&workspace).await.facts, r#"[{"_facts":{"caller":{"calls":0}}}]"#);
    drop(workspace);
    without.close().await;

    // Without any plugin, all results are hidden.
    let none = engine(&store, &[]).await;
    let workspace = enter(&none, &key).await.expect("a workspace");
    let hidden = seen(&workspace).await;
    assert_eq!((hidden.facts.as_str(), hidden.edges.len()), (r#"[{"_facts":{}}]"#, 0));
    drop(workspace);
    none.close().await;

    let again = engine(&store, &ALL).await;
    let workspace = enter(&again, &key).await.expect("a workspace");
    let after = seen(&workspace).await;
    assert_eq!(after.facts, r#"[{"_facts":{"caller":{"calls":0},"echo":{"version":1}}}]"#);
    assert_eq!(after.edges, ["names"]);
    assert_eq!((after.found, after.parked, after.parked_count), (before.found, before.parked, before.parked_count));
    again.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_agent_of_a_removed_plugin_gets_no_work_and_can_be_deleted() {
    const AGENT: &str = "agent-picky";
    let store = Store::connect("mem://").await.expect("a store");
    let first = engine(&store, &["picky", "echo"]).await;
    let key = first.first_start(None).await.expect("a start").expect("an empty store").key;
    let workspace = enter(&first, &key).await.expect("a workspace");
    let status = async |workspace: &Handles| workspace.reader.agent(AGENT).await.expect("the agent").status;
    assert_eq!(status(&workspace).await, AgentStatus::Active);
    let refused = workspace.writer.delete_agent(AGENT, StreamExpectation::Any, None).await.err();
    assert!(matches!(refused, Some(Error::Conflict { code: ErrorCode::ScriptedAgent, .. })), "{refused:?}");
    drop(workspace);
    first.close().await;

    let without = engine(&store, &["echo"]).await;
    let workspace = enter(&without, &key).await.expect("a workspace");
    assert_eq!(status(&workspace).await, AgentStatus::Offline);
    let assignee = Some(Assignee::Agent(AGENT.into()));
    let task = NewTask { title: "Read it".into(), assignee, ..NewTask::default() };
    let refused = workspace.writer.create_task(task).await.err();
    assert!(matches!(refused, Some(Error::Conflict { code: ErrorCode::AgentDisabled, .. })), "{refused:?}");
    workspace.writer.delete_agent(AGENT, StreamExpectation::Any, None).await.expect("deleted");
    assert!(workspace.reader.agent(AGENT).await.is_err(), "the agent is deleted");
    drop(workspace);
    without.close().await;

    let again = engine(&store, &["picky"]).await;
    let workspace = enter(&again, &key).await.expect("a workspace");
    assert_eq!(status(&workspace).await, AgentStatus::Active);
    drop(workspace);
    again.close().await;
}
