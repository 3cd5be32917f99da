//! `get_schema`: lists the types, or returns the fields and events of one type.

use std::collections::BTreeMap;

use foldwork_engine::model::declaration;
use foldwork_engine::model::definition::Definition;
use foldwork_engine::model::value::{Object, Value};
use foldwork_engine::workspace::types::TypeSchema;
use foldwork_engine::{Reader, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::mcp::tool::{ToolCall, ToolWords};

pub(super) const WORDS: ToolWords = ToolWords {
    name: "get_schema",
    title: "Get the schema",
    description: "Lists the aggregate types. With `aggregate_type`, returns the traits, fields and events of that \
        type, both declared ones and those seen in the log. Use this before you write a pipeline or append an event.",
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// The type to describe. By default, all types are listed.
    aggregate_type: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Output {
    /// All types without details, or only the type `aggregate_type` with its fields and events.
    types: Vec<ShownType>,
}

/// An aggregate type.
#[derive(Serialize, JsonSchema)]
pub struct ShownType {
    type_name: String,
    display_name: String,
    traits: Vec<String>,
    /// Whether only dedicated operations change aggregates of this type. If so, `append_event` cannot change these
    /// aggregates.
    managed: bool,
    /// The fields of the type. Null unless `aggregate_type` is given.
    #[schemars(with = "Option<Vec<serde_json::Map<String, serde_json::Value>>>")]
    fields: Option<Value>,
    /// The payload of each event type. Null unless `aggregate_type` is given.
    events: Option<BTreeMap<String, ShownEventType>>,
}

/// The payload of an event type.
#[derive(Serialize, JsonSchema, Default)]
struct ShownEventType {
    /// The payload that the type's definition declares.
    #[schemars(with = "Option<serde_json::Map<String, serde_json::Value>>")]
    declared: Option<Value>,
    /// The fields observed in events, with the types of their values. Fields over a limit on their number or on the
    /// length of their names are left out.
    #[schemars(with = "Option<serde_json::Map<String, serde_json::Value>>")]
    seen: Option<Object>,
}

pub(super) async fn get_schema(reader: Reader, arguments: Arguments, _call: ToolCall) -> Result<Output> {
    let types = match arguments.aggregate_type {
        Some(name) => vec![shown(&reader.schema(&name).await?)],
        None => reader.list_types().await?.iter().map(|definition| named(definition)).collect(),
    };
    Ok(Output { types })
}

/// Returns a type with its fields and events.
pub(in crate::mcp) fn shown(schema: &TypeSchema) -> ShownType {
    let declaration = declaration::to_value(&schema.definition);
    let mut events: BTreeMap<String, ShownEventType> = BTreeMap::new();
    for (name, declared) in declaration.get("events").and_then(Value::as_object).into_iter().flat_map(Object::iter) {
        events.entry(name.to_string()).or_default().declared = Some(declared.clone());
    }
    for (name, seen) in &schema.observed {
        events.entry(name.clone()).or_default().seen = Some(seen.clone());
    }
    ShownType { fields: declaration.get("fields").cloned(), events: Some(events), ..named(&schema.definition) }
}

fn named(definition: &Definition) -> ShownType {
    ShownType {
        type_name: definition.type_name.to_string(),
        display_name: definition.display_name.to_string(),
        traits: definition.traits.iter().map(|name| name.to_string()).collect(),
        managed: definition.managed,
        fields: None,
        events: None,
    }
}
