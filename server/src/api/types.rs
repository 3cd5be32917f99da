//! `/aggregates/define` and `/aggregate-types`: defining and reading aggregate types.

use std::sync::Arc;

use foldwork_engine::model::definition::{Definition, Field, Fold, UnknownFields};
use foldwork_engine::workspace::PageLimit;
use foldwork_engine::workspace::types::{DefinitionOutcome, TypeSchema};
use poem::web::Data;
use poem_openapi::param::{Path, Query};
use poem_openapi::{ApiResponse, Object, OpenApi};
use serde::Serialize;

use super::long_poll::LiveContext;
use super::section::Section;
use crate::auth::{ApiRead, ApiWrite};
use crate::http::error::ApiResult;
use crate::http::routes::API;
use crate::wire::body::{Body, JsonResponse};
use crate::wire::closed_sets::{FieldFolds, FieldTypes, OneOf, UnknownFieldRules};
use crate::wire::json::{AnyObject, AnyValue, Number};
use crate::wire::list::{ListOrder, ListPart};
use crate::wire::page::{PageBody, PageBytes, limit, listed, read_cursor};
use crate::wire::request_body::ForwardedBody;
use crate::wire::shown::shown;

pub struct Api;

shown! {
    /// A field of an aggregate type.
    struct FieldDefinition from field: &Field;

    name: String = field.name.to_string(),
    r#type: OneOf<FieldTypes> = field.field_type.name().into(),
    @skip_serializing_if_is_none required: Option<bool> = Some(field.required),
    /// The default value: any JSON value, so the schema of this property has no type. With null, the field has no
    /// default.
    @skip_serializing_if_is_none default: Option<AnyValue> = field.default.clone().map(AnyValue),
    @skip_serializing_if_is_none r#enum: Option<Vec<AnyValue>> =
        field.allowed.as_ref().map(|allowed| allowed.iter().cloned().map(AnyValue).collect()),
    @skip_serializing_if_is_none min: Option<Number> = field.min.map(Number),
    @skip_serializing_if_is_none max: Option<Number> = field.max.map(Number),
    @skip_serializing_if_is_none pattern: Option<String> = field.pattern.as_deref().map(str::to_owned),
    /// Whether the field is the label of the aggregate's node in the knowledge graph.
    @skip_serializing_if_is_none label: Option<bool> = field.label.then_some(true),
    /// Whether the field contains personal data.
    @skip_serializing_if_is_none personal: Option<bool> = field.personal.then_some(true),
    /// Whether search finds aggregates by this field, which must have the type string or array. Search always finds
    /// aggregates by their label fields. If no field of a type has `search`, search finds the aggregates by all fields
    /// of type string, and by `body` if the type does not declare this field.
    @skip_serializing_if_is_none search: Option<bool> = field.search.then_some(true),
    /// The weight of each word of the field in a search, from 1 (the default) to 10. Allowed only with `search`.
    @skip_serializing_if_is_none search_weight: Option<u32> = (field.search_weight != 1).then_some(field.search_weight),
    /// The rule that combines the field's values; the default keeps the last value.
    @skip_serializing_if_is_none fold: Option<OneOf<FieldFolds>> =
        (field.fold != Fold::Last).then(|| field.fold.name().into()),
    /// The type of the referenced aggregate. Allowed only for the type `reference`; for an array of references, `items`
    /// has the `reference_type`.
    @skip_serializing_if_is_none reference_type: Option<String> = field.reference_type.as_deref().map(str::to_owned),
    /// Whether the referenced aggregate must exist when an event refers to it.
    @skip_serializing_if_is_none must_exist: Option<bool> = field.must_exist.then_some(true),
    /// The items of an array.
    @skip_serializing_if_is_none items: Option<Box<ItemDefinition>> =
        field.items.as_deref().map(|items| Box::new(items.into())),
    /// The declared fields of an object. The object may have further fields, unless the type's `unknown` is `reject`.
    @skip_serializing_if_is_none fields: Option<Vec<FieldDefinition>> = inner(field),
}

shown! {
    /// The items of an array. The properties have the same meanings as the properties of a field.
    struct ItemDefinition from item: &Field where {
        let field = FieldDefinition::from(item);
    };

    r#type: OneOf<FieldTypes> = field.r#type,
    @skip_serializing_if_is_none r#enum: Option<Vec<AnyValue>> = field.r#enum,
    @skip_serializing_if_is_none min: Option<Number> = field.min,
    @skip_serializing_if_is_none max: Option<Number> = field.max,
    @skip_serializing_if_is_none pattern: Option<String> = field.pattern,
    @skip_serializing_if_is_none reference_type: Option<String> = field.reference_type,
    @skip_serializing_if_is_none must_exist: Option<bool> = field.must_exist,
    @skip_serializing_if_is_none items: Option<Box<ItemDefinition>> = field.items,
    @skip_serializing_if_is_none fields: Option<Vec<FieldDefinition>> = field.fields,
}

