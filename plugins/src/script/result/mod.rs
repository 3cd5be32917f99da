//! Reads the results of hooks and rejects unexpected values. Every error names the path of the wrong value.

pub(super) mod assignments;
pub(super) mod facts;
pub(super) mod product;
pub(super) mod tool;

use std::sync::Arc;

use foldwork_engine::hook::Hook;
use foldwork_engine::model::facts::EventFact;
use foldwork_engine::model::id::is_valid_name;
use foldwork_engine::model::value::{Object, Value};
use rhai::Dynamic;

use super::convert::ValueReader;
use crate::limits::CallLimits;
use crate::suggestion::hint;

/// Converts the result of a hook to a value of the engine. Fails if [`ValueReader`] rejects the result.
pub(super) fn value_of(returned: &Dynamic, hook: Hook, limits: &CallLimits) -> Result<Value, String> {
    ValueReader::new(name(hook), limits.string_bytes.saturating_mul(4)).read(returned)
}

/// Returns the name that messages use for a hook's result.
fn name(hook: Hook) -> &'static str {
    match hook {
        Hook::Enrich => "facts",
        Hook::Route => "assignments",
        Hook::Work | Hook::Mount => "product",
        Hook::Tool => "result",
    }
}

/// The fields of a map, with the map's path in the result.
struct ResultFields<'a> {
    path: String,
    object: &'a Object,
}

impl<'a> ResultFields<'a> {
    /// Returns the fields of `value`. Fails if `value` is not a map or has a field that is not among `known`.
    fn of(path: String, value: &'a Value, known: &[&str]) -> Result<ResultFields<'a>, String> {
        let Some(object) = value.as_object() else {
            return Err(format!("{path} is {}, not a map", kind(value)));
        };
        if let Some(unknown) = object.keys().find(|name| !known.contains(&&***name)) {
            return Err(format!("{path}.{unknown} is unknown; {}", hint(unknown, known, "")));
        }
        Ok(ResultFields { path, object })
    }

    fn path(&self, name: &str) -> String {
        format!("{}.{name}", self.path)
    }

    /// Returns the value of a field, or `None` if the field is missing or null.
    fn get(&self, name: &str) -> Option<&'a Value> {
        self.object.get(name).filter(|value| !value.is_null())
    }

    /// Returns a field, converted by `read`, or the default if the field is missing or null. Fails if `read` does not
    /// accept the value, because the value is not `expected`.
    fn typed<T: Default>(
        &self,
        name: &str,
        expected: &str,
        read: impl Fn(&'a Value) -> Option<T>,
    ) -> Result<T, String> {
        let Some(value) = self.get(name) else { return Ok(T::default()) };
        read(value).ok_or_else(|| format!("{} is {}, not {expected}", self.path(name), kind(value)))
    }

    fn text(&self, name: &str) -> Result<Option<&'a str>, String> {
        self.typed(name, "a string", |value| value.as_str().map(Some))
    }

    fn needed_text(&self, name: &str) -> Result<&'a str, String> {
        self.text(name)?.filter(|text| !text.is_empty()).ok_or_else(|| format!("{} is missing", self.path(name)))
    }

    fn object(&self, name: &str) -> Result<Object, String> {
        self.typed(name, "a map", |value| value.as_object().cloned())
    }

    fn flag(&self, name: &str) -> Result<bool, String> {
        self.typed(name, "a boolean", |value| if let Value::Bool(flag) = value { Some(*flag) } else { None })
    }

    /// Returns the items of an array field, converted by `read`. `read` also receives the path of the item. Returns no
    /// items if the field is missing or null.
    fn list<T>(
        &self,
        name: &str,
        max_items: usize,
        read: impl Fn(String, &'a Value) -> Result<T, String>,
    ) -> Result<Vec<T>, String> {
        self.get(name).map_or(Ok(Vec::new()), |value| list(&self.path(name), value, max_items, read))
    }
}

fn list<'a, T>(
    path: &str,
    value: &'a Value,
    max_items: usize,
    read: impl Fn(String, &'a Value) -> Result<T, String>,
) -> Result<Vec<T>, String> {
    let Some(items) = value.as_array() else { return Err(format!("{path} is {}, not an array", kind(value))) };
    if items.len() > max_items {
        return Err(format!("{path} has {} items; at most {max_items} are allowed", items.len()));
    }
    items.iter().enumerate().map(|(index, item)| read(format!("{path}[{index}]"), item)).collect()
}

fn text<'a>(path: &str, value: &'a Value) -> Result<&'a str, String> {
    value.as_str().ok_or_else(|| format!("{path} is {}, not a string", kind(value)))
}

fn shared(path: &str, value: &Value) -> Result<Arc<str>, String> {
    match text(path, value)? {
        "" => Err(format!("{path} is empty")),
        text => Ok(text.into()),
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "()",
        Value::Bool(_) => "a boolean",
        Value::Int(_) => "an integer",
        Value::Double(_) => "a number",
        Value::Decimal(_) => "a decimal",
        Value::Date(_) => "a date",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "a map",
    }
}

/// Converts JSON text to a value, as if a script had returned the value.
#[cfg(test)]
fn of_json(json: &str) -> Value {
    foldwork_engine::model::json::parse(json.as_bytes()).expect("JSON")
}

/// Reads an event `#{event_type, payload}`. If `aggregate_type` is given, the event must be for an aggregate of this
/// type.
fn event(path: String, value: &Value, aggregate_type: Option<&str>) -> Result<EventFact, String> {
    let fields = ResultFields::of(path, value, &["event_type", "payload"])?;
    let event_type = fields.needed_text("event_type")?;
    let verb = event_type.split_once('.').filter(|(prefix, verb)| is_valid_name(prefix) && is_valid_name(verb));
    match (verb, aggregate_type) {
        (None, _) => Err(format!(
            "{} is '{event_type}', not <type>.<verb> with names that match [a-z][a-z0-9_-]{{0,63}}",
            fields.path("event_type")
        )),
        (Some((prefix, _)), Some(expected)) if prefix != expected => {
            Err(format!("{} is '{event_type}', but must begin with '{expected}.'", fields.path("event_type")))
        }
        (Some(_), _) => Ok(EventFact { event_type: event_type.to_owned(), payload: fields.object("payload")? }),
    }
}
