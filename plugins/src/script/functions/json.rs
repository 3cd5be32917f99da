//! Functions that convert between JSON text and values.

use foldwork_engine::model::json;
use foldwork_engine::model::value::Value;
use rhai::{Dynamic, Engine, ImmutableString, NativeCallContext};

use super::registration::{Refused, function, thrown, too_large};
use crate::script::convert::{ValueReader, to_dynamic};

pub(super) fn register(engine: &mut Engine) {
    function(
        "parse_json",
        &["text: string", "?"],
        "Parses a JSON text. Throws if the text is not valid JSON.",
        r#"parse_json("{\"a\": [1, null]}") == #{a: [1, ()]}"#,
    )
    .register_into_engine(engine, |text: &str| -> Result<Dynamic, Refused> {
        json::parse(text.as_bytes())
            .map(|value| to_dynamic(&value))
            .map_err(|error| thrown(format!("the text is not valid JSON: {error}")))
    });
    function(
        "to_json",
        &["value: ?", "string"],
        "Returns a value as JSON, with the fields of maps in alphabetical order.",
        r#"to_json(#{b: 1, a: [true, ()]}) == "{\"a\":[true,null],\"b\":1}""#,
    )
    .register_into_engine(engine, |context: NativeCallContext, value: Dynamic| {
        to_json(&context, |reader| reader.read(&value))
    });
}

/// Returns the JSON text of a value. Fails if the value cannot be represented in JSON. Also fails if the size of the
/// value shows that the text would exceed the maximum size of strings. The interpreter also uses this function to
/// convert maps and arrays to strings.
pub(in crate::script) fn to_json(
    context: &NativeCallContext,
    read: impl FnOnce(&mut ValueReader) -> Result<Value, String>,
) -> Result<ImmutableString, Refused> {
    // An item of an array takes at least `size_of::<Value>()` bytes as a value, and at least two bytes as JSON.
    let bytes = context.engine().max_string_size().saturating_mul(size_of::<Value>() / 2);
    let mut reader = ValueReader::new("value", bytes);
    let value = read(&mut reader).map_err(|message| match reader.is_exceeded() {
        true => too_large("a JSON text is"),
        false => thrown(message),
    })?;
    Ok(json::text(&value).into())
}
