//! Free-form JSON in requests and responses, held as engine values, which keep the order of fields and the precision of
//! integers.

use std::borrow::Cow;

use foldwork_engine::model::value::{Object, Value};
use poem_openapi::registry::{MetaSchema, MetaSchemaRef};
use poem_openapi::types::{ParseError, ParseFromJSON, ParseResult, ToJSON, Type};
use serde::{Deserialize, Serialize};

/// Any JSON value.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct AnyValue(pub Value);

/// A JSON object.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct AnyObject(pub Object);

/// An array of pipeline stages. The pipeline parser validates the stages and reports errors with MongoDB's messages.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Stages(pub Value);

/// The expected version of a stream: a number, `none`, `exists` or `any`.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ExpectedVersion(pub Value);

macro_rules! free_form {
    ($type:ident, $schema:expr) => {
        impl Type for $type {
            const IS_REQUIRED: bool = true;
            type RawValueType = Self;
            type RawElementValueType = Self;

            fn name() -> Cow<'static, str> {
                stringify!($type).into()
            }

            fn schema_ref() -> MetaSchemaRef {
                MetaSchemaRef::Inline(Box::new($schema))
            }

            fn as_raw_value(&self) -> Option<&Self> {
                Some(self)
            }

            fn raw_element_iter<'a>(&'a self) -> Box<dyn Iterator<Item = &'a Self> + 'a> {
                Box::new(std::iter::empty())
            }
        }

        impl ParseFromJSON for $type {
            fn parse_from_json(value: Option<serde_json::Value>) -> ParseResult<Self> {
                serde_json::from_value(value.unwrap_or_default()).map($type).map_err(ParseError::custom)
            }
        }

        impl ToJSON for $type {
            fn to_json(&self) -> Option<serde_json::Value> {
                serde_json::to_value(&self.0).ok()
            }
        }
    };
}

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
