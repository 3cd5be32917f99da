//! Previews and reports the events that an approval appends for effects, with the states after these events.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rustc_hash::FxHashMap;
use tokio::runtime::Handle;

use crate::append::request::{Append, AppendOutcome};
use crate::append::staging;
use crate::append::view::View;
use crate::error::{Error, ErrorCode, Result};
use crate::mailbox::{effect, person};
use crate::model::aggregate::Aggregate;
use crate::model::event::{Event, StreamExpectation};
use crate::model::fold::StreamFold;
use crate::model::id::AggregateId;
use crate::model::task::Task;
use crate::model::task::view::{EffectView, StaleEffect, difference};
use crate::model::value::{Object, Value};
use crate::state::State;
use crate::state::stream_pages::StreamPages;
use crate::workspace::rights::Reader;

/// The maximum total size of the states in one response, in bytes. The total size of the differences has the same
/// limit, but is counted separately. States and differences beyond their limit are left out.
const MAX_STATE_BYTES: usize = 4 << 20;
/// The maximum number of events that one preview folds. A preview folds events to find the states that the authors of
/// effects have read.
const MAX_READ_EVENTS: u64 = 10_000;

/// A preview of the approval of a task.
#[derive(Default)]
pub struct Approval {
    /// The events that an approval would append for effects now, with the states after these events. Empty if the task
    /// has no effects, if the status of the task allows no approval, or if an effect cannot be applied.
    pub would_append: Vec<EffectView>,
    /// The error with which an approval would be rejected. `None` if the approval would succeed, or if only the status
    /// or the review of the task, or the caller's rights, prevent an approval. A stale effect causes no error here, but
    /// is marked in `would_append`.
    pub refusal: Option<Error>,
}

impl Approval {
    /// Returns whether the preview contains neither an event nor an error.
    pub fn is_empty(&self) -> bool {
        self.would_append.is_empty() && self.refusal.is_none()
    }

    /// Returns the approximate size of the preview, in bytes.
    pub fn size_bytes(&self) -> usize {
        self.would_append.iter().map(EffectView::size_bytes).sum()
    }
}

impl Reader {
    /// Returns a preview of the approval of a task. The preview applies to the version that `task` has. If the task has
    /// effects, the preview counts as a query, and runs on a thread for blocking work.
    pub async fn approval(&self, task: &Arc<Aggregate>) -> Result<Approval> {
        if !Task::new(task).has_effects() {
            return Ok(Approval { refusal: person::sent_back(task), ..Approval::default() });
        }
        let admitted = self.context.admit_query().await?;
        let (reader, task, handle) = (self.clone(), task.clone(), Handle::current());
        let preview = move || {
            let _admitted = admitted;
            handle.block_on(reader.preview(&task))
        };
        tokio::task::spawn_blocking(preview).await.map_err(Error::internal)?
    }

    async fn preview(&self, task: &Aggregate) -> Result<Approval> {
        let state = self.context.state();
        let (id, expected) = (task.id.to_string(), StreamExpectation::Version(task.version));
        let decide = Box::new(move |view: &View<'_>| person::approval(view, &id, expected));
        let append = Append::decided(self.context.actor(), decide);
        let appended = match staging::preview(state, &append).map_err(effect::explain) {
            Ok(appended) => appended,
            Err(error @ (Error::Invalid { .. } | Error::Conflict { .. } | Error::Forbidden { .. })) => {
                return Ok(Approval { refusal: Some(error), ..Approval::default() });
            }
            Err(error) => return Err(error),
        };
        let mut would_append = effects(state, &appended);
        mark_stale(state, task, &mut would_append).await?;
        Ok(Approval { would_append, refusal: person::sent_back(task) })
    }
}

/// Returns the effects of an approval: all its events after the first, with the states after these events. Leaves out
/// the states beyond [`MAX_STATE_BYTES`].
pub(super) fn effects(state: &State, appended: &AppendOutcome) -> Vec<EffectView> {
    let mut bytes = 0;
    let row = |after: &Arc<Aggregate>| Some(after.row(&*state.types.get(&after.aggregate_type)?));
    let view = |(event, after): (&Arc<Event>, &Arc<Aggregate>)| {
        // After the limit is exceeded, the sizes of further states are not computed.
        if bytes <= MAX_STATE_BYTES {
            bytes += after.size_bytes();
        }
        EffectView::new(event.clone(), if bytes <= MAX_STATE_BYTES { row(after) } else { None })
    };
    appended.events.iter().zip(&appended.states).skip(1).map(view).collect()
}

/// Limits the total size of the states in one response. Leaves out the first state with which the total would exceed
/// the limit, and all later states.
pub(super) fn limit_states<'v>(effects: impl Iterator<Item = &'v mut EffectView>) {
    let mut bytes_left = MAX_STATE_BYTES;
    for view in effects {
        let Some(state) = view.state.as_ref().filter(|_| bytes_left > 0) else {
            view.state = None;
            continue;
        };
        match bytes_left.checked_sub(state.size_bytes()) {
            Some(left) => bytes_left = left,
            None => (bytes_left, view.state) = (0, None),
        }
    }
}

