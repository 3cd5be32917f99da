//! `/aggregates/define` and `/aggregate-types`: defining and reading aggregate types.

use foldwork_engine::model::declaration;
use foldwork_engine::model::definition::Definition;
use foldwork_engine::model::value::{Object as Fields, Value};
use foldwork_engine::workspace::types::{Defined, Schema};
use poem_openapi::param::{Path, Query};
use poem_openapi::{ApiResponse, Object, OpenApi};

use super::section::Section;
use crate::auth::{ApiRead, ApiWrite};
use crate::http::error::ApiResult;
use crate::http::routes::API;
use crate::wire::body::{Body, JsonResponse};
use crate::wire::closed_sets::{FieldFolds, FieldTypes, OneOf};
use crate::wire::json::{AnyObject, AnyValue};
use crate::wire::received::Received;
use crate::wire::state::object;

pub struct Api;

/// A field of an aggregate type.
#[derive(Object)]
struct FieldDefinition {
    name: String,
    r#type: OneOf<FieldTypes>,
    #[oai(nullable)]
    required: Option<bool>,
    /// The default value, of any type. The schema has no type, so null is allowed without `nullable`.
    default: Option<AnyValue>,
    #[oai(nullable)]
    r#enum: Option<Vec<AnyValue>>,
    #[oai(nullable)]
    min: Option<f64>,
    #[oai(nullable)]
    max: Option<f64>,
    #[oai(nullable)]
    pattern: Option<String>,
    /// Whether the field is the label of the aggregate's node in the knowledge graph.
    #[oai(nullable)]
    label: Option<bool>,
    /// Whether the field holds personal data.
    #[oai(nullable)]
    personal: Option<bool>,
    /// The rule that combines the field's values; the default keeps the last value.
    #[oai(nullable)]
    fold: Option<OneOf<FieldFolds>>,
    /// The type of the referenced aggregate, for fields that hold references.
    #[oai(nullable)]
    reference_type: Option<String>,
}

/// The definition of an aggregate type.
#[derive(Object)]
struct TypeDefinition {
    type_name: String,
    #[oai(nullable)]
    display_name: Option<String>,
    #[oai(nullable)]
    traits: Option<Vec<String>>,
    #[oai(nullable)]
    fields: Option<Vec<FieldDefinition>>,
    /// Maps each event type to the fields of its payload.
    #[oai(nullable)]
    events: Option<AnyObject>,
}

/// An aggregate type.
#[derive(Object)]
struct AggregateType {
    type_name: String,
    display_name: String,
    traits: Vec<String>,
    fields: Vec<FieldDefinition>,
    events: AnyObject,
    builtin: bool,
    managed: bool,
}

/// An aggregate type with the schemas of its events.
#[derive(Object)]
struct AggregateTypeSchema {
    type_name: String,
    display_name: String,
    traits: Vec<String>,
    fields: Vec<FieldDefinition>,
    builtin: bool,
    managed: bool,
    /// The schemas of the event types: the declared fields, and the fields that occur in the log with their types.
    event_schemas: Vec<EventSchema>,
}

/// The schema of an event type.
#[derive(Object)]
struct EventSchema {
    event_type: String,
    declared: Option<AnyObject>,
    /// Maps each field to the types of its values in the log.
    seen: Option<AnyObject>,
}

/// All aggregate types.
#[derive(Object)]
struct TypePage {
    data: Vec<AggregateType>,
    #[oai(nullable)]
    next_cursor: Option<String>,
}

#[derive(ApiResponse)]
enum DefinedType {
    /// The type was created.
    #[oai(status = 201)]
    Created(JsonResponse<AggregateType>, #[oai(header = "Location")] String),
    /// The type existed already. Its definition was changed or is the same as before.
    #[oai(status = 200)]
    Present(JsonResponse<AggregateType>),
}

#[OpenApi(tag = "Section::Aggregates")]
impl Api {
    /// Defines an aggregate type, or extends an existing one.
    ///
    /// Fields and traits may be added to an existing type. A change that is incompatible with the existing definition
    /// is a conflict whose response lists the differences, unless `force` is given. Built-in types cannot be changed.
    #[oai(path = "/aggregates/define", method = "post", operation_id = "define_type")]
    async fn define_type(
        &self,
        access: ApiWrite,
        body: Body<Received<TypeDefinition>>,
        /// Whether to apply a change that is incompatible with the existing definition.
        force: Query<Option<bool>>,
    ) -> ApiResult<DefinedType> {
        let defined = access.0.define_type(&body.value.fields.into(), force.unwrap_or(false)).await?;
        Ok(match defined {
            Defined::Created(definition) => {
                let location = format!("{}/aggregate-types/{}/schema", API, definition.type_name);
                DefinedType::Created(JsonResponse::new(&type_body(&definition)), location)
            }
            Defined::Changed(definition) | Defined::Unchanged(definition) => {
                DefinedType::Present(JsonResponse::new(&type_body(&definition)))
            }
        })
    }

    /// Lists all aggregate types, ordered by name.
    ///
    /// Built-in and custom types are on one page.
    #[oai(path = "/aggregate-types", method = "get", operation_id = "list_types")]
    async fn list_types(&self, access: ApiRead) -> JsonResponse<TypePage> {
        let data: Vec<Value> = access.0.list_types().iter().map(|definition| type_body(definition).into()).collect();
        JsonResponse::new(&object([("data", data.into()), ("next_cursor", Value::Null)]))
    }

    /// Returns the schema of a type: its fields, its traits, and the fields of its events, both as declared and as
    /// found in the log.
    ///
    /// Types without declared events also have the fields found in the log.
    #[oai(path = "/aggregate-types/:type_name/schema", method = "get", operation_id = "get_type_schema")]
    async fn get_type_schema(
        &self,
        access: ApiRead,
        type_name: Path<String>,
    ) -> ApiResult<JsonResponse<AggregateTypeSchema>> {
        let schema = access.0.schema(&type_name).await?;
        Ok(JsonResponse::new(&schema_body(&schema)))
    }
}

fn type_body(definition: &Definition) -> Fields {
    let mut body = declaration::to_value(definition);
    body.push("builtin", definition.builtin);
    body.push("managed", definition.managed);
    body
}

fn schema_body(schema: &Schema) -> Fields {
    let mut body = type_body(&schema.definition);
    let declared = body.remove("events");
    let declared = declared.as_ref().and_then(Value::as_object).cloned().unwrap_or_default();
    let mut event_types: Vec<String> = declared.keys().map(|name| name.to_string()).collect();
    event_types.extend(schema.observed.iter().map(|(name, _)| name.clone()));
    event_types.sort();
    event_types.dedup();
    let schemas = event_types.into_iter().map(|name| {
        let mut event = Fields::new();
        if let Some(declared) = declared.get(&name) {
            event.push("declared", declared.clone());
        }
        if let Some((_, seen)) = schema.observed.iter().find(|(seen, _)| *seen == name) {
            event.push("seen", seen.clone());
        }
        let mut all = Fields::new();
        all.push("event_type", name);
        event.into_iter().for_each(|(key, value)| all.push(key, value));
        Value::from(all)
    });
    body.push("event_schemas", schemas.collect::<Vec<_>>());
    body
}
