//! The events that an approval appends, in the form in which models receive them.

use std::sync::Arc;

use foldwork_engine::model::task::view::EffectView;
use foldwork_engine::model::value::{Object, Value};
use serde::Serialize;

/// An event that approval appends, with the state after the approval.
#[derive(Serialize)]
pub struct ShownEffect {
    artifact_id: Option<Arc<str>>,
    aggregate_id: Arc<str>,
    event_type: Arc<str>,
    version: u64,
    payload: Arc<Object>,
    state: Option<Value>,
    /// The fields that have changed since the author of the effect read the aggregate.
    #[serde(skip_serializing_if = "Option::is_none")]
    stale: Option<Option<Object>>,
}

impl From<EffectView> for ShownEffect {
    fn from(view: EffectView) -> ShownEffect {
        let EffectView { artifact_id, event, state, stale } = view;
        ShownEffect {
            artifact_id,
            aggregate_id: event.aggregate_id.text(),
            event_type: event.event_type.clone(),
            version: event.version,
            payload: event.payload.clone(),
            state,
            stale: stale.map(|stale| stale.difference),
        }
    }
}
