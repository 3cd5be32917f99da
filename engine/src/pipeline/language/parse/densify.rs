//! Parses `$densify`.

use super::set_window_fields::{check_names, missing, mistyped};
use crate::model::excerpt::{excerpt, excerpt_of};
use crate::model::value::{Object, Value};
use crate::pipeline::expression::expr::Unit;
use crate::pipeline::language::ast::{Densify, DensifyStep, Range};
use crate::pipeline::value::error::{Error, Result, err};
use crate::pipeline::value::number::whole;
use crate::pipeline::value::path::FieldPath;

const NAME: &str = "$densify";

pub fn parse(value: &Value) -> Result<Densify> {
    let Value::Object(object) = value else {
        return err!(9, "the {NAME} stage specification must be an object, found {}", value.type_name());
    };
    check_names(NAME, object, &["field", "partitionByFields", "range"])?;
    let field = match object.get("field") {
        Some(Value::String(field)) => FieldPath::parse(field).map_err(|error| error.within("field"))?,
        None | Some(Value::Null) => return Err(missing(NAME, "field")),
        Some(other) => return Err(mistyped(NAME, "field", other, "string")),
    };
    let partition = match object.get("partitionByFields") {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(names)) => {
            let name = |name: &Value| match name {
                Value::String(name) => FieldPath::parse(name),
                other => Err(mistyped(NAME, "partitionByFields", other, "string")),
            };
            names.iter().map(name).collect::<Result<_>>().map_err(|error| error.within("partitionByFields"))?
        }
        Some(other) => return Err(mistyped(NAME, "partitionByFields", other, "array")),
    };
    let range = match object.get("range") {
        Some(Value::Object(range)) => range,
        None | Some(Value::Null) => return Err(missing(NAME, "range")),
        Some(other) => return Err(mistyped(NAME, "range", other, "object")),
    };
    let (step, range) = parse_range(range, !partition.is_empty()).map_err(|error| error.within("range"))?;
    Ok(Densify { field, partition, step, range })
}

fn parse_range(object: &Object, has_partitions: bool) -> Result<(DensifyStep, Range)> {
    const RANGE: &str = "RangeStatement";
    check_names(RANGE, object, &["step", "unit", "bounds"])?;
    let step = object.get("step").filter(|step| !step.is_null()).ok_or_else(|| missing(RANGE, "step"))?;
    let bounds = object.get("bounds").filter(|bounds| !bounds.is_null()).ok_or_else(|| missing(RANGE, "bounds"))?;
    if !step.is_number() {
        return Err(mistyped(RANGE, "step", step, "number"));
    }
    if step.as_f64().is_none_or(|step| step.is_nan() || step <= 0.0) {
        let text = "The step parameter in a range statement must be a strictly positive numeric value";
        return Err(Error::new(5_733_401, text));
    }
    let unit = match object.get("unit") {
        None | Some(Value::Null) => None,
        Some(Value::String(name)) => {
            let unknown = || Error::new(9, format!("unknown time unit value: {}", excerpt_of(name)));
            Some(Unit::parse(name).ok_or_else(unknown)?)
        }
        Some(other) => return Err(mistyped(RANGE, "unit", other, "string")),
    };
    let step = match unit {
        None => DensifyStep::Number(step.clone()),
        Some(unit) => {
            let text = "The step parameter in a range statement must be a whole number when densifying a date range";
            DensifyStep::Time(whole(step).ok_or_else(|| Error::new(6_586_400, text))?, unit)
        }
    };
    let range = match bounds {
        Value::Array(items) => between(items, &step)?,
        Value::String(name) => match &**name {
            "full" => Range::Full,
            "partition" if has_partitions => Range::Partition,
            "partition" => {
                let text = "One may not specify the bounds as 'partition' without specifying a non-empty array of \
                            partitionByFields. You may have meant to specify 'full' bounds.";
                return Err(Error::new(5_733_408, text));
            }
            other => {
                let text =
                    format!("Bounds string must either be 'full' or 'partition', but found {}", excerpt_of(other));
                return Err(Error::new(5_946_802, text));
            }
        },
        _ => {
            let text = "The bounds in a range statement must be the string 'full' or 'partition' or an ascending array \
                        of two numbers or two dates.";
            return Err(Error::new(5_733_404, text));
        }
    };
    Ok((step, range))
}

fn between(items: &[Value], step: &DensifyStep) -> Result<Range> {
    let [lower, upper] = items else {
        let text = "A bounding array in a range statement must have exactly two elements";
        return Err(Error::new(5_733_403, text));
    };
    // As in MongoDB, the order is checked before the types. Values of different types are in the order of their types.
    if lower > upper {
        let text = "A bounding array in a range statement must be given in ascending order";
        return Err(Error::new(5_733_402, text));
    }
    check_types(lower, upper, step)?;
    Ok(Range::Between(lower.clone(), upper.clone()))
}

fn check_types(lower: &Value, upper: &Value, step: &DensifyStep) -> Result<()> {
    match (lower, upper, step) {
        (lower, _, DensifyStep::Time(..)) if lower.is_number() => {
            let text = "Numeric bounds may not have unit parameter";
            return Err(Error::new(5_733_409, text));
        }
        (lower, upper, DensifyStep::Number(step)) if lower.is_number() => {
            if !upper.is_number() {
                let text = "A bounding array must contain either both dates or both numeric types";
                return Err(Error::new(5_733_406, text));
            }
            let rank = |value: &Value| value.as_int().is_some();
            if rank(lower) != rank(upper) || rank(lower) != rank(step) {
                let text = "Upper bound, lower bound, and step must all have the same type";
                return Err(Error::new(5_876_900, text));
            }
        }
        (Value::Date(_), Value::Date(_), DensifyStep::Time(..)) => {}
        (Value::Date(_), Value::Date(_), DensifyStep::Number(_)) => {
            return Err(Error::new(5_733_410, "A bounding array of dates must specify a unit"));
        }
        (Value::Date(_), ..) => {
            let text = "A bounding array must contain either both dates or both numeric types";
            return Err(Error::new(5_733_405, text));
        }
        (other, ..) => {
            let text = format!("Lower bound must be a numeric or date, but found {}", excerpt(other));
            return Err(Error::new(5_946_800, text));
        }
    }
    Ok(())
}
