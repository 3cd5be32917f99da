//! Effects: the events that artifacts request. The append of an approval also appends the effects of the approved
//! artifacts.

use rustc_hash::FxHashMap;

use super::limits;
use crate::append::checks;
use crate::append::view::View;
use crate::error::{Error, ErrorCode, Result};
use crate::model::agent;
use crate::model::event::NewEvent;
use crate::model::excerpt::excerpt;
use crate::model::task::Task;
use crate::model::task::content::Effect;
use crate::model::value::{Object, Value};
use crate::model::violation::Violation;

/// The task that an effect belongs to.
#[derive(Debug, Clone, Copy)]
pub struct EffectOrigin<'a> {
    pub task_id: &'a str,
    /// The id of the aggregate that the task is about.
    pub subject: Option<&'a str>,
    /// The version of the subject when the agent claimed the task.
    pub subject_version: Option<u64>,
    /// The id or slug of the task's project.
    pub project: Option<&'a str>,
}

impl<'a> From<&Task<'a>> for EffectOrigin<'a> {
    fn from(task: &Task<'a>) -> EffectOrigin<'a> {
        EffectOrigin {
            task_id: task.aggregate.id.as_str(),
            subject: task.subject(),
            subject_version: task.subject_version(),
            project: task.aggregate.project_id.as_deref(),
        }
    }
}

/// Checks an effect as far as possible before its event is appended. Returns the version of the aggregate on which the
/// effect is based. If the effect names a version, this is the named version. If the effect names no version and the
/// aggregate is the subject of a claimed task, this is the version at the time of the claim. Otherwise this is the
/// current version. `at` is the pointer of the effect in the request.
pub fn check(view: &View<'_>, origin: EffectOrigin<'_>, effect: &Effect, at: &str) -> Result<u64> {
    let below = |wrong: Violation| Violation { pointer: format!("{at}{}", wrong.pointer), ..wrong };
    let event = event(view, origin, None, effect).map_err(|wrong| Error::from(vec![below(wrong)]))?;
    view.check_event(&event).map_err(|error| match error {
        // The type of an effect is the first part of its event type.
        Error::Invalid { violations, .. } => {
            let named = |wrong: Violation| match &*wrong.pointer {
                "/aggregate_type" => Violation { pointer: "/event_type".to_owned(), ..wrong },
                _ => wrong,
            };
            Error::from(violations.into_iter().map(named).map(below).collect::<Vec<_>>())
        }
        Error::Conflict { message, .. } => Error::invalid_at(format!("{at}/aggregate_id"), message),
        other => other,
    })?;
    let version = view.aggregate(&event.aggregate_id).map_or(0, |about| about.version);
    match effect.expected_version {
        Some(read) if read > version => {
            let message = format!("expected at most {version}, the current version of the aggregate, found {read}");
            Err(Error::invalid_at(format!("{at}/expected_version"), message))
        }
        Some(read) => Ok(read),
        None if origin.subject == Some(event.aggregate_id.as_str()) => Ok(origin.subject_version.unwrap_or(version)),
        None => Ok(version),
    }
}

/// Returns the events that artifacts request. These events never restore a deleted aggregate. Fails if the aggregate of
/// an effect has changed since the author of the effect read the aggregate, unless `accept_stale` is set. Also fails if
/// the effects do not fit into one append.
pub fn events(view: &View<'_>, task: &Task<'_>, artifacts: &[&Object], accept_stale: bool) -> Result<Vec<NewEvent>> {
    limits::check_approval(artifacts)?;
    let mut events = Vec::new();
    for artifact in artifacts {
        if let Some(effect) = Effect::of(artifact) {
            let event = event(view, task.into(), artifact.get("id"), &effect);
            let event = event.map_err(|wrong| refused(&wrong.message, Vec::new()))?;
            let version = view.aggregate(&event.aggregate_id).map_or(0, |about| about.version);
            if let Some(read) = effect.expected_version.filter(|read| *read != version && !accept_stale) {
                return Err(stale(&event, read, version));
            }
            check_verb(view, &event, &events)?;
            events.push(event);
        }
    }
    Ok(events)
}

/// Rejects an effect that updates or deletes an aggregate that does not exist, unless an earlier effect creates the
/// aggregate. All other errors of the effect are found when the event is appended.
fn check_verb(view: &View<'_>, event: &NewEvent, earlier: &[NewEvent]) -> Result<()> {
    let before = view.aggregate(&event.aggregate_id);
    if before.is_none() && earlier.iter().any(|earlier| earlier.aggregate_id == event.aggregate_id) {
        return Ok(());
    }
    let checked = checks::check_exists(event, before.as_deref());
    checked.map_err(|error| refused(&error.to_string(), Vec::new()))
}

