//! A request to append events, and its outcome.

use std::sync::Arc;

use crate::append::idempotency::IdempotentRequest;
use crate::append::view::View;
use crate::error::Result;
use crate::model::aggregate::Aggregate;
use crate::model::event::{Event, NewEvent};

/// The assumed size of an append's events in bytes, if the events are not known in advance. The function [`Decide`]
/// determines such events later.
const DECIDED_BYTES: usize = 1_024;

/// A function that decides which events an operation appends, given the state at the end of the log.
///
/// The function may run more than once. For example, if another writer appends first, the function runs again against
/// the new state.
pub type Decide = Box<dyn Fn(&View<'_>) -> Result<Vec<NewEvent>> + Send + Sync>;

/// One append request. Either all of its events are appended or none.
pub struct Append {
    pub decide: Decide,
    /// The ids that the append sets for its events: ids that a client chose, ids that the program derived, or ids that
    /// a server generated for earlier events. The appender generates all other ids.
    pub event_ids: Vec<Arc<str>>,
    /// The identity of the request, if a repeated request must return the same events.
    pub request: Option<IdempotentRequest>,
    pub actor: Arc<str>,
    /// Whether the append may write to managed types, and may contain events that were recorded in another log. Only
    /// operations of the program itself and imports may do so.
    pub managed: bool,
    /// The approximate size of the events in memory, in bytes. An assumed size if the events are not known in advance.
    pub size_bytes: usize,
    /// The id of the upload whose bytes a file gets with the append.
    pub upload: Option<Arc<str>>,
    /// The epoch of the leader that appends. The append fails if another server has taken over. `None` for appends that
    /// any server may make.
    pub epoch: Option<u64>,
}

impl Append {
    /// Returns an append of given events.
    pub fn given(actor: Arc<str>, events: Vec<NewEvent>) -> Append {
        Append {
            event_ids: events.iter().filter_map(|event| event.event_id.as_deref().map(Arc::from)).collect(),
            size_bytes: events.iter().map(NewEvent::size_bytes).sum(),
            managed: false,
            ..Append::decided(actor, Box::new(move |_| Ok(events.clone())))
        }
    }

    /// Returns an append of the events that `decide` returns, given the state at the end of the log. The append may
    /// write to managed types.
    pub fn decided(actor: Arc<str>, decide: Decide) -> Append {
        Append {
            decide,
            event_ids: Vec::new(),
            request: None,
            actor,
            managed: true,
            size_bytes: DECIDED_BYTES,
            upload: None,
            epoch: None,
        }
    }

    /// Returns whether the store may already contain the append or some of its events, or whether the append's upload
    /// may no longer be in progress.
    pub(super) fn may_be_known(&self) -> bool {
        self.request.is_some() || self.upload.is_some() || !self.event_ids.is_empty()
    }
}

/// The result of an append.
#[derive(Debug, Clone)]
pub struct AppendOutcome {
    /// The events of the append in the requested order, including events that were already in the log.
    pub events: Vec<Arc<Event>>,
    /// Whether each event was already in the log, in the order of `events`.
    pub repeated: Vec<bool>,
    /// The state of the aggregate after each of the events. For an event that was already in the log, the current state
    /// of the aggregate. May be empty if the append repeats an earlier request.
    pub states: Vec<Arc<Aggregate>>,
    /// Whether the append repeats an earlier request and returns the response of that request.
    pub replayed: bool,
}

impl AppendOutcome {
    /// Returns whether the append repeats an earlier one: the request was replayed, or the log already contained all of
    /// its events. Returns `false` for an append without events.
    pub fn is_repeat(&self) -> bool {
        self.replayed || (!self.events.is_empty() && self.repeated.iter().all(|repeated| *repeated))
    }
}