/// The definition of an aggregate type.
// This type only describes the schema. The engine parses the definitions of requests, because the engine parses stored
// definitions as well, and reports all violations together.
#[derive(Object)]
struct TypeDefinition {
    type_name: String,
    display_name: Option<String>,
    traits: Option<Vec<String>>,
    fields: Option<Vec<FieldDefinition>>,
    /// Maps each event type to `{description, fields}`. `fields` lists the fields of the payload.
    events: Option<AnyObject>,
    /// Whether events with undeclared fields are accepted; the default is `accept`. With `reject`, a payload may
    /// contain only the fields of the type and the fields that `events` declares for the event type. With `reject`, an
    /// object whose field declares `fields` may contain only these fields.
    unknown: Option<OneOf<UnknownFieldRules>>,
}

shown! {
    /// An aggregate type.
    struct AggregateType from definition: &Definition;

    type_name: String = definition.type_name.to_string(),
    display_name: String = definition.display_name.clone(),
    traits: Vec<String> = definition.traits.iter().map(ToString::to_string).collect(),
    fields: Vec<FieldDefinition> = definition.fields().iter().map(FieldDefinition::from).collect(),
    events: AnyObject = AnyObject(definition.events.clone()),
    /// The rule for fields that the type does not declare. Present if the rule is not `accept`.
    @read_only unknown: Option<OneOf<UnknownFieldRules>> =
        (definition.unknown != UnknownFields::Accept).then(|| definition.unknown.name().into()),
    builtin: bool = definition.builtin,
    managed: bool = definition.managed,
}

shown! {
    /// An aggregate type with the schemas of its events.
    struct AggregateTypeSchema from schema: &TypeSchema where {
        let definition = AggregateType::from(&*schema.definition);
        let declared = definition.events.0;
        let mut event_types: Vec<&str> = declared.keys().map(|name| &**name).collect();
        event_types.extend(schema.observed.iter().map(|(name, _)| name.as_str()));
        event_types.sort_unstable();
        event_types.dedup();
        let event_schemas = event_types.into_iter().map(|name| EventSchema {
            event_type: name.to_owned(),
            declared: declared.get(name).and_then(AnyObject::of),
            seen: schema.observed.iter().find(|(seen, _)| seen == name).map(|(_, seen)| seen.clone().into()),
        });
        let searched = schema.definition.searched();
        let searched = searched.map(|(field, weight)| SearchedField { field: field.to_owned(), weight });
    };

    type_name: String = definition.type_name,
    display_name: String = definition.display_name,
    traits: Vec<String> = definition.traits,
    fields: Vec<FieldDefinition> = definition.fields,
    /// The rule for fields that the type does not declare. Present if the rule is not `accept`.
    @read_only unknown: Option<OneOf<UnknownFieldRules>> = definition.unknown,
    builtin: bool = definition.builtin,
    managed: bool = definition.managed,
    /// The fields by which search finds the aggregates of the type. Search also finds the aggregates by their labels,
    /// including the labels that plugins found.
    searched: Vec<SearchedField> = searched.collect(),
    /// The schemas of the event types. Each schema contains the declared fields of the event type. Each schema also
    /// contains the fields that occur in the log, with the types of their values.
    event_schemas: Vec<EventSchema> = event_schemas.collect(),
}

/// A field by which search finds aggregates.
#[derive(Object, Serialize)]
struct SearchedField {
    field: String,
    /// The weight of each word of the field.
    weight: u32,
}

/// The schema of an event type.
#[derive(Object, Serialize)]
struct EventSchema {
    event_type: String,
    #[oai(read_only)]
    #[serde(skip_serializing_if = "Option::is_none")]
    declared: Option<AnyObject>,
    /// Maps each field to the types of its values in the log. Contains at most 500 fields, without the fields whose
    /// names are longer than 128 bytes.
    #[oai(read_only)]
    #[serde(skip_serializing_if = "Option::is_none")]
    seen: Option<AnyObject>,
}

/// A current or past definition of a type.
#[derive(Object, Serialize)]
#[oai(rename = "PastDefinition")]
struct PastDefinitionBody {
    type_name: String,
    /// The position of the last event that was appended before the definition.
    position: u64,
    /// The definition in the form that `define_type` accepts.
    definition: AnyObject,
}

listed!(PastDefinitionBody as "PastDefinitionPage": "A page of the current and past definitions of types.");

listed!(AggregateType as "TypePage": "A page of aggregate types.");

