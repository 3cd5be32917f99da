//! Request bodies held as raw objects, because some fields have several spellings. The OpenAPI document shows a schema.

use std::borrow::Cow;
use std::marker::PhantomData;

use foldwork_engine::model::value::Object;
use poem_openapi::registry::{MetaSchemaRef, Registry};
use poem_openapi::types::Type;
use serde::{Deserialize, Deserializer};

/// A request body as it was sent. `T` is the schema in the OpenAPI document.
pub struct Received<T> {
    pub fields: Object,
    shown: PhantomData<fn() -> T>,
}

impl<'de, T> Deserialize<'de> for Received<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Received<T>, D::Error> {
        Ok(Received { fields: Object::deserialize(deserializer)?, shown: PhantomData })
    }
}

impl<T: Type> Type for Received<T> {
    const IS_REQUIRED: bool = true;
    type RawValueType = Self;
    type RawElementValueType = Self;

    fn name() -> Cow<'static, str> {
        T::name()
    }

    fn schema_ref() -> MetaSchemaRef {
        T::schema_ref()
    }

    fn register(registry: &mut Registry) {
        T::register(registry);
    }

    fn as_raw_value(&self) -> Option<&Self> {
        Some(self)
    }

    fn raw_element_iter<'a>(&'a self) -> Box<dyn Iterator<Item = &'a Self> + 'a> {
        Box::new(std::iter::empty())
    }
}
