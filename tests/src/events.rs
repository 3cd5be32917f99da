//! Events of a log, for tests of functions that read events.

use std::sync::Arc;

use foldwork_engine::model::event::Event;
use foldwork_engine::model::id::AggregateId;
use foldwork_engine::model::value::Object;

/// Creates the first event of a log.
pub fn first_event(aggregate_id: &str, event_type: &str, payload: Object) -> Event {
    Event {
        event_id: "event-1".into(),
        aggregate_id: AggregateId::from(Arc::from(aggregate_id)),
        aggregate_type: event_type.split('.').next().unwrap_or_default().into(),
        event_type: event_type.into(),
        project_id: None,
        version: 1,
        position: 1,
        payload: Arc::new(payload),
        metadata: Arc::default(),
        actor: "system".into(),
        occurred_at: 0,
        recorded_at: 0,
        sent: Default::default(),
    }
}
