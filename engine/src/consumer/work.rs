//! Work: a scripted agent answers its task.

use std::sync::Arc;

use rustc_hash::FxHashSet;

use super::dispatch::{caused_by, derived_id};
use super::event_context::{EventContext, FollowerView};
use super::mentions::Mentions;
use super::roster::Roster;
use crate::core::State;
use crate::core::plugins::{PluginIndex, Plugins};
use crate::hook::{Hook, Outcome, Plugin, Work};
use crate::model::aggregate::Aggregate;
use crate::model::builtin::TASK;
use crate::model::event::NewEvent;
use crate::model::facts::{Artifact, Product};
use crate::model::graph::Direction;
use crate::model::id::AggregateId;
use crate::model::value::{Object, Value};
use crate::resident::graph::{StateView, Walk};

/// The agent's field that names the plugin by which it works.
pub const PLUGIN: &str = "plugin";
/// Nodes that are told of at most.
const RELATED: usize = 200;

/// Everything a scripted agent is given for a task.
pub struct WorkInput {
    /// The event that made the task.
    pub context: Arc<EventContext>,
    task: Value,
    messages: Vec<Value>,
    aggregate: Option<Value>,
    related: Vec<Value>,
    now_ms: i64,
}

/// The plugin whose work an event asks for: a task was made for its agent.
pub fn worker(plugins: &Plugins, roster: &Roster, context: &EventContext) -> Option<PluginIndex> {
    if &*context.event.aggregate_type != TASK || context.event.verb() != "created" {
        return None;
    }
    let text = |state: &Object, name: &str| state.get(name).and_then(Value::as_str).map(str::to_owned);
    let assignee = text(&context.after.state, "assignee_id")?;
    let plugin = text(&roster.agent(&assignee)?.state, PLUGIN)?;
    plugins.find(&plugin).filter(|plugin| plugins.about(*plugin).hooks.contains(&Hook::Work))
}

impl WorkInput {
    /// Puts together what the work is about, as of the task's event.
    pub fn prepare(
        state: &State,
        view: &FollowerView<'_>,
        mentions: &mut Mentions,
        context: &Arc<EventContext>,
    ) -> Self {
        let about = subject(context).and_then(|id| view.aggregate(&id));
        let row = |aggregate: &Arc<Aggregate>| Some(aggregate.row(&*view.definition(&aggregate.aggregate_type)?));
        let messages = context.after.state.get("messages").and_then(Value::as_array).unwrap_or_default().to_vec();
        WorkInput {
            context: context.clone(),
            task: context.after.row(&context.definition),
            messages,
            aggregate: about.as_ref().and_then(row),
            related: about.map(|about| related(state, view, mentions, &about)).unwrap_or_default(),
            now_ms: context.event.occurred_at,
        }
    }
}

/// The aggregate that a task is about.
pub fn subject(task: &EventContext) -> Option<Arc<str>> {
    let source = task.after.state.get("source").and_then(Value::as_object);
    source.and_then(|source| source.get("aggregate_id")).and_then(Value::as_str).map(Arc::from)
}

/// Calls the hook.
pub fn call(plugin: &dyn Plugin, input: &WorkInput) -> Outcome<Product> {
    plugin.work(&Work {
        task: &input.task,
        messages: &input.messages,
        aggregate: input.aggregate.as_ref(),
        related: &input.related,
        now_ms: input.now_ms,
    })
}

/// The nodes that the aggregate is linked with, and those of its project whose labels its texts mention.
fn related(state: &State, view: &FollowerView<'_>, mentions: &mut Mentions, about: &Aggregate) -> Vec<Value> {
    let walk = Walk { kinds: Vec::new(), direction: Direction::Both, depth: 1, most: RELATED };
    let near = state.graph.walk(&about.id, &walk).nodes;
    let mut linked: FxHashSet<AggregateId> = near.into_iter().map(|(id, _)| id).collect();
    linked.remove(&about.id);
    // Of those that are mentioned, the linked ones stand there already.
    let mentioned = mentions.find(view, about, RELATED + linked.len());
    let mut ids: Vec<&AggregateId> = linked.iter().chain(mentioned.iter().filter(|id| !linked.contains(*id))).collect();
    ids.truncate(RELATED);
    let mut nodes: Vec<Arc<Aggregate>> = ids.into_iter().filter_map(|id| view.aggregate(id.as_str())).collect();
    nodes.sort_unstable_by_key(|node| node.first_position);
    nodes.iter().filter(|node| !node.deleted).filter_map(|node| show(view, node, linked.contains(&node.id))).collect()
}

fn show(view: &FollowerView<'_>, node: &Aggregate, linked: bool) -> Option<Value> {
    let definition = view.definition(&node.aggregate_type)?;
    let shown = Object::from_iter([
        ("id", Value::from(node.id.text())),
        ("aggregate_type", node.aggregate_type.clone().into()),
        ("label", definition.label_of(&node.state).into()),
        ("slug", node.state.get(crate::model::facts::SLUG).cloned().unwrap_or_default()),
        ("linked", linked.into()),
    ]);
    Some(shown.into())
}

/// The event that delivers a scripted agent's work.
pub fn delivered(context: &EventContext, plugin: &Arc<str>, product: Product) -> NewEvent {
    let assignee = context.after.state.get("assignee_id").cloned().unwrap_or_default();
    let artifacts: Vec<Value> = product
        .artifacts
        .into_iter()
        .enumerate()
        .map(|(number, artifact)| shown(context, plugin, number, artifact))
        .collect();
    let mut payload = Object::from_iter([
        ("status", Value::from(if product.review { "review" } else { "completed" })),
        ("artifacts", artifacts.into()),
    ]);
    if let Some(text) = product.message {
        let part = Object::from_iter([("text", Value::from(text.clone()))]);
        let message = Object::from_iter([
            ("id", Value::from(derived_id(&context.event.event_id, &format!("{plugin}/message"), 0))),
            ("role", "agent".into()),
            ("author", assignee),
            ("parts", vec![part.into()].into()),
            ("text", text.into()),
            ("created_at", Value::Date(context.event.occurred_at)),
        ]);
        payload.push("messages", Value::from(vec![message.into()]));
    }
    NewEvent {
        aggregate_id: context.after.id.to_string(),
        aggregate_type: TASK.into(),
        event_type: format!("{TASK}.delivered"),
        payload,
        metadata: caused_by(&context.event, plugin, 1),
        event_id: Some(derived_id(&context.event.event_id, &format!("{plugin}/work"), 0)),
        occurred_at: Some(context.event.occurred_at),
        derived: true,
        ..NewEvent::default()
    }
}

fn shown(context: &EventContext, plugin: &Arc<str>, number: usize, artifact: Artifact) -> Value {
    let mut shown = Object::from_iter([
        ("id", Value::from(derived_id(&context.event.event_id, &format!("{plugin}/artifact"), number))),
        ("name", artifact.name.into()),
        ("version", Value::Int(1)),
        ("parts", artifact.parts.into()),
        ("created_by", plugin.clone().into()),
        ("created_at", Value::Date(context.event.occurred_at)),
    ]);
    if let Some(effect) = artifact.effect {
        let effect =
            Object::from_iter([("event_type", Value::from(effect.event_type)), ("payload", effect.payload.into())]);
        shown.push("effect", effect);
    }
    shown.into()
}
