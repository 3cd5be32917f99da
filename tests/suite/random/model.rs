//! Compares each pipeline over the states of a workspace with the same pipeline over `$documents`, which contains the
//! states of a model. The two pipelines return the same rows, before and after a restart. A list of aggregates has as
//! many items as the model has states.

use std::collections::BTreeMap;
use std::sync::Arc;

use foldwork_engine::model::event::NewEvent;
use foldwork_engine::workspace::PageLimit;
use foldwork_engine::workspace::aggregates::AggregateFilter;
use foldwork_engine::workspace::projects::NewProject;
use foldwork_engine::workspace::query::Query;
use foldwork_engine::{Engine, Store};
use foldwork_tests::embedded::{engine, first};
use foldwork_tests::handles::{Handles, enter};
use proptest::prelude::*;
use proptest::test_runner::{TestCaseError, TestRunner};
use serde_json::{Map, Value, json};
use tokio::runtime::Runtime;

use super::{config, failed};

const CUSTOMER: &str = "customer";
const DEAL: &str = "deal";
const PROJECTS: [&str; 2] = ["alpha", "beta"];
/// The number of aggregates of each type in the large case: more than fit into one segment.
const MANY: usize = 4_200;
/// The maximum number of events in one append.
const MAX_EVENTS: usize = 1_000;

/// A change to a workspace.
#[derive(Debug, Clone)]
enum Step {
    Append(Vec<Change>),
    /// Redefines the type of deals. The field `n` then has the fold `max`.
    KeepGreatest,
}

/// An event of one aggregate.
#[derive(Debug, Clone)]
struct Change {
    aggregate_type: &'static str,
    number: usize,
    payload: Map<String, Value>,
}

/// The states that a workspace should have.
#[derive(Default)]
struct Model {
    changes: Vec<Change>,
    keeps_greatest: bool,
    /// The ids of the projects.
    projects: Vec<String>,
}

impl Model {
    /// Returns the project of an aggregate: none, or one of the projects.
    fn project_of(&self, number: usize) -> Option<&str> {
        number.checked_rem(3)?.checked_sub(1).and_then(|place| self.projects.get(place)).map(String::as_str)
    }

    /// Returns the rows of a type.
    fn rows(&self, aggregate_type: &str) -> Value {
        let mut states: BTreeMap<usize, Map<String, Value>> = BTreeMap::new();
        for change in self.changes.iter().filter(|change| change.aggregate_type == aggregate_type) {
            let state = states.entry(change.number).or_default();
            for (name, value) in &change.payload {
                let before = state.get(name).and_then(Value::as_i64);
                match (value, before) {
                    (Value::Array(removed), _) if name == "$unset" => {
                        removed.iter().filter_map(Value::as_str).for_each(|name| drop(state.remove(name)));
                    }
                    (value, Some(before)) if self.keeps_greatest && aggregate_type == DEAL && name == "n" => {
                        let greatest = value.as_i64().map_or(before, |value| value.max(before));
                        state.insert(name.clone(), greatest.into());
                    }
                    _ => drop(state.insert(name.clone(), value.clone())),
                }
            }
        }
        let row = |(number, state): (usize, Map<String, Value>)| {
            let mut row = json!({"_id": id(aggregate_type, number), "project_id": self.project_of(number)});
            row.as_object_mut().expect("an object").extend(state);
            row
        };
        states.into_iter().map(row).collect()
    }
}

fn id(aggregate_type: &str, number: usize) -> String {
    format!("{aggregate_type}-{number}")
}

/// A pipeline over the states of a workspace, and the same pipeline over the rows of the model.
struct Pair {
    states: Value,
    documents: Value,
}

