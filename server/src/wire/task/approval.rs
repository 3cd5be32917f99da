//! The JSON of an effect in previews and in the response to an approval. An effect is an event that an approval
//! appends.

use foldwork_engine::model::task::view::{EffectView, StaleEffect};

use crate::wire::json::{AnyObject, Text};
use crate::wire::shown::shown;

shown! {
    /// An event that approval appends, with the state of its aggregate after the event.
    #[oai(rename = "Effect")]
    pub struct EffectBody from view: EffectView where {
        let event = view.event;
    };

    /// The id of the artifact version that has the effect.
    artifact_id: Option<Text> = view.artifact_id.map(Text),
    aggregate_id: Text = event.aggregate_id.text().into(),
    aggregate_type: Text = event.aggregate_type.clone().into(),
    event_type: Text = event.event_type.clone().into(),
    project_id: Option<Text> = event.project_id.clone().map(Text),
    /// The version of the aggregate after the event.
    version: u64 = event.version,
    payload: AnyObject = AnyObject(event.payload.clone()),
    /// The aggregate after the event. Null if this state and the states of the preceding effects together exceed the
    /// size limit of the response.
    state: Option<AnyObject> = view.state.as_ref().and_then(AnyObject::of),
    /// The id of the event. `event_id` and `position` are present only if the event is in the log.
    @read_only event_id: Option<Text> = Some(event.event_id.clone().into()),
    @read_only position: Option<u64> = Some(event.position),
    /// The change of the aggregate since the author of the effect read the aggregate.
    @read_only stale: Option<StaleBody> = view.stale.map(StaleBody::from),
}

shown! {
    /// The change of an aggregate since the author of an effect read the aggregate.
    #[oai(rename = "Stale")]
    struct StaleBody from stale: StaleEffect;

    /// The version that the author has read.
    expected_version: u64 = stale.expected_version,
    current_version: u64 = stale.current_version,
    /// The fields that differ between the version that the author has read and the current version. Each field has its
    /// earlier value `was` and its current value `now`. Null if the aggregates of the effects have too many events to
    /// compare, or if this difference and the differences of the preceding effects together exceed the size limit of
    /// the response.
    difference: Option<AnyObject> = stale.difference.map(AnyObject::from),
}

impl EffectBody {
    /// Returns the body of an effect that is not in the log yet.
    pub fn planned(view: EffectView) -> EffectBody {
        EffectBody { event_id: None, position: None, ..EffectBody::from(view) }
    }
}
