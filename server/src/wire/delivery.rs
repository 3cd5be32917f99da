//! The payload of a notification to an agent. Pages, streams and sockets send the same payload.

use foldwork_engine::model::date::format_date;
use foldwork_engine::model::feed::{Delivery, MAX_BYTES};
use foldwork_engine::model::json;
use foldwork_engine::model::value::{Object, Value};
use serde::Serialize;
use serde_json::value::RawValue;

use super::json::{AnyObject, SerializedObject, Text};
use super::task::TaskBody;

/// The maximum size of a task's field in a shortened payload, in bytes. Larger fields are left out.
const SHORT_BYTES: usize = 8 << 10;

/// The task in its state after the event that caused the notification, and the id, the position and the description of
/// this event.
#[derive(Serialize)]
struct DeliveryPayload {
    task: TaskInPayload,
    event_id: Text,
    position: u64,
    cause: DeliveryCause,
}

#[derive(Serialize)]
#[serde(untagged)]
enum TaskInPayload {
    Whole(Box<TaskBody>),
    /// The task's fields that have at most [`SHORT_BYTES`] bytes, and `truncated`.
    Short(Object),
}

#[derive(Serialize)]
struct DeliveryCause {
    event_type: Text,
    version: u64,
    actor: Text,
    occurred_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    payload: Option<AnyObject>,
    /// Whether the event's payload is left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    truncated: Option<bool>,
}

impl DeliveryPayload {
    fn new(delivery: &Delivery, task: TaskInPayload) -> DeliveryPayload {
        let event = &delivery.event;
        let is_short = matches!(task, TaskInPayload::Short(_));
        DeliveryPayload {
            task,
            event_id: event.event_id.clone().into(),
            position: event.position,
            cause: DeliveryCause {
                event_type: event.event_type.clone().into(),
                version: event.version,
                actor: event.actor.clone().into(),
                occurred_at: format_date(event.occurred_at),
                payload: (!is_short).then(|| AnyObject(event.payload.clone())),
                truncated: is_short.then_some(true),
            },
        }
    }
}

/// Returns the payload `{task, event_id, position, cause}` of a notification. If this JSON would be larger than
/// [`MAX_BYTES`], leaves out the task's long fields and the event's payload.
pub fn payload(delivery: &Delivery) -> SerializedObject {
    let task = Box::new(TaskBody::from(&*delivery.task));
    let whole = text(&DeliveryPayload::new(delivery, TaskInPayload::Whole(task)));
    if whole.0.get().len() <= MAX_BYTES {
        return whole;
    }
    text(&DeliveryPayload::new(delivery, TaskInPayload::Short(short(&TaskBody::from(&*delivery.task)))))
}

/// Returns the task's fields that have at most [`SHORT_BYTES`] bytes, and the field `truncated` with the value `true`.
fn short(task: &TaskBody) -> Object {
    let text = serde_json::to_vec(task).unwrap_or_default();
    let Ok(Value::Object(task)) = json::parse_stored(&text) else { return Object::new() };
    let fields = task.iter().filter(|(_, value)| value.size_bytes() <= SHORT_BYTES);
    let mut short: Object = fields.map(|(name, value)| (name.clone(), value.clone())).collect();
    short.push("truncated", true);
    short
}

fn text(payload: &DeliveryPayload) -> SerializedObject {
    // Strings, numbers and maps with string keys can always be serialized.
    SerializedObject(serde_json::value::to_raw_value(payload).unwrap_or_else(|_| RawValue::NULL.to_owned()))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use foldwork_engine::model::aggregate::Aggregate;
    use foldwork_engine::model::builtin::TASK;
    use foldwork_engine::model::definition::Definition;
    use foldwork_engine::model::event::Event;
    use foldwork_engine::model::feed::deliveries;
    use foldwork_engine::model::id::AggregateId;

    use super::*;

    fn delivered(fields: Vec<(&str, Value)>) -> serde_json::Value {
        let assigned =
            [("assignee_type", Value::from("agent")), ("assignee_id", "a".into()), ("status", "pending".into())];
        let event = Arc::new(Event {
            event_id: "e-1".into(),
            aggregate_id: AggregateId::from(Arc::from("t")),
            aggregate_type: TASK.into(),
            event_type: "task.created".into(),
            project_id: None,
            version: 1,
            position: 10,
            payload: Arc::new(assigned.into_iter().chain(fields).collect()),
            metadata: Arc::default(),
            actor: "system".into(),
            occurred_at: 0,
            recorded_at: 0,
            sent: Default::default(),
        });
        let after = Arc::new(Aggregate::fold(None, &event, &Definition::new(TASK, "Task", Vec::new(), Vec::new())));
        let payload = payload(&deliveries(&event, None, &after).pop().expect("a delivery"));
        assert!(payload.0.get().len() <= MAX_BYTES);
        serde_json::from_str(payload.0.get()).expect("JSON")
    }

    #[test]
    fn a_delivery_contains_the_task_and_the_event_that_caused_the_delivery() {
        let payload = delivered(vec![("title", "T".into())]);
        assert_eq!((&payload["task"]["title"], &payload["task"]["priority"]), (&"T".into(), &"normal".into()));
        assert_eq!((&payload["event_id"], &payload["position"]), (&"e-1".into(), &10.into()));
        assert_eq!(payload["cause"]["payload"]["title"], "T");
        assert_eq!((payload["cause"].get("truncated"), payload["task"].get("truncated")), (None, None));
    }

    #[test]
    fn a_large_task_is_delivered_truncated() {
        let metadata = Object::from_iter([("draft", "y".repeat(MAX_BYTES))]);
        let payload = delivered(vec![("title", "x".repeat(20_000).into()), ("metadata", metadata.into())]);
        let task = &payload["task"];
        assert_eq!((&task["status"], &task["truncated"]), (&"pending".into(), &true.into()));
        assert_eq!(task.get("metadata"), None);
        assert_eq!(task["title"].as_str().map(|title| title.chars().count()), Some(500));
        assert_eq!((payload["cause"].get("payload"), &payload["cause"]["truncated"]), (None, &true.into()));
    }
}
