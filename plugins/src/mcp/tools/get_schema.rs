//! `get_schema`: the types that there are, and the fields and events of one.

use std::collections::BTreeMap;

use foldwork_engine::model::declaration;
use foldwork_engine::model::definition::Definition;
use foldwork_engine::model::value::{Object, Value};
use foldwork_engine::workspace::types::Schema;
use foldwork_engine::{Reader, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::mcp::tool::{Call, Tool, Words};

const WORDS: Words = Words {
    name: "get_schema",
    title: "Get the schema",
    description: "Tells which aggregate types there are; with `aggregate_type` the fields, traits and events of that one, \
        those that were declared and those that were seen in the log. Ask before you write a pipeline or append an event.",
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The type to tell about; without it all types are named.
    aggregate_type: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct Answer {
    /// All types, by name; those of `aggregate_type` in full.
    types: Vec<ShownType>,
}

/// An aggregate type.
#[derive(Serialize, JsonSchema)]
pub struct ShownType {
    type_name: String,
    display_name: String,
    traits: Vec<String>,
    /// Whether only operations of its own change it; `append_event` does not.
    managed: bool,
    /// Told where the type was asked for.
    #[schemars(with = "Option<Vec<serde_json::Map<String, serde_json::Value>>>")]
    fields: Option<Value>,
    /// Told where the type was asked for: by event type, the fields of its payload.
    events: Option<BTreeMap<String, ShownEventType>>,
}

/// The payload of an event type.
#[derive(Serialize, JsonSchema, Default)]
struct ShownEventType {
    /// As it was declared.
    #[schemars(with = "Option<serde_json::Map<String, serde_json::Value>>")]
    declared: Option<Value>,
    /// Fields that were seen, with the types of their values.
    #[schemars(with = "Option<serde_json::Map<String, serde_json::Value>>")]
    seen: Option<Object>,
}

pub(super) fn tool() -> Tool {
    Tool::reading(&WORDS, get_schema)
}

async fn get_schema(reader: Reader, arguments: Arguments, _call: Call) -> Result<Answer> {
    let types = match arguments.aggregate_type {
        Some(name) => vec![shown(&reader.schema(&name).await?)],
        None => reader.list_types().iter().map(|definition| named(definition)).collect(),
    };
    Ok(Answer { types })
}

/// A type with its fields and events.
pub(in crate::mcp) fn shown(schema: &Schema) -> ShownType {
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
