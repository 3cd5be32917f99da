//! Work: prepares the input of a scripted agent for its task, and calls the agent's plugin.

use std::sync::Arc;

use rustc_hash::FxHashSet;

use super::attempt::refused_result;
use super::dispatch::derived_id;
use super::mentions::Mentions;
use super::pending_calls::Input;
use super::roster::Roster;
use crate::consumer::event_context::{EventContext, FollowerView};
use crate::hook::{Failure, Hook, Outcome, Plugin, WorkInput};
use crate::mailbox::deliver::{ScriptedAnswer, ScriptedOutput};
use crate::model::aggregate::Aggregate;
use crate::model::builtin::TASK;
use crate::model::depth::{MAX_CONTENT_DEPTH, too_deep};
use crate::model::derivation::{MAX_DEPTH, caused_by, depth_of};
use crate::model::event::Event;
use crate::model::facts::{Artifact, Product};
use crate::model::graph::Direction;
use crate::model::id::AggregateId;
use crate::model::task::content::{ArtifactDraft, Effect, Message, Stamp, check_name};
use crate::model::task::record::field;
use crate::model::task::{Status, Task, TaskEvent};
use crate::model::value::{Object, Value};
use crate::resident::graph::{Kinds, StateView, Traversal};
use crate::state::State;
use crate::state::plugin_host::PluginHost;
use crate::state::plugins::PluginIndex;

/// The field of an agent that contains the name of the plugin that does the agent's work.
pub const PLUGIN: &str = "plugin";
/// The maximum number of related nodes passed to the hook.
const MAX_RELATED: usize = 200;

/// The input of a scripted agent for a task.
pub struct PreparedWork {
    /// The event that made the task wait for its agent.
    pub context: Arc<EventContext>,
    task: Value,
    messages: Vec<Value>,
    aggregate: Option<Value>,
    /// The version of the task's subject that `aggregate` contains, or 0 if the subject does not exist. `None` if the
    /// task has no subject.
    read_version: Option<u64>,
    related: Vec<Value>,
    now_ms: i64,
}

/// Returns the plugin that must be called for a task after this event. This is the plugin of the scripted agent that
/// the task waits for. Returns `None` if the event causes no work.
pub fn worker(plugins: &PluginHost, roster: &Roster, context: &EventContext) -> Option<PluginIndex> {
    if !asks(&context.event) {
        return None;
    }
    let task = Task::new(&context.after);
    if !waits(&task) {
        return None;
    }
    let plugin = roster.agent(task.assigned_agent()?)?.state.get(PLUGIN).and_then(Value::as_str)?;
    plugins.find(plugin).filter(|plugin| plugins.about(*plugin).hooks.contains(&Hook::Work))
}

/// Returns whether a task has a status in which it waits for its agent. Does not check whether the task has an agent.
pub fn waits(task: &Task<'_>) -> bool {
    matches!(task.status(), Status::Pending | Status::AwaitingReply)
}

/// Returns whether an event can make a task wait for its agent.
pub fn asks(event: &Event) -> bool {
    &*event.aggregate_type == TASK && may_need_work(event).unwrap_or(false)
}

fn may_need_work(event: &Event) -> Option<bool> {
    Some(match TaskEvent::parse(&event.event_type)? {
        TaskEvent::Created | TaskEvent::Assigned | TaskEvent::Asked => true,
        TaskEvent::ChangesRequested | TaskEvent::Answered => true,
        TaskEvent::Resumed | TaskEvent::Retried => true,
        // Scripted agents do not claim tasks, so these events do not concern scripted agents.
        TaskEvent::Released | TaskEvent::Expired | TaskEvent::Claimed => false,
        TaskEvent::Unassigned | TaskEvent::Message | TaskEvent::Artifact | TaskEvent::InputRequested => false,
        TaskEvent::Delivered | TaskEvent::Completed | TaskEvent::Failed | TaskEvent::Canceled => false,
        TaskEvent::Approved | TaskEvent::Edited | TaskEvent::Rejected | TaskEvent::Deferred => false,
        TaskEvent::Read | TaskEvent::Unread | TaskEvent::Overdue => false,
        // If an escalation does not name a new assignee, the task's agent already has the task.
        TaskEvent::Escalated => event.payload.contains(field::ASSIGNEE_ID),
    })
}

