//! Request bodies in which a field may have several names. A field keeps the value that the client sent. The value is
//! checked only when the handler reads the field, so that the error contains the name that the client used.

use std::borrow::Cow;
use std::marker::PhantomData;
use std::ops::Deref;

use foldwork_engine::Error;
use foldwork_engine::model::date::parse_date;
use foldwork_engine::model::json;
use foldwork_engine::model::value::{Object, Value};
use foldwork_engine::model::violation::{Violation, Violations};
use foldwork_engine::model::written::numbers::Numbers;
use foldwork_engine::model::written::with_numbers_of;
use poem_openapi::registry::{MetaSchemaRef, Registry};
use poem_openapi::types::{ParseFromJSON, ParseResult, ToJSON, Type};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::names;

/// A request body whose fields have the type [`SentField`].
pub trait FromFields {
    /// All accepted names of the fields.
    const NAMES: &'static [&'static str];
    /// Whether a body with unknown fields is rejected. If such bodies were accepted, a misspelled field such as
    /// `expectedVersion` would be ignored, and the action would apply to any version of the task.
    const IS_CLOSED: bool;

    fn from_fields(fields: &Object) -> Self;
}

/// Declares a struct of [`SentField`] fields with its schema and its [`FromFields`]. A body with unknown fields is
/// rejected, unless the declaration begins with `open`.
macro_rules! sent_fields {
    (open $($declared:tt)+) => {
        $crate::wire::request_body::sent_fields!(@ false, $($declared)+);
    };
    (
        @ $is_closed:literal, $(#[$about:meta])*
        $visibility:vis struct $body:ident;
        $($(#[$note:meta])* $seen:vis $field:ident: $type:ty,)+
    ) => {
        #[derive(poem_openapi::Object)]
        $(#[$about])*
        $visibility struct $body {
            $($(#[$note])* $seen $field: $type,)+
        }

        impl $crate::wire::request_body::FromFields for $body {
            const NAMES: &'static [&'static str] = &[$(stringify!($field)),+];
            const IS_CLOSED: bool = $is_closed;

            fn from_fields(fields: &foldwork_engine::model::value::Object) -> $body {
                $body { $($field: $crate::wire::request_body::SentField::of(fields, stringify!($field))),+ }
            }
        }
    };
    ($($declared:tt)+) => {
        $crate::wire::request_body::sent_fields!(@ true, $($declared)+);
    };
}
pub(super) use sent_fields;

/// A request body that is read field by field.
pub struct ReceivedBody<T> {
    pub request: T,
    /// All fields, including the fields that `T` does not declare.
    pub fields: Object,
}

impl<T> Deref for ReceivedBody<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.request
    }
}

impl<'de, T: FromFields> Deserialize<'de> for ReceivedBody<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<ReceivedBody<T>, D::Error> {
        let text = <&RawValue>::deserialize(deserializer)?.get();
        let fields = read_fields(text).map_err(D::Error::custom)?;
        if T::IS_CLOSED {
            names::only(&fields, T::NAMES).map_err(D::Error::custom)?;
        }
        Ok(ReceivedBody { request: T::from_fields(&fields), fields })
    }
}

/// Reads the fields of a body. Numbers that no [`Value`] represents exactly keep their text.
fn read_fields(text: &str) -> Result<Object, serde_json::Error> {
    Ok(with_numbers_of(json::read(text.as_bytes())?, text))
}

/// A request body that the handler passes to the engine unchanged. `T` is the schema in the OpenAPI document.
pub struct ForwardedBody<T> {
    pub fields: Object,
    shown: PhantomData<fn() -> T>,
}

impl<'de, T> Deserialize<'de> for ForwardedBody<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<ForwardedBody<T>, D::Error> {
        Ok(ForwardedBody { fields: Object::deserialize(deserializer)?, shown: PhantomData })
    }
}

/// A field with the value that the client sent. `T` is the schema in the OpenAPI document.
#[derive(Debug)]
pub struct SentField<T> {
    name: &'static str,
    value: Option<Value>,
    /// The texts of the numbers that a [`Value`] cannot represent exactly.
    numbers: Option<Numbers>,
    is_null: bool,
    shown: PhantomData<fn() -> T>,
}

/// An optional field with a string.
pub type SentText = SentField<Option<String>>;

impl<T> SentField<T> {
    /// Returns the field of an object. A field that is null counts as absent.
    pub fn of(fields: &Object, name: &'static str) -> SentField<T> {
        let sent = fields.get(name);
        let is_null = sent.is_some_and(Value::is_null);
        let numbers = fields.numbers_in(name).cloned();
        SentField { name, value: sent.filter(|_| !is_null).cloned(), numbers, is_null, shown: PhantomData }
    }

    /// Returns the value, or `None` if the field is absent. Numbers in an object keep the text that the client wrote.
    pub fn exact(&self) -> Option<Value> {
        self.value().map(|value| exact(value, self.numbers.as_ref()))
    }

    /// Returns the items of the array, or `None` if the field is absent or the value is no array. Numbers in items that
    /// are objects keep the text that the client wrote.
    pub fn exact_items(&self) -> Option<Vec<Value>> {
        let inside = |place| self.numbers.as_ref().and_then(|numbers| numbers.inside(place));
        let items = self.value()?.as_array()?.iter().enumerate();
        Some(items.map(|(place, item)| exact(item, inside(place))).collect())
    }

    pub fn value(&self) -> Option<&Value> {
        self.value.as_ref()
    }

    pub fn is_absent(&self) -> bool {
        self.value.is_none()
    }

    /// Returns the name of the field, and whether the field is present.
    pub fn given(&self) -> (&'static str, bool) {
        (self.name, !self.is_absent())
    }

    /// Returns whether the field was sent as null.
    pub fn is_null(&self) -> bool {
        self.is_null
    }

    /// Returns the JSON pointer of the field.
    pub fn pointer(&self) -> String {
        format!("/{}", self.name)
    }

    /// Returns an error that points to this field.
    pub fn invalid(&self, message: impl Into<String>) -> Error {
        Error::invalid_at(self.pointer(), message)
    }

    /// Returns the text. If the value is not a string, adds a violation and returns `None`.
    pub fn text_or_violation(&self, violations: &mut Violations) -> Option<String> {
        match self.value()? {
            Value::String(text) => Some(text.to_string()),
            _ => {
                violations.add(self.pointer(), "expected a string");
                None
            }
        }
    }

    pub fn text(&self) -> Result<Option<String>, Error> {
        self.read("a string", |value| value.as_str().map(str::to_owned))
    }

    pub fn required_text(&self) -> Result<String, Error> {
        self.text()?.ok_or_else(|| self.invalid("required string"))
    }

    pub fn flag(&self) -> Result<Option<bool>, Error> {
        self.read("true or false", |value| if let Value::Bool(flag) = value { Some(*flag) } else { None })
    }

    pub fn integer(&self) -> Result<Option<i64>, Error> {
        self.read("an integer", Value::as_int)
    }

    /// Returns the object, or an empty object if the field is absent.
    pub fn object(&self) -> Result<Object, Error> {
        Ok(self.read("an object", |value| value.as_object().cloned())?.unwrap_or_default())
    }

    /// Returns the value as converted by `content`, or `None` if the field is absent. If the value does not have the
    /// type that `expected` describes, `content` returns `None`, and this function fails.
    fn read<C>(&self, expected: &str, content: impl FnOnce(&Value) -> Option<C>) -> Result<Option<C>, Error> {
        let Some(value) = self.value() else { return Ok(None) };
        content(value).map(Some).ok_or_else(|| self.invalid(format!("expected {expected}")))
    }

    /// Returns the time, in milliseconds since the Unix epoch.
    pub fn time(&self) -> Result<Option<i64>, Error> {
        let Some(text) = self.text()? else { return Ok(None) };
        parse_date(&text).map(Some).ok_or_else(|| self.invalid("expected an RFC 3339 time"))
    }
}

/// Returns a copy of a value. If the value is an object, adds `numbers` to the copy: the numbers of the object as the
/// client wrote them. The copy is then stored and returned with the numbers in this form.
pub fn exact(value: &Value, numbers: Option<&Numbers>) -> Value {
    match (value, numbers) {
        (Value::Object(object), Some(numbers)) => Object::clone(object).with_numbers(numbers.clone()).into(),
        _ => value.clone(),
    }
}

/// Returns the first present field of several fields with the same meaning. If no field is present, returns the first
/// field.
pub fn first<'s, T>(spellings: &[&'s SentField<T>]) -> Option<&'s SentField<T>> {
    let present = spellings.iter().find(|sent| !sent.is_absent());
    present.or(spellings.first()).copied()
}

