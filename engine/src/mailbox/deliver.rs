//! Answers of scripted agents: output, a refusal or a failure. A delivery needs no claim and is checked like all other
//! actions on tasks.

use super::artifacts::versions;
use super::decision::{advance, event, find, resolution, state_conflict};
use super::effect;
use crate::append::view::View;
use crate::error::Result;
use crate::model::event::NewEvent;
use crate::model::task::content::{ArtifactDraft, AuthorRole, Message, Stamp};
use crate::model::task::record::field;
use crate::model::task::transition::Circumstances;
use crate::model::task::{Act, Status, Task, TaskEvent, Verb};
use crate::model::value::{Object, Value};

/// The answer of a scripted agent to its task.
#[derive(Debug, Clone)]
pub enum ScriptedAnswer {
    Output {
        drafts: Vec<ArtifactDraft>,
        message: Option<Message>,
        /// Whether the agent delivers the output without a review. The effects of such output are appended with the
        /// delivery. If the task requires a review, or already has effects, the output still needs a review.
        unreviewed: bool,
        /// Whether the output comes from a replayed step. A task that has failed accepts only replayed output.
        is_replayed: bool,
    },
    /// The agent declines the task. The task then waits for another assignee.
    Declined { reason: Message },
    /// The agent's plugin failed and is not retried.
    GivenUp { error: String },
}

/// The answer of a scripted agent, with the id, the time and the metadata of the event that records the answer.
#[derive(Debug, Clone)]
pub struct ScriptedOutput {
    pub task_id: String,
    pub answer: ScriptedAnswer,
    /// The stamp of the output, derived from the event that caused the work. Repeated work therefore produces the same
    /// ids.
    pub stamp: Stamp,
    /// The id of the agent, which is the author of the message.
    pub agent_id: String,
    pub metadata: Object,
    pub event_id: String,
    pub occurred_at: i64,
}

impl ScriptedOutput {
    /// Returns the approximate size of the delivery's content, in bytes.
    pub fn size_bytes(&self) -> usize {
        match &self.answer {
            ScriptedAnswer::Output { drafts, message, .. } => {
                let drafts: usize = drafts.iter().map(ArtifactDraft::size_bytes).sum();
                drafts + message.as_ref().map_or(0, Message::size_bytes)
            }
            ScriptedAnswer::Declined { reason } => reason.size_bytes(),
            ScriptedAnswer::GivenUp { error } => error.len(),
        }
    }

    /// Sets the id, the time and the metadata of the delivery on an event of the task, and returns the event.
    fn event(&self, event: NewEvent) -> NewEvent {
        NewEvent {
            metadata: self.metadata.clone(),
            event_id: Some(self.event_id.clone()),
            occurred_at: Some(self.occurred_at),
            derived: true,
            ..event
        }
    }

    fn message(&self, message: &Message) -> Value {
        let author = Stamp { by: self.agent_id.clone(), ..self.stamp.clone() };
        vec![message.entry(AuthorRole::Agent, &author)].into()
    }
}

/// Returns the event of the delivery, followed by the effects that need no approval.
pub fn decide(view: &View<'_>, delivery: &ScriptedOutput) -> Result<Vec<NewEvent>> {
    let found = find(view.aggregate(&delivery.task_id), &delivery.task_id)?;
    let task = Task::new(&found);
    match &delivery.answer {
        ScriptedAnswer::Output { drafts, message, unreviewed, is_replayed } => {
            let circumstances =
                Circumstances { unreviewed: *unreviewed, is_replayed: *is_replayed, ..Circumstances::default() };
            delivered(view, &task, delivery, drafts, message.as_ref(), circumstances)
        }
        ScriptedAnswer::Declined { reason } => Ok(vec![declined(&task, delivery, reason)?]),
        ScriptedAnswer::GivenUp { error } => {
            let next = held(&task, delivery, Verb::GiveUp, Circumstances::default())?;
            let resolution = resolution("fail", &delivery.agent_id, delivery.stamp.at_ms, ("error", Some(error)));
            let fields = Object::from_iter([(field::RESOLUTION, resolution), (field::UNREAD, true.into())]);
            Ok(vec![delivery.event(event(&task, TaskEvent::Failed, next, fields))])
        }
    }
}