/// Marks the stale effects: the effects whose aggregate has changed since the author of the effect read the aggregate.
/// The mark contains these changes, unless the changes exceed a limit. Each aggregate is read once.
async fn mark_stale(state: &State, task: &Aggregate, effects: &mut [EffectView]) -> Result<()> {
    let read = read_versions(task);
    let read_by = |view: &EffectView| read.get(view.artifact_id.as_deref()?).copied();
    let (mut current, mut stale) = (FxHashMap::default(), FxHashMap::<AggregateId, BTreeSet<u64>>::default());
    for view in effects.iter() {
        let about = &view.event.aggregate_id;
        // Earlier effects of the same approval do not make an effect stale.
        let current = *current.entry(about.clone()).or_insert(view.event.version.saturating_sub(1));
        if let Some(version) = read_by(view).filter(|version| *version < current) {
            stale.entry(about.clone()).or_default().insert(version);
        }
    }
    let (mut events_left, mut bytes_left) = (MAX_READ_EVENTS, MAX_STATE_BYTES);
    let mut changed: FxHashMap<AggregateId, BTreeMap<u64, Object>> = FxHashMap::default();
    for view in effects {
        let about = &view.event.aggregate_id;
        let (Some(versions), Some(expected_version)) = (stale.get(about), read_by(view)) else { continue };
        let Some(current_version) = current.get(about).copied().filter(|_| versions.contains(&expected_version)) else {
            continue;
        };
        if !changed.contains_key(about) {
            changed.insert(about.clone(), changed_since(state, about, versions, &mut events_left).await?);
        }
        let difference = changed.get(about).and_then(|changed| changed.get(&expected_version));
        let fitting = difference.and_then(|found| Some((bytes_left.checked_sub(found.size_bytes())?, found.clone())));
        bytes_left = fitting.as_ref().map_or(bytes_left, |(left, _)| *left);
        let difference = fitting.map(|(_, difference)| difference);
        view.stale = Some(StaleEffect { expected_version, current_version, difference });
    }
    Ok(())
}

/// Returns the expected version of each effect: the version of the effect's aggregate that the author of the effect has
/// read. The key is the id of the artifact that contains the effect.
fn read_versions(task: &Aggregate) -> FxHashMap<&str, u64> {
    let read = |artifact: &'_ Object| artifact.get("effect")?.get("expected_version")?.as_int();
    let entry = |artifact| Some((Object::get(artifact, "id")?.as_str()?, u64::try_from(read(artifact)?).ok()?));
    Task::new(task).current_artifacts().into_iter().filter_map(entry).collect()
}

/// Returns, for each of the versions, the fields of the aggregate that have changed since this version. To restore the
/// earlier states, the function reads the stream from its first event. Versions above `events_left` are left out, and
/// the number of read events is subtracted from `events_left`.
async fn changed_since(
    state: &State,
    id: &AggregateId,
    versions: &BTreeSet<u64>,
    events_left: &mut u64,
) -> Result<BTreeMap<u64, Object>> {
    let mut found = BTreeMap::new();
    let Some(last) = versions.range(..=*events_left).next_back().copied() else { return Ok(found) };
    let Some(now) = state.folded.get(id.as_str()) else { return Ok(found) };
    let Some(definition) = state.types.get(&now.aggregate_type) else { return Ok(found) };
    *events_left -= last;
    if versions.contains(&0) {
        found.insert(0, difference(&Object::new(), &now.state));
    }
    let mut pages = StreamPages::new(id.clone(), 1..=last);
    let mut read: Option<StreamFold> = None;
    while let Some(events) = pages.next(&state.db).await? {
        for event in &events {
            let read = read.get_or_insert_with(|| StreamFold::new(event));
            read.fold(event, &definition);
            if versions.contains(&event.version) {
                found.insert(event.version, difference(read.state(), &now.state));
            }
        }
    }
    Ok(found)
}

/// Adds the changed fields to the error of an approval whose effect is stale. Returns any other error unchanged.
pub(super) async fn with_difference(state: &State, error: Error) -> Error {
    let Error::Conflict { code: ErrorCode::Stale, message, mut details, index } = error else { return error };
    let id = details.get("aggregate_id").and_then(Value::as_str).and_then(AggregateId::parse);
    let read = details.get("expected_version").and_then(Value::as_int).and_then(|read| u64::try_from(read).ok());
    if let (Some(id), Some(read)) = (id, read) {
        let mut events_left = MAX_READ_EVENTS;
        match changed_since(state, &id, &BTreeSet::from([read]), &mut events_left).await {
            Ok(mut changed) => details.push("difference", changed.remove(&read).map(Value::from)),
            Err(error) => return error,
        }
    }
    Error::Conflict { code: ErrorCode::Stale, message, details, index }
}
