//! Work: a scripted agent answers its task.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::dispatch::{caused_by, derived_id};
use super::event_context::EventContext;
use super::roster::Roster;
use crate::core::plugins::{PluginIndex, Plugins};
use crate::hook::{Hook, Outcome, Plugin, Work};
use crate::model::aggregate::Aggregate;
use crate::model::builtin::TASK;
use crate::model::event::NewEvent;
use crate::model::facts::{Artifact, Product};
use crate::model::graph::Direction;
use crate::model::id::AggregateId;
use crate::model::value::{Object, Value};
use crate::resident::graph::{Graph, StateView, Walk};

/// The agent's field that names the plugin by which it works.
pub const PLUGIN: &str = "plugin";
/// Nodes that are told of at most.
const RELATED: usize = 200;
/// Shorter labels are words of any text.
const SHORTEST_LABEL: usize = 4;
/// Words of the longest label that is looked for.
const LONGEST_LABEL: usize = 12;

/// Everything a scripted agent is given for a task.
pub struct Job {
    /// The event that made the task.
    pub seen: Arc<EventContext>,
    task: Value,
    messages: Vec<Value>,
    aggregate: Option<Value>,
    related: Vec<Value>,
    now_ms: i64,
}

/// The plugin whose work an event asks for: a task was made for its agent.
pub fn worker(plugins: &Plugins, roster: &Roster, seen: &EventContext) -> Option<PluginIndex> {
    if &*seen.event.aggregate_type != TASK || seen.event.verb() != "created" {
        return None;
    }
    let text = |state: &Object, name: &str| state.get(name).and_then(Value::as_str).map(str::to_owned);
    let assignee = text(&seen.after.state, "assignee_id")?;
    let plugin = text(&roster.agent(&assignee)?.state, PLUGIN)?;
    plugins.find(&plugin).filter(|plugin| plugins.about(*plugin).hooks.contains(&Hook::Work))
}

/// Puts together what the work is about, as of the task's event.
pub fn job(world: &dyn StateView, graph: &Graph, seen: &Arc<EventContext>) -> Job {
    let about = subject(seen).and_then(|id| world.aggregate(&id));
    let row = |aggregate: &Arc<Aggregate>| Some(aggregate.row(&*world.definition(&aggregate.aggregate_type)?));
    let messages = seen.after.state.get("messages").and_then(Value::as_array).unwrap_or_default().to_vec();
    Job {
        seen: seen.clone(),
        task: seen.after.row(&seen.definition),
        messages,
        aggregate: about.as_ref().and_then(row),
        related: about.map(|about| related(world, graph, &about)).unwrap_or_default(),
        now_ms: seen.event.occurred_at,
    }
}

/// The aggregate that a task is about.
pub fn subject(task: &EventContext) -> Option<Arc<str>> {
    let source = task.after.state.get("source").and_then(Value::as_object);
    source.and_then(|source| source.get("aggregate_id")).and_then(Value::as_str).map(Arc::from)
}

pub fn call(plugin: &dyn Plugin, job: &Job) -> Outcome<Product> {
    plugin.work(&Work {
        task: &job.task,
        messages: &job.messages,
        aggregate: job.aggregate.as_ref(),
        related: &job.related,
        now_ms: job.now_ms,
    })
}

/// The nodes that the aggregate is linked with, and those of its project whose labels its texts mention.
fn related(world: &dyn StateView, graph: &Graph, about: &Aggregate) -> Vec<Value> {
    let walk = Walk { kinds: Vec::new(), direction: Direction::Both, depth: 1, most: RELATED };
    let mut linked: FxHashSet<AggregateId> = graph.walk(&about.id, &walk).nodes.into_iter().map(|(id, _)| id).collect();
    linked.remove(&about.id);
    let mentioned = mentioned(world, about);
    let mut ids: Vec<&AggregateId> = linked.iter().chain(mentioned.iter().filter(|id| !linked.contains(*id))).collect();
    ids.truncate(RELATED);
    let mut nodes: Vec<Arc<Aggregate>> = ids.into_iter().filter_map(|id| world.aggregate(id.as_str())).collect();
    nodes.sort_unstable_by_key(|node| node.first_position);
    nodes.iter().filter(|node| !node.deleted).filter_map(|node| show(world, node, linked.contains(&node.id))).collect()
}