/// Returns the pipelines to compare.
fn pairs(model: &Model) -> Vec<Pair> {
    let (customers, deals) = (model.rows(CUSTOMER), model.rows(DEAL));
    let end = json!({"$project": {"_id": 1, "mail": 1, "n": 1}});
    let by_id = json!({"$sort": {"_id": 1}});
    let mut tails = vec![
        vec![json!({"$group": {"_id": "$mail", "n": {"$sum": 1}, "s": {"$sum": "$n"}}}), by_id.clone()],
        vec![json!({"$group": {"_id": {"mail": "$mail"}, "n": {"$sum": 1}}}), by_id.clone()],
        vec![json!({"$group": {"_id": {"mail": "$mail", "n": "$n"}, "c": {"$count": {}}}}), by_id.clone()],
        vec![json!({"$sort": {"mail": 1, "_id": 1}}), json!({"$limit": 5}), end.clone()],
        vec![json!({"$sort": {"mail": -1, "n": 1, "_id": 1}}), json!({"$limit": 5}), end.clone()],
        vec![json!({"$unwind": "$tags"}), json!({"$group": {"_id": "$tags", "n": {"$sum": "$n"}}}), by_id.clone()],
        vec![json!({"$sortByCount": "$mail"}), json!({"$sort": {"count": 1, "_id": 1}})],
    ];
    let filters = [
        json!({"mail": "a"}),
        json!({"mail": null}),
        json!({"mail": {"$ne": "a"}}),
        json!({"mail": {"$in": ["b", null]}}),
        json!({"mail": {"$exists": false}}),
        json!({"mail": {"$gt": "a"}}),
        json!({"mail": {"$regex": "^a"}}),
        json!({"$or": [{"mail": "c"}, {"n": {"$gte": 2}}]}),
        json!({"tags": "x"}),
        json!({"project_id": model.projects[0]}),
        json!({"project_id": {"$ne": model.projects[1]}}),
        json!({"project_id": null}),
    ];
    tails.extend(filters.into_iter().map(|filter| vec![json!({"$match": filter}), by_id.clone(), end.clone()]));
    let mut pairs = Vec::new();
    for (aggregate_type, rows) in [(CUSTOMER, &customers), (DEAL, &deals)] {
        for tail in &tails {
            pairs.push(pair(aggregate_type, json!({}), rows, json!({}), tail));
        }
        for (place, slug) in PROJECTS.iter().enumerate() {
            let own = &model.projects[place];
            let tail = [json!({"$count": "n"})];
            // A project may be given by its slug, in every form of a filter, before `$fold` and after it.
            for (given, meant) in [(json!(own), json!(own)), (json!(slug), json!(own))] {
                let forms = |project: &Value| {
                    [
                        json!({"project_id": project}),
                        json!({"project_id": {"$ne": project}}),
                        json!({"project_id": {"$in": [project, null]}}),
                        json!({"$or": [{"project_id": project}, {"project_id": "none"}]}),
                        json!({"$expr": {"$eq": ["$project_id", project]}}),
                    ]
                };
                for (given, meant) in forms(&given).into_iter().zip(forms(&meant)) {
                    pairs.push(pair(aggregate_type, given.clone(), rows, meant.clone(), &tail));
                    let after = |filter| [json!({"$match": filter}), json!({"$count": "n"})];
                    let mut both = pair(aggregate_type, json!({}), rows, json!({}), &after(given));
                    both.documents = pair(aggregate_type, json!({}), rows, json!({}), &after(meant)).documents;
                    pairs.push(both);
                }
            }
        }
    }
    // Looks up 40 rows, which is more than the number of rows that are looked up without an index.
    for field in ["mail", "n", "tags"] {
        let lookup = |more: (&str, Value)| {
            let mut lookup = json!({"localField": field, "foreignField": field, "as": "joined"});
            lookup[more.0] = more.1;
            vec![
                json!({"$sort": {"_id": 1}}),
                json!({"$limit": 40}),
                json!({"$lookup": lookup}),
                json!({"$project": {"_id": 1, "n": {"$size": "$joined"}, "s": {"$sum": "$joined.n"}}}),
            ]
        };
        let over_states = pair(CUSTOMER, json!({}), &customers, json!({}), &lookup(("from", json!(DEAL))));
        let documents = json!([{"$documents": deals}]);
        let over_rows = pair(CUSTOMER, json!({}), &customers, json!({}), &lookup(("pipeline", documents)));
        pairs.push(Pair { states: over_states.states, documents: over_rows.documents });
    }
    pairs
}

