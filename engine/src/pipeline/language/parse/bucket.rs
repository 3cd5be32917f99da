//! Parses `$bucket` and `$bucketAuto`.

use std::cmp::Ordering;
use std::sync::Arc;

use super::accumulators;
use crate::model::excerpt::excerpt;
use crate::model::value::{Object, Value};
use crate::pipeline::expression::accumulator::Accumulator;
use crate::pipeline::expression::expr;
use crate::pipeline::expression::expr::{Expr, ParseScope};
use crate::pipeline::language::ast::{Bucket, BucketAuto, Granularity};
use crate::pipeline::language::granularity;
use crate::pipeline::value::error::{Error, Result, err};
use crate::pipeline::value::number::whole_i32;

pub fn parse(value: &Value, scope: &ParseScope) -> Result<Bucket> {
    let Value::Object(object) = value else {
        let text = format!("Argument to $bucket stage must be an object, but found type: {}", value.type_name());
        return Err(Error::new(40201, text));
    };
    let (mut by, mut boundaries, mut default, mut fields) = (None, None, None, None);
    for (name, value) in object.iter() {
        match (&**name, value) {
            ("groupBy", value) => {
                by = Some(group_by(value, scope, 40202, "$bucket").map_err(|error| error.within("groupBy"))?)
            }
            ("boundaries", Value::Array(items)) => {
                let items: Result<Vec<Value>> =
                    items.iter().map(|item| constant(item, scope, 40191, "boundaries")).collect();
                boundaries = Some(items?);
            }
            ("boundaries", other) => {
                let found = other.type_name();
                return err!(40200, "The $bucket 'boundaries' field must be an array, but found type: {found}");
            }
            ("default", value) => default = Some(constant(value, scope, 40195, "default")?),
            ("output", Value::Object(output)) => fields = Some(output_fields(output, scope)?),
            ("output", other) => {
                let found = other.type_name();
                return err!(40196, "The $bucket 'output' field must be an object, but found type: {found}");
            }
            (unknown, _) => return err!(40197, "Unrecognized option to $bucket: {unknown}."),
        }
    }
    let (Some(by), Some(boundaries)) = (by, boundaries) else {
        return Err(Error::new(40198, "$bucket requires 'groupBy' and 'boundaries' to be specified."));
    };
    check_boundaries(&boundaries)?;
    if let (Some(default), [lowest, .., highest]) = (&default, boundaries.as_slice())
        && default.type_rank() == lowest.type_rank()
        && default >= lowest
        && default < highest
    {
        let text = "The $bucket 'default' field must be less than the lowest boundary or greater than or equal to the highest boundary.";
        return Err(Error::new(40199, text));
    }
    let fields = fields.map_or_else(|| accumulators::count(scope), Ok)?;
    Ok(Bucket { by, boundaries, default, fields })
}

fn check_boundaries(boundaries: &[Value]) -> Result<()> {
    if boundaries.len() < 2 {
        let count = boundaries.len();
        return err!(40192, "The $bucket 'boundaries' field must have at least 2 values, but found {count} value(s).");
    }
    for pair in boundaries.windows(2) {
        if pair[0].type_rank() != pair[1].type_rank() {
            let text = format!(
                "All values in the 'boundaries' option to $bucket must have the same type. Found conflicting types {} and {}.",
                pair[0].type_name(),
                pair[1].type_name()
            );
            return Err(Error::new(40193, text));
        }
        if pair[0].compare(&pair[1]) != Ordering::Less {
            let text = format!(
                "The 'boundaries' option to $bucket must be sorted, but elements are not in ascending order ({} is not less than {}).",
                excerpt(&pair[0]),
                excerpt(&pair[1])
            );
            return Err(Error::new(40194, text));
        }
    }
    Ok(())
}

pub fn parse_auto(value: &Value, scope: &ParseScope) -> Result<BucketAuto> {
    let Value::Object(object) = value else {
        let text = format!("The argument to $bucketAuto must be an object, but found type: {}.", value.type_name());
        return Err(Error::new(40240, text));
    };
    let (mut by, mut buckets, mut fields, mut granularity) = (None, None, None, None);
    for (name, value) in object.iter() {
        match (&**name, value) {
            ("groupBy", value) => by = Some(group_by(value, scope, 40239, "$bucketAuto")?),
            ("buckets", value) => buckets = Some(bucket_count(value)?),
            ("output", Value::Object(output)) => fields = Some(output_fields(output, scope)?),
            ("output", other) => return Err(mistyped(40244, "output", "an object", other)),
            ("granularity", Value::String(name)) => granularity = Some(granularity_of(name)?),
            ("granularity", other) => return Err(mistyped(40261, "granularity", "a string", other)),
            (unknown, _) => return err!(40245, "Unrecognized option to $bucketAuto: {unknown}."),
        }
    }
    let (Some(by), Some(buckets)) = (by, buckets) else {
        return Err(Error::new(40246, "$bucketAuto requires 'groupBy' and 'buckets' to be specified."));
    };
    let fields = fields.filter(|fields| !fields.is_empty()).map_or_else(|| accumulators::count(scope), Ok)?;
    Ok(BucketAuto { by, buckets, fields, granularity })
}

fn group_by(value: &Value, scope: &ParseScope, code: i32, stage: &str) -> Result<Expr> {
    match value {
        Value::String(text) if text.starts_with('$') => expr::parse(value, scope),
        Value::Object(_) => expr::parse(value, scope),
        _ => {
            let text = format!(
                "The {stage} 'groupBy' field must be defined as a $-prefixed path or an expression, but found: {}.",
                excerpt(value)
            );
            Err(Error::new(code, text))
        }
    }
}

fn constant(value: &Value, scope: &ParseScope, code: i32, field: &str) -> Result<Value> {
    let expr = expr::parse(value, scope)?;
    let text = || format!("The $bucket '{field}' field must hold constant values, but found: {}.", excerpt(value));
    expr.constant().cloned().ok_or_else(|| Error::new(code, text()))
}

fn output_fields(output: &Object, scope: &ParseScope) -> Result<Vec<(Arc<str>, Accumulator)>> {
    if output.contains("_id") {
        return Err(Error::new(15948, "a group's _id may only be specified once").within("output"));
    }
    accumulators::fields(output, scope).map_err(|error| error.within("output"))
}

fn bucket_count(value: &Value) -> Result<usize> {
    if !value.is_number() {
        return Err(mistyped(40241, "buckets", "a numeric value", value));
    }
    let Some(number) = whole_i32(value) else {
        let found = excerpt(value);
        return err!(
            40242,
            "The $bucketAuto 'buckets' field must be representable as a 32-bit integer, but found {found}."
        );
    };
    usize::try_from(number).ok().filter(|number| *number > 0).ok_or_else(|| {
        Error::new(40243, format!("The $bucketAuto 'buckets' field must be greater than 0, but found: {number}."))
    })
}

/// Returns the error for a field of `$bucketAuto` that has a value of the wrong type.
fn mistyped(code: i32, field: &str, expected: &str, found: &Value) -> Error {
    let found = found.type_name();
    Error::new(code, format!("The $bucketAuto '{field}' field must be {expected}, but found type: {found}."))
}

fn granularity_of(name: &str) -> Result<Granularity> {
    granularity::named(name).ok_or_else(|| Error::new(40257, format!("Unknown rounding granularity '{name}'")))
}
