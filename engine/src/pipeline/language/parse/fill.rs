//! Parses `$fill`. Fields with a `method` become a `$setWindowFields`. Fields with a `value` become a `$set` after the
//! `$setWindowFields`.

use super::set_window_fields::{PartitionOrder, check_names, mistyped, object_in, partition, specification};
use crate::model::excerpt::excerpt_of;
use crate::model::value::{Object, Value};
use crate::pipeline::expression::expr::{self, Expr, ParseScope};
use crate::pipeline::expression::projection;
use crate::pipeline::expression::window;
use crate::pipeline::language::ast::Fill;
use crate::pipeline::value::error::{Error, Result};
use crate::pipeline::value::path::FieldPath;

const NAME: &str = "$fill";
const ARGUMENTS: [&str; 4] = ["partitionBy", "partitionByFields", "sortBy", "output"];

/// The way in which `$fill` fills one field: by the window function of a method, by an expression, or not at all.
enum FillMethod<'s> {
    Method(&'static str),
    Value(&'s Value),
    Nothing,
}

pub fn parse(value: &Value, scope: &ParseScope) -> Result<Fill> {
    let object = specification(NAME, value, &ARGUMENTS)?;
    let output = object_in(NAME, object, "output")?;
    if output.is_empty() {
        return Err(Error::new(6_050_203, "The $fill stage requires a non-empty 'output' object"));
    }
    let partition = key(object, scope)?;
    let order = PartitionOrder::parse(NAME, object).map_err(|error| error.within("sortBy"))?;
    let (mut outputs, mut fields, mut values) = (Vec::new(), Vec::new(), Object::new());
    for (field, spec) in output.iter() {
        let within = |error: Error| error.within(field.clone()).within("output");
        FieldPath::parse(field).map_err(within)?;
        match filled(spec).map_err(within)? {
            FillMethod::Method(function) => {
                // The window function of a method fills the field from the field's own values.
                let spec: Value = Object::from_iter([(function, Value::from(format!("${field}")))]).into();
                outputs.push(window::parse(field, &spec, &order.sorting(), scope).map_err(within)?);
                fields.push(field);
            }
            FillMethod::Value(spec) => {
                let old = Value::from(format!("${field}"));
                let value: Value = Object::from_iter([("$ifNull", Value::from(vec![old, spec.clone()]))]).into();
                values.insert(field.clone(), value);
            }
            FillMethod::Nothing => {}
        }
    }
    let windows = match outputs.is_empty() {
        true => None,
        false => Some(order.into_windows(NAME, partition, outputs, fields.into_iter(), scope)?),
    };
    let values = match values.is_empty() {
        true => None,
        false => Some(projection::set(NAME, &values.into(), scope)?),
    };
    Ok(Fill { windows, values })
}

fn filled(spec: &Value) -> Result<FillMethod<'_>> {
    let Value::Object(object) = spec else {
        return Err(Error::new(6_050_200, "Each field of the 'output' of $fill must be an object"));
    };
    check_names("$fill.output", object, &["method", "value"])?;
    // A method that is null counts as absent. A value that is null is the constant null.
    match (object.get("method").filter(|method| !method.is_null()), object.get("value")) {
        (Some(_), Some(_)) => {
            Err(Error::new(6_050_201, "Each output of $fill must have at most one of 'method' and 'value'"))
        }
        (Some(Value::String(method)), None) => match &**method {
            "locf" => Ok(FillMethod::Method("$locf")),
            "linear" => Ok(FillMethod::Method("$linearFill")),
            other => {
                let text = format!("Method must be either locf or linear, but found {}", excerpt_of(other));
                Err(Error::new(6_050_202, text))
            }
        },
        (Some(other), None) => Err(mistyped("$fill.output", "method", other, "string")),
        (None, Some(value)) => Ok(FillMethod::Value(value)),
        (None, None) => Ok(FillMethod::Nothing),
    }
}

/// Parses the key of partitions: an expression, or the names of fields. An argument that is null counts as absent.
fn key(object: &Object, scope: &ParseScope) -> Result<Option<Expr>> {
    let given = |name: &str| object.get(name).filter(|value| !value.is_null());
    match (given("partitionBy"), given("partitionByFields")) {
        (Some(_), Some(_)) => Err(Error::new(
            6_050_204,
            "Maximum one of 'partitionBy' and 'partitionByFields can be specified in '$fill'",
        )),
        (Some(spec @ (Value::String(_) | Value::Object(_))), None) => {
            partition(Some(spec), scope).map_err(|error| error.within("partitionBy"))
        }
        (Some(other), None) => Err(mistyped("$fill", "partitionBy", other, "object")),
        (None, Some(Value::Array(names))) => by_fields(names, scope).map_err(|error| error.within("partitionByFields")),
        (None, Some(other)) => Err(mistyped("$fill", "partitionByFields", other, "array")),
        (None, None) => Ok(None),
    }
}

fn by_fields(names: &[Value], scope: &ParseScope) -> Result<Option<Expr>> {
    let mut key = Object::new();
    for name in names {
        let Value::String(name) = name else { return Err(mistyped("$fill", "partitionByFields", name, "string")) };
        FieldPath::parse(name)?;
        // The names in an object expression must not contain dots. Any distinct names give the same partitions.
        key.insert(name.replace('.', "\u{1}"), Value::from(format!("${name}")));
    }
    if key.is_empty() {
        return Ok(None);
    }
    expr::parse(&key.into(), scope).map(Some)
}