/// Returns a pair of pipelines: one over the states of a type, and one over `rows`. The first pipeline has the filter
/// `before` in front of `$fold`. The second pipeline has the filter `meant`. Both pipelines end with the stages of
/// `tail`.
fn pair(aggregate_type: &str, before: Value, rows: &Value, meant: Value, tail: &[Value]) -> Pair {
    let own_type = json!({"$match": {"$and": [{"aggregate_type": aggregate_type}, before]}});
    let states = [own_type, json!({"$fold": {}})].into_iter().chain(tail.iter().cloned()).collect();
    let head = [json!({"$documents": rows}), json!({"$match": meant})];
    Pair { states, documents: head.into_iter().chain(tail.iter().cloned()).collect() }
}

async fn rows_of(workspace: &Handles, pipeline: &Value) -> Result<Vec<Value>, TestCaseError> {
    let given = serde_json::from_value(pipeline.clone()).map_err(failed)?;
    let answer = workspace.reader.query(Query::new(given)).await.map_err(failed)?;
    answer.rows.iter().map(|row| serde_json::to_value(row).map_err(failed)).collect()
}

/// Checks that the pipelines of each pair return the same rows. Also checks that the list of the aggregates of each
/// type has as many items as the model has states.
async fn check(workspace: &Handles, model: &Model, when: &str) -> Result<(), TestCaseError> {
    for Pair { states, documents } in pairs(model) {
        let (found, expected) = (rows_of(workspace, &states).await?, rows_of(workspace, &documents).await?);
        prop_assert_eq!(found, expected, "{} {}", when, states);
    }
    for aggregate_type in [CUSTOMER, DEAL] {
        let (mut listed, mut before) = (0, None);
        loop {
            let limit = PageLimit { rows: 200, ..PageLimit::NONE };
            let listing = AggregateFilter { aggregate_type: Some(aggregate_type.to_owned()), project: None };
            let page = workspace.reader.list_aggregates(&listing, before, limit).await.map_err(failed)?;
            listed += page.items.len();
            before = page.next;
            if before.is_none() {
                break;
            }
        }
        prop_assert_eq!(listed, model.rows(aggregate_type).as_array().map_or(0, Vec::len), "{} of {}", when, listed);
    }
    Ok(())
}

/// Performs the steps, and checks all pipelines after each step and after a restart.
async fn play(steps: Vec<Step>) -> Result<(), TestCaseError> {
    let store = Store::connect("mem://").await.map_err(failed)?;
    let one: Arc<Engine> = engine(store.share()).await;
    let (workspace, key) = first(&one).await.map_err(failed)?;
    let mut model = Model::default();
    for name in PROJECTS {
        let new = NewProject { name: name.into(), ..NewProject::default() };
        model.projects.push(workspace.writer.create_project(new).await.map_err(failed)?.0.id.to_string());
    }
    define(&workspace, false).await?;
    for step in steps {
        match step {
            Step::KeepGreatest => {
                model.keeps_greatest = true;
                define(&workspace, true).await?;
            }
            Step::Append(changes) => {
                let event = |change: &Change| -> Result<NewEvent, TestCaseError> {
                    Ok(NewEvent {
                        aggregate_id: id(change.aggregate_type, change.number),
                        aggregate_type: change.aggregate_type.into(),
                        event_type: format!("{}.changed", change.aggregate_type),
                        project: model.project_of(change.number).map(str::to_owned),
                        payload: serde_json::from_value(change.payload.clone().into()).map_err(failed)?,
                        ..NewEvent::default()
                    })
                };
                for changes in changes.chunks(MAX_EVENTS) {
                    let events = changes.iter().map(event).collect::<Result<Vec<_>, _>>()?;
                    workspace.writer.append_events(events).await.map_err(failed)?;
                }
                model.changes.extend(changes);
            }
        }
        check(&workspace, &model, "now").await?;
    }
    drop(workspace);
    one.close().await;
    let two = engine(store.share()).await;
    let workspace = enter(&two, &key).await.map_err(failed)?;
    check(&workspace, &model, "after a restart").await
}