impl Input for PreparedWork {
    fn context(&self) -> &Arc<EventContext> {
        &self.context
    }

    /// Returns the id of the task's subject, so that the circuit recognizes repeated failures on the same content. Each
    /// task is a separate aggregate, so the ids of tasks would always differ. If the task has no subject, returns the
    /// id of the task.
    fn aggregate_id(&self) -> &str {
        Task::new(&self.context.after).subject().unwrap_or(self.context.event.aggregate_id.as_str())
    }
}

impl PreparedWork {
    /// Prepares the input of the hook `work`. The task has its state after the event. The task's subject and the
    /// related nodes come from `view`.
    pub fn prepare(
        state: &State,
        view: &FollowerView<'_>,
        mentions: &mut Mentions,
        context: &Arc<EventContext>,
    ) -> Self {
        let subject = subject(context);
        let about = subject.as_ref().and_then(|id| view.aggregate(id));
        let row =
            |aggregate: &Arc<Aggregate>| Some(WorkInput::row(aggregate, &*view.definition(&aggregate.aggregate_type)?));
        let messages = context.after.state.get("messages").and_then(Value::as_array).unwrap_or_default().to_vec();
        PreparedWork {
            context: context.clone(),
            task: context.after.row(&context.definition),
            messages,
            aggregate: about.as_ref().and_then(row),
            read_version: subject.map(|_| about.as_ref().map_or(0, |about| about.version)),
            related: about.map(|about| related(state, view, mentions, &about)).unwrap_or_default(),
            now_ms: context.event.occurred_at,
        }
    }
}

/// Returns whether a task still waits for an agent. `task` contains the event that made the task wait for this agent,
/// and the task right after this event.
pub fn is_waiting(state: &State, task: &EventContext) -> bool {
    let agent = Task::new(&task.after).assigned_agent();
    state.folded.get(task.after.id.as_str()).is_some_and(|now| {
        let now = Task::new(&now);
        agent.is_some() && now.assigned_agent() == agent && waits(&now)
    })
}

/// Returns the id of the aggregate that a task is about.
pub fn subject(task: &EventContext) -> Option<Arc<str>> {
    Task::new(&task.after).subject().map(Arc::from)
}

/// Calls the hook `work`. Fails if an artifact of the output is invalid.
pub fn call(plugin: &dyn Plugin, input: &PreparedWork) -> Outcome<Product> {
    let product = plugin.work(&WorkInput {
        task: &input.task,
        messages: &input.messages,
        aggregate: input.aggregate.as_ref(),
        related: &input.related,
        now_ms: input.now_ms,
    })?;
    match product.value.artifacts.iter().enumerate().find_map(|(index, artifact)| Some((index, refused(artifact)?))) {
        Some((index, (place, reason))) => Err(refused_result(format!("product.artifacts[{index}].{place}: {reason}"))),
        None => Ok(product),
    }
}

/// Returns the place of an invalid value in an artifact and the allowed values, or `None` if the artifact is valid. The
/// limits are the same as for a request that sends an artifact.
fn refused(artifact: &Artifact) -> Option<(&'static str, String)> {
    if let Err(allowed) = check_name(&artifact.name) {
        return Some(("name", allowed));
    }
    let is_deep = |value: &Value| !value.nests_within(MAX_CONTENT_DEPTH);
    if artifact.parts.iter().any(is_deep) {
        return Some(("parts", too_deep(MAX_CONTENT_DEPTH)));
    }
    let is_deep = artifact.effect.as_ref().is_some_and(|effect| !effect.payload.nests_within(MAX_CONTENT_DEPTH));
    is_deep.then(|| ("effect.payload", too_deep(MAX_CONTENT_DEPTH)))
}