/// Returns the text of the only present field of several fields with the same meaning, or `None` if no field is
/// present. Fails if several fields are present, or if the value is not a string.
pub fn first_text<T>(spellings: &[&SentField<T>]) -> Result<Option<String>, Error> {
    let given: Vec<(&str, bool)> = spellings.iter().map(|sent| sent.given()).collect();
    if let Some(several) = several(&given) {
        return Err(vec![several].into());
    }
    first(spellings).map_or(Ok(None), SentField::text)
}

/// Returns a violation if several of the fields are present, because only one field would be read. Each item of
/// `fields` consists of the name of a field and whether the field is present.
pub fn several(fields: &[(&str, bool)]) -> Option<Violation> {
    let given: Vec<&str> = fields.iter().filter(|(_, is_present)| *is_present).map(|(name, _)| *name).collect();
    let [_, second, ..] = given[..] else { return None };
    let all: Vec<&str> = fields.iter().map(|(name, _)| *name).collect();
    let message = format!("found `{}`; expected only one of `{}`", given.join("` and `"), all.join("`, `"));
    Some(Violation { pointer: format!("/{second}"), message })
}

impl<T> Default for SentField<T> {
    fn default() -> SentField<T> {
        SentField { name: "", value: None, numbers: None, is_null: false, shown: PhantomData }
    }
}