async fn define(workspace: &Handles, keeps_greatest: bool) -> Result<(), TestCaseError> {
    let fold = if keeps_greatest { "max" } else { "last" };
    for definition in [
        json!({"type_name": CUSTOMER}),
        json!({"type_name": DEAL, "fields": [{"name": "n", "type": "integer", "fold": fold}]}),
    ] {
        let definition = serde_json::from_value(definition).map_err(failed)?;
        workspace.writer.define_type(&definition, true).await.map_err(failed)?;
    }
    Ok(())
}

/// Generates a value for the field `mail`: mostly a text, sometimes null or a value of another type.
fn mail() -> impl Strategy<Value = Value> {
    prop_oneof![
        6 => prop::sample::select(vec!["a", "b", "c", "ab"]).prop_map(Value::from),
        2 => Just(Value::Null),
        1 => prop_oneof![Just(json!(7)), Just(json!(2.5)), Just(json!({"a": 1})), Just(json!(true))],
    ]
}

fn payload() -> impl Strategy<Value = Map<String, Value>> {
    let fields = (
        prop::option::of(mail()),
        prop::option::of((-2i64..5).prop_map(Value::from)),
        prop::option::of(prop::collection::vec(prop::sample::select(vec!["x", "y", "z"]), 0..3)),
    );
    let given = fields.prop_map(|(mail, n, tags)| {
        let tags = tags.map(Value::from);
        let named = [("mail", mail), ("n", n), ("tags", tags)];
        named.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
    });
    let removed = prop::sample::select(vec!["mail", "tags"]);
    prop_oneof![
        8 => given,
        1 => removed.prop_map(|name| Map::from_iter([("$unset".to_owned(), json!([name]))])),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let change = (prop::sample::select(vec![CUSTOMER, DEAL]), 0usize..14, payload())
        .prop_map(|(aggregate_type, number, payload)| Change { aggregate_type, number, payload });
    prop_oneof![
        6 => prop::collection::vec(change, 1..30).prop_map(Step::Append),
        1 => Just(Step::KeepGreatest),
    ]
}

#[test]
fn pipelines_over_states_return_the_rows_of_the_reference_model() {
    let runtime = Runtime::new().expect("a runtime");
    let mut runner = TestRunner::new(config(8));
    let result = runner.run(&prop::collection::vec(step(), 1..5), |steps| runtime.block_on(play(steps)));
    if let Err(failure) = result {
        panic!("{failure}");
    }
}

#[test]
fn pipelines_over_many_segments_return_the_rows_of_the_reference_model() {
    let change = |aggregate_type, number: usize| {
        let mail = match number % 4 {
            0 => None,
            1 => Some(Value::Null),
            _ => Some(json!(format!("m{}", number % 50))),
        };
        let fields = [("mail", mail), ("n", Some(json!(number % 7)))];
        let payload = fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect();
        Change { aggregate_type, number, payload }
    };
    let removed = |number| Change {
        aggregate_type: DEAL,
        number,
        payload: Map::from_iter([("$unset".to_owned(), json!(["mail"]))]),
    };
    let all = (0..MANY).flat_map(|number| [change(CUSTOMER, number), change(DEAL, number)]);
    let all = Step::Append(all.collect());
    // The last step removes values after columns were built.
    let steps = vec![all, Step::Append((0..MANY).filter(|number| number % 5 == 2).map(removed).collect())];
    let runtime = Runtime::new().expect("a runtime");
    runtime.block_on(play(steps)).expect("the rows of the model");
}
