//! Deliveries of scripted agents. A delivery needs no claim and is checked like all other actions on tasks.

use super::artifacts::versions;
use super::decision::{advance, event, find, resolution};
use super::effect;
use crate::core::view::View;
use crate::error::Result;
use crate::model::event::NewEvent;
use crate::model::task::content::{Draft, Message, Role, Stamp};
use crate::model::task::record::field;
use crate::model::task::transition::Circumstances;
use crate::model::task::{Act, Status, Task, TaskEvent, Verb};
use crate::model::value::{Object, Value};

/// The output of a scripted agent for a task.
#[derive(Debug, Clone)]
pub struct Delivery {
    pub task_id: String,
    pub drafts: Vec<Draft>,
    pub message: Option<Message>,
    /// Whether the output needs no review. The effects of unreviewed output are appended together with the delivery.
    pub unreviewed: bool,
    /// The stamp, derived from the event that caused the work, so that repeated work produces the same ids.
    pub stamp: Stamp,
    /// The id of the agent, which is the author of the message.
    pub agent_id: String,
    pub metadata: Object,
    pub event_id: String,
    pub occurred_at: i64,
}

impl Delivery {
    /// Returns the approximate size of the delivery's content, in bytes.
    pub fn size_bytes(&self) -> usize {
        let drafts: usize = self.drafts.iter().map(Draft::size_bytes).sum();
        drafts + self.message.as_ref().map_or(0, Message::size_bytes)
    }
}

/// Returns the event of the delivery, followed by the effects that need no approval. Omits effects on deleted
/// aggregates, because nobody has requested to restore these aggregates.
pub fn decide(view: &View<'_>, delivery: &Delivery) -> Result<Vec<NewEvent>> {
    let Delivery { stamp, unreviewed, .. } = delivery;
    let found = find(view.aggregate(&delivery.task_id), &delivery.task_id)?;
    let task = Task::new(&found);
    let circumstances = Circumstances { unreviewed: *unreviewed, ..Circumstances::default() };
    let next = advance(&task, Act::Agent(Verb::Deliver), circumstances)?;
    let artifacts = versions(view, &task, &delivery.drafts, stamp)?;
    let mut fields = Object::from_iter([(field::ARTIFACTS, artifacts.clone()), (field::UNREAD, true.into())]);
    if let Some(message) = &delivery.message {
        let author = Stamp { by: delivery.agent_id.clone(), ..stamp.clone() };
        fields.push(field::MESSAGES, vec![message.entry(Role::Agent, &author)]);
    }
    let kind = match next {
        Status::Completed => {
            fields.push(field::RESOLUTION, resolution("complete", &delivery.agent_id, stamp.at_ms, ("", None)));
            TaskEvent::Completed
        }
        _ => TaskEvent::Delivered,
    };
    let mut events = vec![NewEvent {
        metadata: delivery.metadata.clone(),
        event_id: Some(delivery.event_id.clone()),
        occurred_at: Some(delivery.occurred_at),
        derived: true,
        ..event(&task, kind, next, fields)
    }];
    if *unreviewed {
        let objects: Vec<&Object> = artifacts.as_array().into_iter().flatten().filter_map(Value::as_object).collect();
        let is_deleted = |event: &NewEvent| view.aggregate(&event.aggregate_id).is_some_and(|about| about.deleted);
        let effects = effect::events(view, &task, &objects, true)?.into_iter().filter(|event| !is_deleted(event));
        let occurred_at = Some(delivery.occurred_at);
        events.extend(effects.map(|effect| {
            let mut metadata = delivery.metadata.clone();
            effect.metadata.iter().skip(1).for_each(|(name, value)| drop(metadata.insert(name.clone(), value.clone())));
            NewEvent { metadata, occurred_at, ..effect }
        }));
    }
    Ok(events)
}
