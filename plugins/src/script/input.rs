//! Converts the arguments of hooks to values of the interpreter.

use foldwork_engine::hook::LABEL;
use foldwork_engine::model::aggregate::Aggregate;
use foldwork_engine::model::date::format_date;
use foldwork_engine::model::definition::Definition;
use foldwork_engine::model::event::Event;
use foldwork_engine::model::value::Value;
use rhai::{Dynamic, Map};

use super::convert::{text_to_dynamic, to_dynamic, to_map};

/// Converts an event to `{event_id, aggregate_id, aggregate_type, event_type, project_id, version, position, payload,
/// metadata, actor, occurred_at, recorded_at}`.
pub(super) fn event(event: &Event) -> Dynamic {
    let text = |text: &str| text_to_dynamic(text);
    let mut map = Map::new();
    map.insert("event_id".into(), text(&event.event_id));
    map.insert("aggregate_id".into(), text(event.aggregate_id.as_str()));
    map.insert("aggregate_type".into(), text(&event.aggregate_type));
    map.insert("event_type".into(), text(&event.event_type));
    map.insert("project_id".into(), event.project_id.as_deref().map_or(Dynamic::UNIT, text));
    map.insert("version".into(), Dynamic::from_int(event.version as i64));
    map.insert("position".into(), Dynamic::from_int(event.position as i64));
    map.insert("payload".into(), Dynamic::from_map(to_map(&event.payload)));
    map.insert("metadata".into(), Dynamic::from_map(to_map(&event.metadata)));
    map.insert("actor".into(), text(&event.actor));
    map.insert("occurred_at".into(), format_date(event.occurred_at).into());
    map.insert("recorded_at".into(), format_date(event.recorded_at).into());
    Dynamic::from_map(map)
}

/// Converts an aggregate to the row that a pipeline shows after `$fold`, with the label and without the facts of
/// plugins.
pub(super) fn state(aggregate: &Aggregate, definition: &Definition) -> Dynamic {
    let mut map = to_map(&aggregate.state);
    map.insert("_id".into(), text_to_dynamic(aggregate.id.as_str()));
    map.insert("aggregate_type".into(), text_to_dynamic(&aggregate.aggregate_type));
    map.insert("project_id".into(), aggregate.project_id.as_deref().map_or(Dynamic::UNIT, text_to_dynamic));
    map.insert("_version".into(), Dynamic::from_int(aggregate.version as i64));
    map.insert("_position".into(), Dynamic::from_int(aggregate.position as i64));
    map.insert("_created_at".into(), format_date(aggregate.created_at).into());
    map.insert("_last_event_at".into(), format_date(aggregate.last_event_at).into());
    map.insert("_traits".into(), to_dynamic(&definition.traits_value()));
    let label = definition.label_of(&aggregate.state);
    map.insert(LABEL.into(), label.as_deref().map_or(Dynamic::UNIT, text_to_dynamic));
    Dynamic::from_map(map)
}

/// Converts an aggregate type to `{name, display_name, traits}`.
pub(super) fn aggregate_type(definition: &Definition) -> Dynamic {
    let mut map = Map::new();
    map.insert("name".into(), text_to_dynamic(&definition.type_name));
    map.insert("display_name".into(), text_to_dynamic(&definition.display_name));
    map.insert("traits".into(), to_dynamic(&definition.traits_value()));
    Dynamic::from_map(map)
}

pub(super) fn list(values: &[Value]) -> Dynamic {
    Dynamic::from_array(values.iter().map(to_dynamic).collect())
}
