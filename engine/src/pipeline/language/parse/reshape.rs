//! Parses `$unset` and `$replaceRoot`.

use crate::model::value::Value;
use crate::pipeline::expression::expr;
use crate::pipeline::expression::expr::{Expr, ParseScope};
use crate::pipeline::expression::projection;
use crate::pipeline::expression::projection::Projection;
use crate::pipeline::value::error::{Error, Result, err};

pub fn unset(value: &Value) -> Result<Projection> {
    let paths = match value {
        Value::String(path) => vec![&**path],
        Value::Array(items) if items.is_empty() => {
            return Err(Error::new(31119, "$unset specification must be a string or an array with at least one field"));
        }
        Value::Array(items) => {
            let paths: Option<Vec<&str>> = items.iter().map(Value::as_str).collect();
            paths.ok_or_else(|| {
                Error::new(31120, "$unset specification must be a string or an array containing only string values")
            })?
        }
        _ => return Err(Error::new(31002, "$unset specification must be a string or an array")),
    };
    if paths.iter().any(|path| path.contains('\0')) {
        return Err(Error::new(9527900, "$unset field path must not contain an embedded null byte"));
    }
    projection::exclusion(&paths)
}

pub fn replace_root(value: &Value, scope: &ParseScope) -> Result<Expr> {
    let Value::Object(object) = value else {
        let text = format!("expected an object as specification for $replaceRoot stage, got {}", value.type_name());
        return Err(Error::new(40229, text));
    };
    if let Some(unknown) = object.keys().find(|name| &***name != "newRoot") {
        return err!(40415, "BSON field '$replaceRoot.{unknown}' is an unknown field.");
    }
    match object.get("newRoot") {
        Some(new_root) => expr::parse(new_root, scope),
        None => Err(Error::new(40414, "BSON field '$replaceRoot.newRoot' is missing but a required field")),
    }
}