/// Returns the status after an action of the agent. Fails if the task is no longer assigned to the agent.
fn held(task: &Task<'_>, delivery: &ScriptedOutput, verb: Verb, circumstances: Circumstances) -> Result<Status> {
    let act = Act::Agent(verb);
    match task.assigned_agent() == Some(&delivery.agent_id) {
        true => advance(task, act, circumstances),
        false => Err(state_conflict(task, act)),
    }
}

/// Returns the event that takes a declined task away from its agent. The task then waits for another assignee.
fn declined(task: &Task<'_>, delivery: &ScriptedOutput, reason: &Message) -> Result<NewEvent> {
    let next = held(task, delivery, Verb::Decline, Circumstances::default())?;
    let fields = [
        (field::ASSIGNEE_TYPE, Value::Null),
        (field::ASSIGNEE_ID, Value::Null),
        (field::ATTEMPT, 1.into()),
        (field::MESSAGES, delivery.message(reason)),
        (field::UNREAD, true.into()),
    ];
    let mut event = delivery.event(event(task, TaskEvent::Unassigned, next, Object::from_iter(fields)));
    event.metadata.push("previous_assignee_type", task.text(field::ASSIGNEE_TYPE).map(Value::from));
    event.metadata.push("previous_assignee_id", task.text(field::ASSIGNEE_ID).map(Value::from));
    Ok(event)
}

/// Returns the event of delivered output, followed by the effects that need no approval. Omits effects on deleted
/// aggregates, because a delivery must not restore aggregates.
fn delivered(
    view: &View<'_>,
    task: &Task<'_>,
    delivery: &ScriptedOutput,
    drafts: &[ArtifactDraft],
    message: Option<&Message>,
    circumstances: Circumstances,
) -> Result<Vec<NewEvent>> {
    let stamp = &delivery.stamp;
    // A completion appends only the effects of the delivery. Earlier effects wait for an approval.
    let circumstances = Circumstances { unreviewed: circumstances.unreviewed && !task.has_effects(), ..circumstances };
    let next = held(task, delivery, Verb::Deliver, circumstances)?;
    let artifacts = versions(view, task, drafts, stamp)?;
    let mut fields = Object::from_iter([(field::ARTIFACTS, artifacts.clone()), (field::UNREAD, true.into())]);
    fields.push_some(field::MESSAGES, message.map(|message| delivery.message(message)));
    let kind = match next {
        Status::Completed => {
            fields.push(field::RESOLUTION, resolution("complete", &delivery.agent_id, stamp.at_ms, ("", None)));
            TaskEvent::Completed
        }
        _ => {
            if task.get(field::RESOLUTION).is_some() {
                fields.push(field::RESOLUTION, Value::Null);
            }
            TaskEvent::Delivered
        }
    };
    let mut events = vec![delivery.event(event(task, kind, next, fields))];
    if next == Status::Completed {
        let objects: Vec<&Object> = artifacts.as_array().into_iter().flatten().filter_map(Value::as_object).collect();
        let is_deleted = |event: &NewEvent| view.aggregate(&event.aggregate_id).is_some_and(|about| about.deleted);
        let effects = effect::events(view, task, &objects, true)?.into_iter().filter(|event| !is_deleted(event));
        let occurred_at = Some(delivery.occurred_at);
        events.extend(effects.map(|effect| {
            let mut metadata = delivery.metadata.clone();
            effect.metadata.iter().skip(1).for_each(|(name, value)| drop(metadata.insert(name.clone(), value.clone())));
            NewEvent { metadata, occurred_at, ..effect }
        }));
    }
    Ok(events)
}