fn show(world: &dyn StateView, node: &Aggregate, linked: bool) -> Option<Value> {
    let definition = world.definition(&node.aggregate_type)?;
    let shown = Object::from_iter([
        ("id", Value::from(node.id.text())),
        ("aggregate_type", node.aggregate_type.clone().into()),
        ("label", definition.label_of(&node.state).into()),
        ("slug", node.state.get(crate::model::facts::SLUG).cloned().unwrap_or_default()),
        ("linked", linked.into()),
    ]);
    Some(shown.into())
}

/// Other nodes of the aggregate's project whose labels stand word for word in its texts, oldest first.
fn mentioned(world: &dyn StateView, about: &Aggregate) -> Vec<AggregateId> {
    let mut labels: FxHashMap<String, Vec<(u64, AggregateId)>> = FxHashMap::default();
    for node in world.aggregates() {
        let definition = world.definition(&node.aggregate_type);
        let label = definition.as_ref().and_then(|definition| definition.label_of(&node.state));
        let near = node.project_id == about.project_id && node.id != about.id && !node.deleted;
        if let Some(label) = label.filter(|label| near && label.len() >= SHORTEST_LABEL) {
            labels.entry(words(&label).join(" ")).or_default().push((node.first_position, node.id.clone()));
        }
    }
    let mut found: Vec<(u64, AggregateId)> = Vec::new();
    for text in about.state.iter().filter_map(|(_, value)| value.as_str()) {
        let words = words(text);
        for start in 0..words.len() {
            for run in
                words[start..].iter().take(LONGEST_LABEL).enumerate().map(|(more, _)| &words[start..=start + more])
            {
                found.extend(labels.remove(&run.join(" ")).into_iter().flatten());
            }
        }
    }
    found.sort_unstable();
    found.into_iter().map(|(_, id)| id).collect()
}

fn words(text: &str) -> Vec<String> {
    text.split(|letter: char| !letter.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect()
}

/// The event that delivers a scripted agent's work.
pub fn delivered(seen: &EventContext, plugin: &Arc<str>, product: Product) -> NewEvent {
    let assignee = seen.after.state.get("assignee_id").cloned().unwrap_or_default();
    let artifacts: Vec<Value> = product
        .artifacts
        .into_iter()
        .enumerate()
        .map(|(number, artifact)| shown(seen, plugin, number, artifact))
        .collect();
    let mut payload = Object::from_iter([
        ("status", Value::from(if product.review { "review" } else { "completed" })),
        ("artifacts", artifacts.into()),
    ]);
    if let Some(text) = product.message {
        let part = Object::from_iter([("text", Value::from(text.clone()))]);
        let message = Object::from_iter([
            ("id", Value::from(derived_id(&seen.event.event_id, &format!("{plugin}/message"), 0))),
            ("role", "agent".into()),
            ("author", assignee),
            ("parts", vec![part.into()].into()),
            ("text", text.into()),
            ("created_at", Value::Date(seen.event.occurred_at)),
        ]);
        payload.push("messages", Value::from(vec![message.into()]));
    }
    NewEvent {
        aggregate_id: seen.after.id.to_string(),
        aggregate_type: TASK.into(),
        event_type: format!("{TASK}.delivered"),
        payload,
        metadata: caused_by(&seen.event, plugin, 1),
        event_id: Some(derived_id(&seen.event.event_id, &format!("{plugin}/work"), 0)),
        occurred_at: Some(seen.event.occurred_at),
        ..NewEvent::default()
    }
}

fn shown(seen: &EventContext, plugin: &Arc<str>, number: usize, artifact: Artifact) -> Value {
    let mut shown = Object::from_iter([
        ("id", Value::from(derived_id(&seen.event.event_id, &format!("{plugin}/artifact"), number))),
        ("name", artifact.name.into()),
        ("version", Value::Int(1)),
        ("parts", artifact.parts.into()),
        ("created_by", plugin.clone().into()),
        ("created_at", Value::Date(seen.event.occurred_at)),
    ]);
    if let Some(effect) = artifact.effect {
        let effect =
            Object::from_iter([("event_type", Value::from(effect.event_type)), ("payload", effect.payload.into())]);
        shown.push("effect", effect);
    }
    shown.into()
}
