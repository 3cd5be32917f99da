//! Effects: the events that artifacts request. The append of an approval also appends the effects of the approved
//! artifacts.

use crate::core::view::View;
use crate::error::{Error, Result};
use crate::model::event::NewEvent;
use crate::model::excerpt::excerpt;
use crate::model::task::Task;
use crate::model::task::content::Effect;
use crate::model::value::{Object, Value};
use crate::model::violation::Violation;

/// The error code for an approval whose effect cannot be appended.
pub const EFFECT_REFUSED: &str = "effect_refused";

/// Returns the events that artifacts request. These events never restore a deleted aggregate.
pub fn events(view: &View<'_>, task: &Task<'_>, artifacts: &[&Object]) -> Result<Vec<NewEvent>> {
    let mut events = Vec::new();
    for artifact in artifacts {
        if let Some(effect) = Effect::of(artifact) {
            events.push(event(view, task, artifact, effect)?);
        }
    }
    Ok(events)
}

fn event(view: &View<'_>, task: &Task<'_>, artifact: &Object, effect: Effect) -> Result<NewEvent> {
    let Some(aggregate_id) = effect.aggregate_id.as_deref().or(task.subject()) else {
        return Err(refused("the effect names no aggregate, and the task is about none", Vec::new()));
    };
    let aggregate_type = effect.event_type.split_once('.').map_or(&*effect.event_type, |(name, _)| name);
    if view.definition(aggregate_type).is_some_and(|definition| definition.managed) {
        let shown = excerpt(&aggregate_type.into());
        return Err(refused(&format!("only its own operations may append to the type {shown}"), Vec::new()));
    }
    // An existing stream keeps its project, and a new stream gets the task's project.
    let project = task.aggregate.project_id.as_deref().filter(|_| view.aggregate(aggregate_id).is_none());
    Ok(NewEvent {
        aggregate_id: aggregate_id.to_owned(),
        aggregate_type: aggregate_type.to_owned(),
        project: project.map(str::to_owned),
        metadata: Object::from_iter([
            ("source", Value::from("task")),
            ("task_id", task.aggregate.id.text().into()),
            ("artifact_id", artifact.get("id").cloned().unwrap_or_default()),
        ]),
        event_type: effect.event_type,
        payload: effect.payload,
        derived: true,
        ..NewEvent::default()
    })
}

/// Converts the rejection of a task's event and effects into an error that the approving person can understand.
pub fn explain(error: Error) -> Error {
    match error {
        // The first event is the task's own event.
        Error::Invalid { violations, index: Some(1..), .. } => {
            let messages: Vec<&str> = violations.iter().map(|wrong| wrong.message.as_str()).collect();
            refused(&messages.join("; "), violations)
        }
        Error::Conflict { details, message, index: Some(1..), .. } => {
            let mut error = refused(&message, Vec::new());
            if let (Error::Conflict { details: kept, .. }, Some(holder)) = (&mut error, details.get("aggregate_id")) {
                kept.push("aggregate_id", holder.clone());
            }
            error
        }
        other => other,
    }
}

fn refused(why: &str, violations: Vec<Violation>) -> Error {
    let mut details = Object::new();
    if !violations.is_empty() {
        let entries = violations.into_iter().map(|violation| {
            let pointer = format!("/effect{}", violation.pointer);
            Value::from(Object::from_iter([("pointer", pointer), ("message", violation.message)]))
        });
        details.push("details", entries.collect::<Vec<_>>());
    }
    let message = format!("the effect of the task's output was rejected: {why}");
    Error::conflict_with(EFFECT_REFUSED, message, details)
}
