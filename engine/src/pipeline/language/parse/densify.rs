//! Parses `$densify`.

use super::set_window_fields::{check_names, missing, mistyped, object_in, specification};
use crate::model::excerpt::{excerpt, excerpt_of};
use crate::model::value::{Object, Value};
use crate::pipeline::expression::expr::Unit;
use crate::pipeline::language::ast::{Densify, DensifyStep, Range};
use crate::pipeline::value::error::{Error, Result, err};
use crate::pipeline::value::number::whole;
use crate::pipeline::value::path::FieldPath;

const NAME: &str = "$densify";

pub fn parse(value: &Value) -> Result<Densify> {
    let object = specification(NAME, value, &["field", "partitionByFields", "range"])?;
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
    let range = object_in(NAME, object, "range")?;
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
        return err!(5_733_401, "The step parameter in a range statement must be a strictly positive numeric value");
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
                let found = excerpt_of(other);
                return err!(5_946_802, "Bounds string must either be 'full' or 'partition', but found {found}");
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
        return err!(5_733_403, "A bounding array in a range statement must have exactly two elements");
    };
    // As in MongoDB, the order is checked before the types. Values of different types are in the order of their types.
    if lower > upper {
        return err!(5_733_402, "A bounding array in a range statement must be given in ascending order");
    }
    check_types(lower, upper, step)?;
    Ok(Range::Between(lower.clone(), upper.clone()))
}

fn check_types(lower: &Value, upper: &Value, step: &DensifyStep) -> Result<()> {
    const MIXED: &str = "A bounding array must contain either both dates or both numeric types";
    let is_int = |value: &Value| value.as_int().is_some();
    let (code, text) = match (lower, upper, step) {
        (Value::Date(_), Value::Date(_), DensifyStep::Time(..)) => return Ok(()),
        (Value::Date(_), Value::Date(_), DensifyStep::Number(_)) => {
            (5_733_410, "A bounding array of dates must specify a unit")
        }
        (Value::Date(_), ..) => (5_733_405, MIXED),
        (other, ..) if !other.is_number() => {
            return err!(5_946_800, "Lower bound must be a numeric or date, but found {}", excerpt(other));
        }
        (.., DensifyStep::Time(..)) => (5_733_409, "Numeric bounds may not have unit parameter"),
        (_, upper, _) if !upper.is_number() => (5_733_406, MIXED),
        (.., DensifyStep::Number(step)) if is_int(lower) != is_int(upper) || is_int(lower) != is_int(step) => {
            (5_876_900, "Upper bound, lower bound, and step must all have the same type")
        }
        (.., DensifyStep::Number(_)) => return Ok(()),
    };
    Err(Error::new(code, text))
}
