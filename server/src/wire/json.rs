//! Free-form JSON in requests and responses. The JSON is represented by engine values, which keep the order of fields
//! and the precision of integers.

use std::borrow::Cow;
use std::sync::Arc;

use foldwork_engine::model::value::{Object, Value};
use poem_openapi::registry::{MetaSchema, MetaSchemaRef};
use poem_openapi::types::{ParseError, ParseFromJSON, ParseResult, ToJSON, Type};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;

/// Any JSON value.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct AnyValue(pub Value);

/// A JSON object. A response shares the object with the state or the event that the object comes from.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct AnyObject(pub Arc<Object>);

impl AnyObject {
    /// Returns a value as an object, or `None` if the value is not an object.
    pub fn of(value: &Value) -> Option<AnyObject> {
        match value {
            Value::Object(object) => Some(AnyObject(object.clone())),
            _ => None,
        }
    }

    /// Returns the object. Copies the object only if the object is shared.
    pub fn into_object(self) -> Object {
        Arc::unwrap_or_clone(self.0)
    }
}

impl From<Object> for AnyObject {
    fn from(object: Object) -> AnyObject {
        AnyObject(Arc::new(object))
    }
}

/// A JSON object as text that is already serialized. The OpenAPI document describes this type as [`AnyObject`].
#[derive(Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SerializedObject(pub Box<RawValue>);

/// A string in a response. The string shares its memory with the state or the event that contains the string.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Text(pub Arc<str>);

impl From<Arc<str>> for Text {
    fn from(text: Arc<str>) -> Text {
        Text(text)
    }
}

/// A required string in a request. If the string is absent, the handler returns an error with the place of the field.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RequiredText(pub Option<String>);

/// A number. A whole number whose magnitude is less than 9e15 is written without a fraction.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(transparent)]
pub struct Number(pub f64);

impl Serialize for Number {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let is_whole = self.0.fract() == 0.0 && self.0.abs() < 9e15;
        if is_whole { serializer.serialize_i64(self.0 as i64) } else { serializer.serialize_f64(self.0) }
    }
}

/// An array of pipeline stages. The pipeline parser validates the stages and reports errors with MongoDB's messages.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Stages(pub Value);

/// The expected version of a stream: a number, `none`, `exists` or `any`.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ExpectedVersion(pub Value);

/// Declares the items that all implementations of [`Type`] in this crate have in common: the raw value is the value
/// itself, and no value has elements to validate.
macro_rules! without_validation {
    () => {
        type RawValueType = Self;
        type RawElementValueType = Self;

        fn as_raw_value(&self) -> Option<&Self> {
            Some(self)
        }

        fn raw_element_iter<'a>(&'a self) -> Box<dyn Iterator<Item = &'a Self> + 'a> {
            Box::new(std::iter::empty())
        }
    };
}
pub(super) use without_validation;

/// Gives a type a named schema in the OpenAPI document. A generic type has one parameter.
macro_rules! described_by {
    ($type:ty $(where $parameter:ident: $bound:ident)? as $name:expr, $register:expr) => {
        impl$(<$parameter: $bound>)? Type for $type {
            const IS_REQUIRED: bool = true;
            $crate::wire::json::without_validation!();

            fn name() -> Cow<'static, str> {
                $name.into()
            }

            fn schema_ref() -> MetaSchemaRef {
                MetaSchemaRef::Reference($name.to_owned())
            }

            fn register(registry: &mut Registry) {
                registry.create_schema::<Self, _>($name.to_owned(), $register);
            }
        }
    };
}
pub(super) use described_by;

/// Gives a type a name and a schema in the OpenAPI document.
macro_rules! described {
    ($type:ident as $name:expr, $schema:expr) => {
        impl Type for $type {
            const IS_REQUIRED: bool = true;
            $crate::wire::json::without_validation!();

            fn name() -> Cow<'static, str> {
                $name
            }

            fn schema_ref() -> MetaSchemaRef {
                $schema
            }
        }

        impl ParseFromJSON for $type {
            fn parse_from_json(value: Option<serde_json::Value>) -> ParseResult<Self> {
                serde_json::from_value(value.unwrap_or_default()).map_err(ParseError::custom)
            }
        }

        impl ToJSON for $type {
            fn to_json(&self) -> Option<serde_json::Value> {
                serde_json::to_value(&self.0).ok()
            }
        }
    };
}
pub(super) use described;

macro_rules! free_form {
    ($type:ident, $schema:expr) => {
        described!($type as stringify!($type).into(), MetaSchemaRef::Inline(Box::new($schema)));
    };
}

described!(Number as f64::name(), f64::schema_ref());
described!(Text as String::name(), String::schema_ref());
described!(RequiredText as String::name(), String::schema_ref());
described!(SerializedObject as AnyObject::name(), AnyObject::schema_ref());
free_form!(AnyValue, MetaSchema::ANY);
free_form!(AnyObject, MetaSchema { additional_properties: Some(Box::new(anything())), ..MetaSchema::new("object") });
free_form!(
    Stages,
    MetaSchema {
        items: Some(Box::new(MetaSchemaRef::Inline(Box::new(MetaSchema {
            additional_properties: Some(Box::new(anything())),
            ..MetaSchema::new("object")
        })))),
        ..MetaSchema::new("array")
    }
);
free_form!(
    ExpectedVersion,
    MetaSchema {
        one_of: vec![
            MetaSchemaRef::Inline(Box::new(MetaSchema::new("integer"))),
            MetaSchemaRef::Inline(Box::new(MetaSchema {
                enum_items: vec!["none".into(), "exists".into(), "any".into()],
                ..MetaSchema::new("string")
            })),
        ],
        ..MetaSchema::ANY
    }
);

fn anything() -> MetaSchemaRef {
    MetaSchemaRef::Inline(Box::new(MetaSchema::ANY))
}