/// Gives a wrapper type the schema of the wrapped type in the OpenAPI document.
macro_rules! described_as {
    ($wrapper:ident) => {
        impl<T: Type> Type for $wrapper<T> {
            const IS_REQUIRED: bool = T::IS_REQUIRED;
            $crate::wire::json::without_validation!();

            fn name() -> Cow<'static, str> {
                T::name()
            }

            fn schema_ref() -> MetaSchemaRef {
                T::schema_ref()
            }

            fn register(registry: &mut Registry) {
                T::register(registry);
            }
        }
    };
}
described_as!(ReceivedBody);
described_as!(ForwardedBody);
described_as!(SentField);

impl<T: Type> ParseFromJSON for SentField<T> {
    fn parse_from_json(value: Option<serde_json::Value>) -> ParseResult<Self> {
        Ok(SentField { value: value.map(Value::from), ..SentField::default() })
    }
}

impl<T: Type> ToJSON for SentField<T> {
    fn to_json(&self) -> Option<serde_json::Value> {
        serde_json::to_value(self.value()?).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(value: impl Into<Value>) -> SentText {
        SentField::of(&Object::from_iter([("reason", value.into())]), "reason")
    }

    #[test]
    fn a_text_given_in_two_alternative_fields_is_rejected() {
        let (absent, text, null) = (SentText::default(), field("a"), field(Value::Null));
        let refused = first_text(&[&absent, &text, &text]).expect_err("two spellings").to_string();
        assert!(refused.contains("expected only one of"), "{refused}");
        assert_eq!(first_text(&[&absent, &null, &text]).expect("a text"), Some("a".to_owned()));
        assert_eq!(first_text(&[&absent, &null]).expect("nothing"), None);
    }

    #[test]
    fn the_error_about_a_field_has_the_json_pointer_of_the_field() {
        let wrong = field(Value::Int(1)).text().expect_err("a number");
        assert!(matches!(wrong, Error::Invalid { violations, .. } if violations[0].pointer == "/reason"));
    }
}
