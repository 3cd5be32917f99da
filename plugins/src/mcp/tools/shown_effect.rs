//! The events that an approval appends, in the form in which models receive them.

use std::sync::Arc;

use foldwork_engine::model::task::view::EffectView;
use foldwork_engine::model::value::{Object, Value};
use serde::Serialize;

use super::shown::shown;

shown! {
    /// An event that an approval appends, with the state of the aggregate after the event. The state is null if this
    /// state and the states of the preceding events together exceed the size limit.
    #[derive(Serialize)]
    pub struct ShownEffect from view: EffectView {
        artifact_id: Option<Arc<str>> = view.artifact_id,
        aggregate_id: Arc<str> = view.event.aggregate_id.text(),
        event_type: Arc<str> = view.event.event_type.clone(),
        version: u64 = view.event.version,
        payload: Arc<Object> = view.event.payload.clone(),
        state: Option<Value> = view.state,
        /// The fields that have changed since the author of the effect read the aggregate. Present only if the
        /// aggregate has a later version than the version that the author read. Null if there are too many events to
        /// compare, or if these changes and the changes of the preceding effects together exceed the size limit.
        #[serde(skip_serializing_if = "Option::is_none")]
        stale: Option<Option<Object>> = view.stale.map(|stale| stale.difference),
    }
}
