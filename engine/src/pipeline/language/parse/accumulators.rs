//! Parses the computed fields of `$group`, `$bucket` and `$bucketAuto`.

use std::sync::Arc;

use crate::model::value::{Object, Value};
use crate::pipeline::expression::accumulator;
use crate::pipeline::expression::accumulator::Accumulator;
use crate::pipeline::expression::expr::ParseScope;
use crate::pipeline::value::error::{Result, err};

/// Parses one field of the output and the accumulator that computes the field.
pub fn field(name: &Arc<str>, spec: &Value, scope: &ParseScope) -> Result<(Arc<str>, Accumulator)> {
    checked(name, spec, scope).map_err(|error| error.within(name.clone()))
}

fn checked(name: &Arc<str>, spec: &Value, scope: &ParseScope) -> Result<(Arc<str>, Accumulator)> {
    if name.starts_with('$') {
        return err!(40236, "The field name '{name}' cannot be an operator name");
    }
    if name.contains('.') {
        return err!(40235, "The field name '{name}' cannot contain '.'");
    }
    Ok((name.clone(), accumulator::parse(name, spec, scope)?))
}

/// Parses all fields of an `output` object.
pub fn fields(output: &Object, scope: &ParseScope) -> Result<Vec<(Arc<str>, Accumulator)>> {
    output.iter().map(|(name, spec)| field(name, spec, scope)).collect()
}

/// Returns the default output field of buckets. The field counts the rows of a bucket.
pub fn count(scope: &ParseScope) -> Result<Vec<(Arc<str>, Accumulator)>> {
    let spec: Value = Object::from_iter([("$sum", 1i64)]).into();
    Ok(vec![("count".into(), accumulator::parse("count", &spec, scope)?)])
}
