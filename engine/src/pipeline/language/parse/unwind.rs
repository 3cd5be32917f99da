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
                    ("path", other) => {
                        let text =
                            format!("expected a string as the path for $unwind stage, got {}", other.type_name());
                        return Err(Error::new(28808, text));
                    }
                    ("preserveNullAndEmptyArrays", Value::Bool(flag)) => preserve = *flag,
                    ("preserveNullAndEmptyArrays", other) => {
                        let text = format!(
                            "expected a boolean for the preserveNullAndEmptyArrays option to $unwind stage, got {}",
                            other.type_name()
                        );
                        return Err(Error::new(28809, text));
                    }
                    ("includeArrayIndex", Value::String(text)) if !text.is_empty() => index = Some(&**text),
                    ("includeArrayIndex", other) => {
                        let text = format!(
                            "expected a non-empty string for the includeArrayIndex  option to $unwind stage, got {}",
                            other.type_name()
                        );
                        return Err(Error::new(28810, text));
                    }
                    (unknown, _) => return err!(28811, "unrecognized option to $unwind stage: {unknown}"),
                }
            }
        }
        other => {
            let text = format!(
                "expected either a string or an object as specification for $unwind stage, got {}",
                other.type_name()
            );
            return Err(Error::new(15981, text));
        }
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
