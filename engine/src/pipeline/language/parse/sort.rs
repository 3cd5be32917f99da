//! Parses `$sort`.

use crate::model::decimal;
use crate::model::excerpt::excerpt;
use crate::model::value::{Object, Value};
use crate::pipeline::language::ast::SortKey;
use crate::pipeline::value::error::{Error, Result, err};
use crate::pipeline::value::path::FieldPath;
use crate::pipeline::value::query_path::QueryPath;

/// The maximum number of keys of a sort (MongoDB's own limit).
const MAX_KEYS: usize = 32;

pub fn parse(value: &Value) -> Result<Vec<SortKey>> {
    let Value::Object(object) = value else {
        return Err(Error::new(15973, "the $sort key specification must be an object"));
    };
    if object.is_empty() {
        return Err(Error::new(15976, "$sort stage must have at least one sort key"));
    }
    if object.len() > MAX_KEYS {
        return Err(Error::new(13103, "too many compound keys"));
    }
    let keys = object.iter().map(|(name, value)| key(name, value).map_err(|error| error.within(name.clone())));
    keys.collect()
}

fn key(name: &str, value: &Value) -> Result<SortKey> {
    let direction = match value {
        Value::Object(object) => return Err(metadata(object)),
        Value::Int(number) => *number,
        // Only the integral part counts. The cast saturates at the limits of `i64`.
        Value::Double(number) => number.trunc() as i64,
        Value::Decimal(number) => decimal::whole(number.trunc()).unwrap_or(0),
        _ => return err!(15974, "Illegal key in $sort specification: {name}: {}", excerpt(value)),
    };
    if direction != 1 && direction != -1 {
        return Err(Error::new(15975, "$sort key ordering must be 1 (for ascending) or -1 (for descending)"));
    }
    FieldPath::parse(name)?;
    Ok(SortKey { path: QueryPath::new(name), descending: direction == -1 })
}

/// Returns the error for a sort by metadata, which rows do not have.
fn metadata(object: &Object) -> Error {
    match (object.len(), object.get("$meta")) {
        (1, Some(Value::String(name))) if matches!(&**name, "textScore" | "geoNearDistance") => {
            Error::new(40218, format!("query requires {name} metadata, but it is not available"))
        }
        (1, Some(name)) => Error::new(31138, format!("Illegal $meta sort: {}", excerpt(name))),
        _ => Error::new(17312, "$meta is the only expression supported by $sort right now"),
    }
}