/// Returns the nodes that are linked with an aggregate, and the nodes of the same project whose labels occur in the
/// aggregate's texts.
fn related(state: &State, view: &FollowerView<'_>, mentions: &mut Mentions, about: &Aggregate) -> Vec<Value> {
    let walk = Traversal { kinds: Kinds::default(), direction: Direction::Both, depth: 1, most: MAX_RELATED };
    let near = state.graph.walk(&about.id, &walk).nodes;
    let mut linked: FxHashSet<AggregateId> = near.into_iter().map(|(id, _)| id).collect();
    linked.remove(&about.id);
    // The mentioned nodes may include linked nodes, so the search requests one additional node for each linked node.
    let mentioned = mentions.find(view, about, MAX_RELATED + linked.len());
    let mut ids: Vec<&AggregateId> = linked.iter().chain(mentioned.iter().filter(|id| !linked.contains(*id))).collect();
    ids.truncate(MAX_RELATED);
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

/// Returns the delivery of a scripted agent's answer to its task. A task that has failed accepts the delivery only if
/// `is_replayed` is set.
pub fn delivery(input: &PreparedWork, plugin: &Arc<str>, product: Product, is_replayed: bool) -> ScriptedOutput {
    let context = &input.context;
    // If a chain of effects that cause further effects is too long, a person must review the next effect.
    let is_long = depth_of(&context.event) >= MAX_DEPTH;
    let has_effect = product.artifacts.iter().any(|artifact| artifact.effect.is_some());
    let draft = |artifact: Artifact| ArtifactDraft {
        name: Some(artifact.name),
        parts: Some(artifact.parts),
        // A script returns its whole output in each call, so an effect that is missing in the output is dropped.
        drops_effect: true,
        effect: artifact.effect.map(|effect| Effect {
            aggregate_id: None,
            event_type: effect.event_type,
            payload: effect.payload,
            expected_version: input.read_version,
        }),
        ..ArtifactDraft::default()
    };
    let answer = match product.declined {
        Some(reason) => ScriptedAnswer::Declined { reason: Message::of_text(&reason) },
        None => ScriptedAnswer::Output {
            drafts: product.artifacts.into_iter().map(draft).collect(),
            message: product.message.as_deref().map(Message::of_text),
            unreviewed: !(product.review || is_long && has_effect),
            is_replayed,
        },
    };
    answered(context, plugin, ANSWERS[0], answer)
}

/// The kinds of a scripted agent's deliveries: `work` for an answer of the hook, and `given_up` for a failure. The id
/// of a delivery depends on the kind.
pub const ANSWERS: [&str; 2] = ["work", "given_up"];

/// Returns the delivery that ends a task with the failure of its scripted agent.
pub fn given_up(context: &EventContext, plugin: &Arc<str>, failure: &Failure) -> ScriptedOutput {
    let place = failure.line.map(|line| format!(" (line {line})")).unwrap_or_default();
    let error = format!("the plugin {plugin} failed: {}{place}", failure.message);
    answered(context, plugin, ANSWERS[1], ScriptedAnswer::GivenUp { error })
}

fn answered(context: &EventContext, plugin: &Arc<str>, what: &str, answer: ScriptedAnswer) -> ScriptedOutput {
    let event = &context.event;
    ScriptedOutput {
        task_id: context.after.id.to_string(),
        answer,
        stamp: Stamp {
            seed: format!("{}/{plugin}", event.event_id),
            by: plugin.to_string(),
            at_ms: event.occurred_at,
            sender: None,
        },
        agent_id: Task::new(&context.after).assigned_agent().unwrap_or_default().to_owned(),
        metadata: caused_by(event, plugin),
        event_id: derived_id(&event.event_id, &format!("{plugin}/{what}"), 0),
        occurred_at: event.occurred_at,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::task::content::text_part;

    #[test]
    fn an_artifact_name_from_a_plugin_is_not_blank_and_has_at_most_200_characters() {
        let artifact = |name: &str| Artifact { name: name.to_owned(), parts: vec![text_part("x")], effect: None };
        assert_eq!(refused(&artifact(&"x".repeat(200))), None);
        for name in [" ", &"x".repeat(201)] {
            let allowed = "expected 1 to 200 characters, not only white space".to_owned();
            assert_eq!(refused(&artifact(name)), Some(("name", allowed)));
        }
    }
}
