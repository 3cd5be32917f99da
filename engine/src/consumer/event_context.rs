//! The aggregates as of the last event that the log's follower has processed, even within a batch of events.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::error::Result;
use crate::model::aggregate::Aggregate;
use crate::model::definition::Definition;
use crate::model::event::Event;
use crate::model::id::AggregateId;
use crate::resident::graph::StateView;
use crate::state::State;
use crate::state::batches::BATCH;

/// The aggregates after the last event that the follower has processed.
pub struct FollowerView<'a> {
    pub state: &'a State,
    /// The aggregates that the batch has changed so far, by id.
    pub changed: FxHashMap<AggregateId, Arc<Aggregate>>,
}

impl<'a> FollowerView<'a> {
    pub fn new(state: &'a State) -> FollowerView<'a> {
        FollowerView { state, changed: FxHashMap::default() }
    }
}

impl StateView for FollowerView<'_> {
    fn aggregate(&self, id: &str) -> Option<Arc<Aggregate>> {
        self.changed.get(id).cloned().or_else(|| self.state.folded.at_follower(id))
    }

    fn definition(&self, type_name: &str) -> Option<Arc<Definition>> {
        self.state.types.get(type_name)
    }

    fn aggregates(&self) -> Box<dyn Iterator<Item = Arc<Aggregate>> + '_> {
        let ids: Vec<AggregateId> = self.state.folded.snapshot().iter().map(|known| known.id.clone()).collect();
        Box::new(ids.into_iter().filter_map(|id| self.aggregate(id.as_str())))
    }
}

/// An event, with the aggregate before and after this event.
pub struct EventContext {
    pub event: Arc<Event>,
    pub before: Option<Arc<Aggregate>>,
    pub after: Arc<Aggregate>,
    pub definition: Arc<Definition>,
}

/// The part of a batch that one call of [`observe`] folded, with the aggregates before and after each event.
pub struct ContextBatch {
    pub contexts: Vec<Arc<EventContext>>,
    /// The position of the last event that was folded or skipped.
    pub position: u64,
    /// The size of the events and of the states that were folded for these events, in bytes.
    pub bytes: usize,
}

/// Folds a batch of events. `earlier` returns the state of an aggregate before the batch. Skips events of unknown
/// types. Stops after the event at which the size of the result reaches `most_bytes`. The size is limited because each
/// event of a large aggregate can add a whole state to the result.
pub fn observe(
    state: &State,
    events: &[Arc<Event>],
    most_bytes: usize,
    earlier: impl Fn(&str) -> Option<Arc<Aggregate>>,
) -> ContextBatch {
    let mut changed: FxHashMap<&AggregateId, Arc<Aggregate>> = FxHashMap::default();
    let mut observed = ContextBatch { contexts: Vec::with_capacity(events.len()), position: 0, bytes: 0 };
    for event in events {
        if observed.bytes >= most_bytes {
            break;
        }
        observed.position = event.position;
        observed.bytes += event.size_bytes();
        let Some(definition) = state.types.get(&event.aggregate_type) else { continue };
        let before = changed.get(&event.aggregate_id).cloned().or_else(|| earlier(event.aggregate_id.as_str()));
        // Reuses the resident state if it has the same version, to save memory.
        let resident = state.folded.get(event.aggregate_id.as_str()).filter(|known| known.version == event.version);
        let after = match resident {
            Some(after) => after,
            None => {
                let folded = Aggregate::fold(before.as_deref(), event, &definition);
                observed.bytes += folded.state.size_bytes();
                Arc::new(folded)
            }
        };
        changed.insert(&event.aggregate_id, after.clone());
        observed.contexts.push(Arc::new(EventContext { event: event.clone(), before, after, definition }));
    }
    observed
}

/// Folds the aggregate before and after an event from the log. Works for events of any age. Returns `None` if the type
/// of the aggregate is not defined.
pub async fn recall(state: &State, event: Arc<Event>) -> Result<Option<EventContext>> {
    let Some(definition) = state.types.get(&event.aggregate_type) else { return Ok(None) };
    let earlier = event.version.saturating_sub(1);
    let before = state.fold_stream(&event.aggregate_id, earlier, None, &definition).await?.map(Arc::new);
    let after = Arc::new(Aggregate::fold(before.as_deref(), &event, &definition));
    Ok(Some(EventContext { event, before, after, definition }))
}

/// Sets the follower's state of every aggregate that changed after `position` to the state at `position`.
pub async fn restore_states(state: &State, position: u64) -> Result<()> {
    let mut visited: rustc_hash::FxHashSet<AggregateId> = Default::default();
    let (mut next, end) = (position, state.folded.position());
    while next < end {
        let events = state.batch_after(next, BATCH).await?;
        let Some(last) = events.last() else { break };
        next = last.position;
        for event in events.iter().filter(|event| event.position <= end) {
            if !visited.insert(event.aggregate_id.clone()) {
                continue;
            }
            let at = match state.types.get(&event.aggregate_type) {
                Some(definition) if event.version > 1 => {
                    state.fold_stream(&event.aggregate_id, event.version - 1, None, &definition).await?.map(Arc::new)
                }
                _ => None,
            };
            state.folded.follower.set(event.aggregate_id.clone(), at);
        }
    }
    Ok(())
}