/// Returns the agent of each artifact version, by the id of the version. Covers the versions of a task and the versions
/// that an edit adds. The agent of a version is its author. If a person wrote the version, the agent is the agent of
/// the previous version. The events of effects name these agents.
pub fn authors<'a>(view: &View<'_>, task: &Task<'a>, edited: &'a [Object]) -> FxHashMap<&'a str, &'a str> {
    let is_agent = |id: &&str| view.aggregate(id).is_some_and(|found| agent::is_agent(&found));
    let mut agents: FxHashMap<&str, &str> = FxHashMap::default();
    for artifact in task.artifacts().iter().filter_map(Value::as_object).chain(edited) {
        let text = |name: &str| artifact.get(name).and_then(Value::as_str);
        let previous = || text("supersedes").and_then(|id| agents.get(id).copied());
        if let (Some(id), Some(author)) = (text("id"), text("created_by").filter(is_agent).or_else(previous)) {
            agents.insert(id, author);
        }
    }
    agents
}

fn stale(event: &NewEvent, read: u64, version: u64) -> Error {
    let message = format!(
        "the effect of the task's output is based on version {read} of '{}', which is at version {version}; \
         \"accept_stale\": true approves the output anyway",
        event.aggregate_id
    );
    Error::conflict(ErrorCode::Stale, message)
        .with_detail("aggregate_id", event.aggregate_id.as_str())
        .with_detail("expected_version", read as i64)
        .with_detail("current_version", version as i64)
        .with_detail("artifact_id", event.metadata.get("artifact_id").cloned())
}

/// Returns the event of an effect. Fails if neither the effect nor its task names an aggregate, or if the aggregate's
/// type is managed.
fn event(
    view: &View<'_>,
    origin: EffectOrigin<'_>,
    artifact_id: Option<&Value>,
    effect: &Effect,
) -> Result<NewEvent, Violation> {
    let Some(aggregate_id) = effect.aggregate_id.as_deref().or(origin.subject) else {
        let message = "the effect has no `aggregate_id`, and the task has no `source.aggregate_id`".to_owned();
        return Err(Violation { pointer: "/aggregate_id".to_owned(), message });
    };
    let aggregate_type = effect.event_type.split_once('.').map_or(&*effect.event_type, |(name, _)| name);
    if view.definition(aggregate_type).is_some_and(|definition| definition.managed) {
        let message = format!(
            "the type {} is managed, so only its own operations may append its events",
            excerpt(&aggregate_type.into())
        );
        return Err(Violation { pointer: "/event_type".to_owned(), message });
    }
    // An existing stream keeps its project, and a new stream gets the task's project.
    let is_new = view.aggregate(aggregate_id).is_none();
    let project = origin.project.filter(|project| is_new && view.project_id(project).is_some());
    Ok(NewEvent {
        aggregate_id: aggregate_id.to_owned(),
        aggregate_type: aggregate_type.to_owned(),
        project: project.map(str::to_owned),
        metadata: Object::from_iter([
            ("source", Value::from("task")),
            ("task_id", origin.task_id.into()),
            ("artifact_id", artifact_id.cloned().unwrap_or_default()),
        ]),
        event_type: effect.event_type.clone(),
        payload: effect.payload.clone(),
        derived: true,
        ..NewEvent::default()
    })
}

/// Rewrites the error for a rejected effect so that the approving person can understand the error. Other errors stay
/// unchanged.
pub fn explain(error: Error) -> Error {
    match error {
        // The first event is the task's own event.
        Error::Invalid { violations, index: Some(1..), .. } => {
            let messages: Vec<&str> = violations.iter().map(|wrong| wrong.message.as_str()).collect();
            refused(&messages.join("; "), violations)
        }
        Error::Conflict { details, message, index: Some(1..), .. } => {
            let error = refused(&message, Vec::new());
            match details.get("aggregate_id") {
                Some(holder) => error.with_detail("aggregate_id", holder.clone()),
                None => error,
            }
        }
        other => other,
    }
}

fn refused(why: &str, violations: Vec<Violation>) -> Error {
    let message = format!("the effect of the task's output was rejected: {why}");
    let error = Error::conflict(ErrorCode::EffectRefused, message);
    if violations.is_empty() {
        return error;
    }
    let entries = violations.into_iter().map(|violation| {
        let pointer = format!("/effect{}", violation.pointer);
        Value::from(Object::from_iter([("pointer", pointer), ("message", violation.message)]))
    });
    error.with_detail("details", entries.collect::<Vec<_>>())
}
