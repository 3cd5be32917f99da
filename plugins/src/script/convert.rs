//! Converts between values of the engine and values of the interpreter, without JSON text in between.

use foldwork_engine::model::date::format_date;
use foldwork_engine::model::json::MAX_DEPTH;
use foldwork_engine::model::value::{Object, Value};
use rhai::{Array, Dynamic, ImmutableString, Map};

/// Converts a value of the engine into a value of the interpreter. Null becomes `()`, a decimal becomes its text, and a
/// date becomes its RFC 3339 text.
pub(super) fn to_dynamic(value: &Value) -> Dynamic {
    match value {
        Value::Null => Dynamic::UNIT,
        Value::Bool(flag) => Dynamic::from_bool(*flag),
        Value::Int(number) => Dynamic::from_int(*number),
        Value::Double(number) => Dynamic::from_float(*number),
        Value::Decimal(number) => number.to_string().into(),
        Value::Date(ms) => format_date(*ms).into(),
        Value::String(text) => text_to_dynamic(text),
        Value::Array(items) => Dynamic::from_array(items.iter().map(to_dynamic).collect()),
        Value::Object(object) => Dynamic::from_map(to_map(object)),
    }
}

pub(super) fn to_map(object: &Object) -> Map {
    object.iter().map(|(name, value)| ((&**name).into(), to_dynamic(value))).collect()
}

pub(super) fn text_to_dynamic(text: &str) -> Dynamic {
    Dynamic::from(ImmutableString::from(text))
}

/// A reader that converts values of the interpreter into values of the engine. Rejects values that are too large,
/// nested too deeply, or not representable in JSON.
pub(super) struct ValueReader {
    max_bytes: usize,
    bytes_left: usize,
    is_exceeded: bool,
    /// The path of the value that is being read, for messages.
    path: String,
}

impl ValueReader {
    /// Creates a reader for one value of at most `bytes` bytes. `name` is the name of the value in messages.
    pub(super) fn new(name: &str, bytes: usize) -> ValueReader {
        ValueReader { max_bytes: bytes, bytes_left: bytes, is_exceeded: false, path: name.to_owned() }
    }

    /// Returns whether the reader has rejected a value because the value is larger than the maximum size.
    pub(super) fn is_exceeded(&self) -> bool {
        self.is_exceeded
    }

    pub(super) fn read(&mut self, value: &Dynamic) -> Result<Value, String> {
        self.value(value, MAX_DEPTH)
    }

    pub(super) fn read_map(&mut self, map: &Map) -> Result<Value, String> {
        self.map(map, MAX_DEPTH)
    }

    pub(super) fn read_array(&mut self, items: &Array) -> Result<Value, String> {
        self.array(items, MAX_DEPTH)
    }

    fn value(&mut self, value: &Dynamic, depth: usize) -> Result<Value, String> {
        self.take(size_of::<Value>())?;
        if value.is_unit() {
            Ok(Value::Null)
        } else if let Ok(text) = value.as_immutable_string_ref() {
            self.take(text.len())?;
            Ok(Value::from(text.as_str()))
        } else if let Ok(number) = value.as_int() {
            Ok(Value::Int(number))
        } else if let Ok(flag) = value.as_bool() {
            Ok(Value::Bool(flag))
        } else if let Ok(number) = value.as_float() {
            let finite = number.is_finite().then_some(Value::Double(number));
            finite.ok_or_else(|| format!("{} is not a finite number", self.path))
        } else if let Ok(map) = value.as_map_ref() {
            self.map(&map, depth)
        } else if let Ok(items) = value.as_array_ref() {
            self.array(&items, depth)
        } else if let Ok(character) = value.as_char() {
            Ok(Value::from(character.to_string()))
        } else {
            Err(format!("{} has the type {}; expected a map, an array or a scalar", self.path, value.type_name()))
        }
    }

    fn map(&mut self, map: &Map, depth: usize) -> Result<Value, String> {
        let depth = self.deeper(depth)?;
        let mut object = Object::with_capacity(map.len());
        for (name, value) in map {
            self.take(name.len())?;
            let end = self.path.len();
            self.path.push('.');
            self.path.push_str(name);
            object.push(name.as_str(), self.value(value, depth)?);
            self.path.truncate(end);
        }
        Ok(object.into())
    }

    fn array(&mut self, items: &Array, depth: usize) -> Result<Value, String> {
        let depth = self.deeper(depth)?;
        let mut values = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            let end = self.path.len();
            self.path.push_str(&format!("[{index}]"));
            values.push(self.value(item, depth)?);
            self.path.truncate(end);
        }
        Ok(values.into())
    }

    fn deeper(&self, depth: usize) -> Result<usize, String> {
        depth.checked_sub(1).ok_or_else(|| format!("{} is nested more than {MAX_DEPTH} levels deep", cut(&self.path)))
    }

    fn take(&mut self, bytes: usize) -> Result<(), String> {
        let Some(remaining) = self.bytes_left.checked_sub(bytes) else {
            self.is_exceeded = true;
            let (max_bytes, path) = (self.max_bytes, cut(&self.path));
            return Err(format!("the value is larger than {max_bytes} bytes; the limit is exceeded at {path}"));
        };
        self.bytes_left = remaining;
        Ok(())
    }
}

/// Returns at most the first 100 bytes of a path.
fn cut(path: &str) -> &str {
    &path[..path.floor_char_boundary(100)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_unchanged_after_conversion_to_rhai_and_back() {
        let json = r#"{"a":9007199254740993,"b":0.5,"c":null,"d":[true,"ä",[]],"e":{"f":{}}}"#;
        let value = foldwork_engine::model::json::parse(json.as_bytes()).expect("JSON");
        let back = ValueReader::new("value", 10_000).read(&to_dynamic(&value)).expect("data");
        assert_eq!(foldwork_engine::model::json::text(&back), json);
    }

    #[test]
    fn invalid_and_oversized_values_are_rejected_with_their_path() {
        let read = |value: Dynamic, bytes| ValueReader::new("facts", bytes).read(&value).expect_err("refused");
        let map = |value: Dynamic| Dynamic::from_map(Map::from_iter([("x".into(), Dynamic::from_array(vec![value]))]));
        assert_eq!(read(map(Dynamic::from_float(f64::NAN)), 1_000), "facts.x[0] is not a finite number");
        assert_eq!(
            read(map("long".repeat(100).into()), 300),
            "the value is larger than 300 bytes; the limit is exceeded at facts.x[0]"
        );
        assert!(read(map(Dynamic::from(0..3_i64)), 1_000).contains("facts.x[0] has the type"));
        let nested = (0..300).fold(Dynamic::UNIT, |inner, _| Dynamic::from_array(vec![inner]));
        assert!(read(nested, 100_000).contains("nested more than 180 levels deep"));
    }
}
