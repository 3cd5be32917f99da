//! The events that an approval appends for effects, with the states after them: the preview and the result.

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::mailbox::{effect, person};
use crate::model::aggregate::Aggregate;
use crate::model::event::{Event, Expected};
use crate::model::fold::Folding;
use crate::model::id::AggregateId;
use crate::model::task::Task;
use crate::model::task::content::Effect;
use crate::model::task::view::{EffectView, Stale, difference};
use crate::model::value::{Object, Value};
use crate::state::State;
use crate::state::append::{Append, Appended};
use crate::state::stream_pages::StreamPages;
use crate::workspace::rights::Reader;

/// The maximum size of all states in one response, in bytes. States beyond it are left out.
const MAX_STATE_BYTES: usize = 4 << 20;
/// The maximum number of events that are folded to find the state that an author has read.
const MAX_READ_EVENTS: u64 = 10_000;

/// A preview of the approval of a task.
#[derive(Default)]
pub struct Approval {
    /// The events that approval would append now, with the states after them. Empty if the task cannot be approved.
    pub would_append: Vec<EffectView>,
    /// The error with which an approval would be rejected, although the task's status allows it. Stale effects do not
    /// count here, because a person may accept them.
    pub refusal: Option<Error>,
}

impl Approval {
    /// Returns whether an approval would append no effects now and would not be rejected.
    pub fn is_empty(&self) -> bool {
        self.would_append.is_empty() && self.refusal.is_none()
    }

    /// Returns the approximate size of the preview, in bytes.
    pub fn size_bytes(&self) -> usize {
        self.would_append.iter().map(EffectView::size_bytes).sum()
    }
}

impl Reader {
    /// Returns a preview of the approval of a task in this version.
    pub async fn approval(&self, task: &Aggregate) -> Result<Approval> {
        if !Task::new(task).has_effects() {
            return Ok(Approval::default());
        }
        let state = self.context.state();
        let (id, expected) = (task.id.to_string(), Expected::Version(task.version));
        let append = Append {
            decide: Box::new(move |view| person::approval(view, &id, expected)),
            event_ids: Vec::new(),
            request: None,
            actor: self.context.actor(),
            managed: true,
            size_bytes: 0,
            upload: None,
        };
        let appended = match state.preview(&append).map_err(effect::explain) {
            Ok(appended) => appended,
            Err(error @ (Error::Invalid { .. } | Error::Conflict { .. } | Error::Forbidden { .. })) => {
                return Ok(Approval { refusal: Some(error), ..Approval::default() });
            }
            Err(error) => return Err(error),
        };
        let mut would_append = effects(state, &appended);
        for position in 0..would_append.len() {
            let stale = stale(state, task, &would_append, position).await?;
            if let Some(view) = would_append.get_mut(position) {
                view.stale = stale;
            }
        }
        Ok(Approval { would_append, refusal: None })
    }
}

/// Returns the effects among the events of an approval, which are all events after the first.
pub(super) fn effects(state: &State, appended: &Appended) -> Vec<EffectView> {
    let mut bytes = 0;
    let row = |after: &Arc<Aggregate>| Some(after.row(&*state.types.get(&after.aggregate_type)?));
    let view = |(event, after): (&Arc<Event>, &Arc<Aggregate>)| {
        bytes += after.size_bytes();
        EffectView::new(event.clone(), if bytes <= MAX_STATE_BYTES { row(after) } else { None })
    };
    appended.events.iter().zip(&appended.states).skip(1).map(view).collect()
}

/// Returns the changes to the aggregate of an effect since the author of the effect read it, or `None` if there are
/// none.
async fn stale(state: &State, task: &Aggregate, effects: &[EffectView], position: usize) -> Result<Option<Stale>> {
    let Some(view) = effects.get(position) else { return Ok(None) };
    let about = &view.event.aggregate_id;
    let is_meant = |artifact: &&&Object| artifact.get("id").and_then(Value::as_str) == view.artifact_id.as_deref();
    let artifacts = Task::new(task).current_artifacts();
    let read = artifacts.iter().find(is_meant).and_then(|artifact| Effect::of(artifact)?.expected_version);
    // Earlier effects of the same approval do not make an effect stale.
    let first = effects.iter().find(|other| other.event.aggregate_id == *about).unwrap_or(view);
    let current_version = first.event.version.saturating_sub(1);
    let Some(expected_version) = read.filter(|read| *read < current_version) else { return Ok(None) };
    let difference = changed_since(state, about, expected_version).await?;
    Ok(Some(Stale { expected_version, current_version, difference }))
}

/// Returns the fields of an aggregate that have changed since a version. Returns `None` if the aggregate had too many
/// events to compare.
async fn changed_since(state: &State, id: &AggregateId, version: u64) -> Result<Option<Object>> {
    if version > MAX_READ_EVENTS {
        return Ok(None);
    }
    let Some(now) = state.folded.get(id.as_str()) else { return Ok(None) };
    let Some(definition) = state.types.get(&now.aggregate_type) else { return Ok(None) };
    let mut pages = StreamPages::new(id.clone(), 1..=version);
    let mut read: Option<Folding> = None;
    while let Some(events) = pages.next(&state.db).await? {
        for event in &events {
            read.get_or_insert_with(|| Folding::new(event)).fold(event, &definition);
        }
    }
    let was = read.map(Folding::into_aggregate);
    let none = Object::new();
    Ok(Some(difference(was.as_ref().map_or(&none, |was| &was.state), &now.state)))
}

/// Adds the changed fields to the error of an approval whose effect is stale.
pub(super) async fn with_difference(state: &State, error: Error) -> Error {
    let Error::Conflict { code: effect::STALE, message, mut details, index } = error else { return error };
    let id = details.get("aggregate_id").and_then(Value::as_str).and_then(AggregateId::parse);
    let read = details.get("expected_version").and_then(Value::as_int).and_then(|read| u64::try_from(read).ok());
    if let (Some(id), Some(read)) = (id, read) {
        match changed_since(state, &id, read).await {
            Ok(difference) => details.push("difference", difference.map(Value::from)),
            Err(error) => return error,
        }
    }
    Error::Conflict { code: effect::STALE, message, details, index }
}