#[derive(ApiResponse)]
enum DefinedType {
    /// The type was created.
    #[oai(status = 201)]
    Created(JsonResponse<AggregateType>, #[oai(header = "Location")] String),
    /// The type already existed. The request changed the definition, or the definition is the same as before.
    #[oai(status = 200)]
    Present(JsonResponse<AggregateType>),
}

#[OpenApi(tag = "Section::Aggregates")]
impl Api {
    /// Defines an aggregate type, or extends an existing type.
    ///
    /// Fields and traits may be added to an existing type. Without `force`, a change that is incompatible with the
    /// existing definition is a conflict, and the response lists the differences. Built-in types cannot be changed.
    #[oai(path = "/aggregates/define", method = "post", operation_id = "define_type")]
    async fn define_type(
        &self,
        access: ApiWrite,
        body: Body<ForwardedBody<TypeDefinition>>,
        /// Whether to apply a change that is incompatible with the existing definition.
        force: Query<Option<bool>>,
    ) -> ApiResult<DefinedType> {
        let defined = access.0.define_type(&body.value.fields.into(), force.unwrap_or(false)).await?;
        Ok(match defined {
            DefinitionOutcome::Created(definition) => {
                let location = format!("{}/aggregate-types/{}/schema", API, definition.type_name);
                DefinedType::Created(JsonResponse::new(&AggregateType::from(&*definition)), location)
            }
            DefinitionOutcome::Changed(definition) | DefinitionOutcome::Unchanged(definition) => {
                DefinedType::Present(JsonResponse::new(&AggregateType::from(&*definition)))
            }
        })
    }

    /// Lists all aggregate types, ordered by name.
    ///
    /// Built-in and custom types are on one page, unless the page reaches `limit` or its maximum size in bytes.
    #[oai(path = "/aggregate-types", method = "get", operation_id = "list_types")]
    async fn list_types(
        &self,
        access: ApiRead,
        /// Rows per page, 1 to 200. By default, only the size of a page in bytes is limited.
        #[oai(name = "limit")]
        Query(rows): Query<Option<u64>>,
        /// The `next_cursor` of the previous page.
        cursor: Query<Option<String>>,
        bytes: Data<&PageBytes>,
    ) -> ApiResult<JsonResponse<PageBody<AggregateType>>> {
        let part = ListPart { list: "types", rows, cursor: cursor.as_deref(), bytes: **bytes };
        let types = access.0.list_types().await?;
        let name = |definition: &Arc<Definition>| definition.type_name.to_string();
        Ok(part.of(&types, ListOrder::Ascending, name, |definition| AggregateType::from(&**definition))?)
    }

    /// Lists the current and past definitions of types, oldest first.
    ///
    /// An export needs earlier definitions, because an event is valid under the definition that its type had when the
    /// event was appended. Built-in types are not listed.
    #[oai(path = "/aggregate-types/definitions", method = "get", operation_id = "list_definitions")]
    async fn list_definitions(
        &self,
        access: ApiRead,
        #[oai(name = "limit")] Query(rows): Query<Option<u64>>,
        /// The `next_cursor` of the previous page.
        cursor: Query<Option<String>>,
        live: LiveContext,
    ) -> ApiResult<JsonResponse<PageBody<PastDefinitionBody>>> {
        const LIST: &str = "definitions";
        let start = read_cursor(LIST, cursor.as_deref())?.unwrap_or(0);
        let limit = PageLimit { rows: limit(rows)?, bytes: live.page_bytes };
        let page = access.0.past_definitions(start, limit).await?;
        let bytes = page.items.iter().map(|past| past.declaration.size_bytes()).sum();
        Ok(JsonResponse::large(bytes, || {
            PageBody::new(page, LIST, |past| PastDefinitionBody {
                definition: AnyObject::of(&past.declaration).unwrap_or_default(),
                type_name: past.type_name,
                position: past.position,
            })
        }))
    }

    /// Returns the schema of a type: its fields, its traits, and the fields of its events, both as declared and as
    /// found in the log.
    ///
    /// The fields found in the log are present also for types without declared events.
    #[oai(path = "/aggregate-types/:type_name/schema", method = "get", operation_id = "get_type_schema")]
    async fn get_type_schema(
        &self,
        access: ApiRead,
        type_name: Path<String>,
    ) -> ApiResult<JsonResponse<AggregateTypeSchema>> {
        let schema = access.0.schema(&type_name).await?;
        Ok(JsonResponse::new(&AggregateTypeSchema::from(&schema)))
    }
}

fn inner(field: &Field) -> Option<Vec<FieldDefinition>> {
    (!field.fields.is_empty()).then(|| field.fields.iter().map(FieldDefinition::from).collect())
}

#[cfg(test)]
mod tests {
    use foldwork_engine::model::declaration::{FIELD_KEYS, ITEM_KEYS, KEYS};
    use poem_openapi::registry::Registry;
    use poem_openapi::types::Type;

    use super::*;

    #[test]
    fn the_openapi_document_lists_every_field_of_a_type_definition() {
        let mut registry = Registry::new();
        TypeDefinition::register(&mut registry);
        let keys = |schema: &str| {
            let properties = registry.schemas.get(schema).map(|schema| &schema.properties);
            properties.into_iter().flatten().map(|(name, _)| *name).collect::<Vec<_>>()
        };
        assert_eq!(keys("TypeDefinition"), KEYS);
        assert_eq!(keys("FieldDefinition"), FIELD_KEYS);
        assert_eq!(keys("ItemDefinition"), ITEM_KEYS);
    }
}
