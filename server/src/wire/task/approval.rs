//! The JSON of an effect, which is an event that an approval appends, in previews and in the response to the approval.

use foldwork_engine::model::task::view::{EffectView, StaleEffect};
use poem_openapi::Object;
use serde::Serialize;

use crate::wire::json::{AnyObject, Text};

/// An event that approval appends, with the state after the approval.
#[derive(Object, Serialize)]
#[oai(rename = "Effect")]
pub struct EffectBody {
    /// The id of the artifact version that has the effect.
    artifact_id: Option<Text>,
    aggregate_id: Text,
    aggregate_type: Text,
    event_type: Text,
    project_id: Option<Text>,
    /// The version of the aggregate after the event.
    version: u64,
    payload: AnyObject,
    /// The aggregate after the approval. Null if the states of the other effects are too large already.
    state: Option<AnyObject>,
    /// The id of the event. `event_id` and `position` are present only if the event is in the log.
    #[oai(read_only)]
    #[serde(skip_serializing_if = "Option::is_none")]
    event_id: Option<Text>,
    #[oai(read_only)]
    #[serde(skip_serializing_if = "Option::is_none")]
    position: Option<u64>,
    /// The change of the aggregate since the author of the effect read it.
    #[oai(read_only)]
    #[serde(skip_serializing_if = "Option::is_none")]
    stale: Option<StaleBody>,
}

/// The change of an aggregate since the author of an effect read it.
#[derive(Object, Serialize)]
#[oai(rename = "Stale")]
struct StaleBody {
    /// The version that the author has read.
    expected_version: u64,
    current_version: u64,
    /// The fields that differ, each with `was` and `now`. Null if the aggregates of the effects have too many events to
    /// compare, or if the differences of the other effects are too large already.
    difference: Option<AnyObject>,
}

impl EffectBody {
    /// Returns the body of an effect that is not in the log yet.
    pub fn planned(view: EffectView) -> EffectBody {
        EffectBody { event_id: None, position: None, ..EffectBody::appended(view) }
    }

    /// Returns the body of an effect that is in the log.
    pub fn appended(view: EffectView) -> EffectBody {
        let EffectView { artifact_id, event, state, stale } = view;
        EffectBody {
            artifact_id: artifact_id.map(Text),
            aggregate_id: event.aggregate_id.text().into(),
            aggregate_type: event.aggregate_type.clone().into(),
            event_type: event.event_type.clone().into(),
            project_id: event.project_id.clone().map(Text),
            version: event.version,
            payload: AnyObject(event.payload.clone()),
            state: state.as_ref().and_then(AnyObject::of),
            event_id: Some(event.event_id.clone().into()),
            position: Some(event.position),
            stale: stale.map(StaleBody::from),
        }
    }
}

impl From<StaleEffect> for StaleBody {
    fn from(stale: StaleEffect) -> StaleBody {
        let StaleEffect { expected_version, current_version, difference } = stale;
        StaleBody { expected_version, current_version, difference: difference.map(AnyObject::from) }
    }
}
