//! Parses `$unwind`.

use crate::model::value::Value;
use crate::pipeline::language::ast::Unwind;
use crate::pipeline::value::error::{Error, Result, err};
use crate::pipeline::value::path::FieldPath;

pub fn parse(value: &Value) -> Result<Unwind> {
    let (mut path, mut index, mut preserve) = (None, None, false);
    match value {
        Value::String(text) => path = Some(&**text),
        Value::Object(object) => {
            for (name, value) in object.iter() {
                match (&**name, value) {
                    ("path", Value::String(text)) => path = Some(&**text),
                    ("path", other) => return Err(mistyped(28808, "a string as the path for", other)),
                    ("preserveNullAndEmptyArrays", Value::Bool(flag)) => preserve = *flag,
                    ("preserveNullAndEmptyArrays", other) => {
                        return Err(mistyped(28809, "a boolean for the preserveNullAndEmptyArrays option to", other));
                    }
                    ("includeArrayIndex", Value::String(text)) if !text.is_empty() => index = Some(&**text),
                    ("includeArrayIndex", other) => {
                        return Err(mistyped(28810, "a non-empty string for the includeArrayIndex  option to", other));
                    }
                    (unknown, _) => return err!(28811, "unrecognized option to $unwind stage: {unknown}"),
                }
            }
        }
        other => return Err(mistyped(15981, "either a string or an object as specification for", other)),
    }
    let path =
        path.filter(|path| !path.is_empty()).ok_or_else(|| Error::new(28812, "no path specified to $unwind stage"))?;
    let path = path.strip_prefix('$').ok_or_else(|| {
        Error::new(28818, format!("path option to $unwind stage should be prefixed with a '$': {path}"))
    })?;
    if path.contains('\0') {
        return Err(Error::new(16419, "field path must not contain embedded null characters"));
    }
    if let Some(index) = index.filter(|index| index.starts_with('$')) {
        let text = format!("includeArrayIndex option to $unwind stage should not be prefixed with a '$': {index}");
        return Err(Error::new(28822, text));
    }
    Ok(Unwind { path: FieldPath::parse(path)?, index: index.map(FieldPath::parse).transpose()?, preserve })
}

fn mistyped(code: i32, expected: &str, found: &Value) -> Error {
    Error::new(code, format!("expected {expected} $unwind stage, got {}", found.type_name()))
}
