//! Parses `$setWindowFields`.

use std::sync::Arc;

use super::sort;
use crate::model::value::{Object, Value};
use crate::pipeline::expression::expr::{self, Expr, ParseScope};
use crate::pipeline::expression::projection;
use crate::pipeline::expression::window::{self, WindowOrder, WindowOutput};
use crate::pipeline::language::ast::{SortKey, Windows};
use crate::pipeline::value::error::{Error, PipelineErrorCode, Result, err};
use crate::pipeline::value::path::FieldPath;

const NAME: &str = "$setWindowFields";
const ARGUMENTS: [&str; 3] = ["partitionBy", "sortBy", "output"];

pub fn parse(value: &Value, scope: &ParseScope) -> Result<Windows> {
    let object = specification(NAME, value, &ARGUMENTS)?;
    let partition = partition(object.get("partitionBy"), scope).map_err(|error| error.within("partitionBy"))?;
    let order = PartitionOrder::parse(NAME, object).map_err(|error| error.within("sortBy"))?;
    let output = object_in(NAME, object, "output")?;
    let sorting = order.sorting();
    let mut outputs = Vec::with_capacity(output.len());
    for (field, spec) in output.iter() {
        scope.query.tick()?;
        let parsed = FieldPath::parse(field).and_then(|_| window::parse(field, spec, &sorting, scope));
        outputs.push(parsed.map_err(|error| error.within(field.clone()).within("output"))?);
    }
    order.into_windows(NAME, partition, outputs, output.keys(), scope)
}

/// The sort order of the rows in a partition.
pub struct PartitionOrder {
    keys: Option<Vec<SortKey>>,
    paths: Vec<(Arc<str>, bool)>,
}

impl PartitionOrder {
    /// Parses the `sortBy` of a stage. Null counts as absent, and an empty object sorts by nothing.
    pub fn parse(stage: &str, object: &Object) -> Result<PartitionOrder> {
        let keys = match object.get("sortBy") {
            None | Some(Value::Null) => None,
            Some(Value::Object(keys)) if keys.is_empty() => Some(Vec::new()),
            Some(spec @ Value::Object(_)) => Some(sort::parse(spec)?),
            Some(other) => return Err(mistyped(stage, "sortBy", other, "object")),
        };
        let paths = keys.iter().flatten().map(|key| (key.path.text().clone(), key.descending)).collect();
        Ok(PartitionOrder { keys, paths })
    }

    pub fn sorting(&self) -> WindowOrder<'_> {
        WindowOrder { is_given: self.keys.is_some(), keys: &self.paths }
    }

    /// Returns the stage that computes `outputs` and writes them to the paths in `fields`.
    pub fn into_windows<'f>(
        self,
        stage: &'static str,
        partition: Option<Expr>,
        outputs: Vec<WindowOutput>,
        fields: impl Iterator<Item = &'f Arc<str>>,
        scope: &ParseScope,
    ) -> Result<Windows> {
        // A `$set` projection writes the fields. The expression of each field reads the function's value from a
        // variable.
        let names: Vec<Arc<str>> = (0..outputs.len()).map(|index| format!("output{index}").into()).collect();
        let spec: Object =
            fields.zip(&names).map(|(field, name)| (field.clone(), Value::from(format!("$${name}")))).collect();
        let write = projection::set(stage, &spec.into(), &scope.with(names)).map_err(|error| match error.code {
            PipelineErrorCode::Number(40176) => {
                Error::new(6_307_900, format!("{stage} 'output' specification contains two conflicting paths"))
            }
            _ => error,
        })?;
        let sort_path = match self.paths.as_slice() {
            [(path, _)] => Some(FieldPath::parse(path)?),
            _ => None,
        };
        Ok(Windows { partition, sort: self.keys, sort_path, outputs, write })
    }
}

/// Parses the key of partitions. A constant key puts all rows into one partition, but a constant array is rejected.
pub fn partition(spec: Option<&Value>, scope: &ParseScope) -> Result<Option<Expr>> {
    let Some(spec) = spec else { return Ok(None) };
    let expr = expr::parse(spec, scope)?;
    match expr.constant() {
        Some(Value::Array(_)) => {
            Err(Error::new(14, "An expression used to partition cannot evaluate to value of type array"))
        }
        Some(_) => Ok(None),
        None => Ok(Some(expr)),
    }
}

/// Returns the specification of a stage. Rejects values that are not objects, and arguments that the stage does not
/// have.
pub fn specification<'s>(stage: &str, value: &'s Value, allowed: &[&str]) -> Result<&'s Object> {
    let Value::Object(object) = value else {
        return err!(9, "the {stage} stage specification must be an object, found {}", value.type_name());
    };
    check_names(stage, object, allowed)?;
    Ok(object)
}

/// Returns an argument that is required and must be an object. An argument that is null counts as absent.
pub fn object_in<'s>(stage: &str, object: &'s Object, name: &str) -> Result<&'s Object> {
    match object.get(name) {
        Some(Value::Object(argument)) => Ok(argument),
        None | Some(Value::Null) => Err(missing(stage, name)),
        Some(other) => Err(mistyped(stage, name, other, "object")),
    }
}

/// Rejects arguments that a stage does not have.
pub fn check_names(stage: &str, object: &Object, allowed: &[&str]) -> Result<()> {
    let Some(unknown) = object.keys().find(|name| !allowed.contains(&&***name)) else { return Ok(()) };
    let error = Error::new(40415, format!("BSON field '{stage}.{unknown}' is an unknown field."));
    let error = error.within(unknown.clone());
    Err(error.suggesting(unknown, allowed.iter().copied()))
}

/// Returns the error for a required argument that is absent.
pub fn missing(stage: &str, name: &str) -> Error {
    Error::new(40414, format!("BSON field '{stage}.{name}' is missing but a required field"))
}

/// Returns the error for an argument of a wrong type.
pub fn mistyped(stage: &str, name: &str, value: &Value, expected: &str) -> Error {
    let found = value.type_name();
    let text = format!("BSON field '{stage}.{name}' is the wrong type '{found}', expected type '{expected}'");
    Error::new(14, text).within(name)
}
