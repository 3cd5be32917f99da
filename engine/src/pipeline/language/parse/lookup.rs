//! Parses `$lookup`.

use std::sync::Arc;

use super::set_window_fields::check_names;
use super::surroundings::{ContainingStage, PipelineSurroundings};
use crate::model::value::{Object, Value};
use crate::pipeline::expression::expr;
use crate::pipeline::expression::expr::Expr;
use crate::pipeline::language::ast::{Lookup, Pipeline, SubpipelineSource};
use crate::pipeline::language::rows::RowFields;
use crate::pipeline::value::error::{Error, Result, err};
use crate::pipeline::value::path::FieldPath;
use crate::pipeline::value::query_path::QueryPath;

const ARGUMENTS: [&str; 6] = ["from", "localField", "foreignField", "as", "let", "pipeline"];

pub fn parse(value: &Value, surroundings: &PipelineSurroundings) -> Result<Lookup> {
    let Value::Object(object) = value else {
        return err!(9, "the $lookup stage specification must be an object, but found {}", value.type_name());
    };
    let stages = match object.get("pipeline") {
        None | Some(Value::Null) => None,
        Some(Value::Array(stages)) => Some(stages.as_slice()),
        Some(other) => return Err(mistyped("pipeline", other)),
    };
    let from = match object.get("from") {
        Some(Value::String(name)) => source(name)?,
        None if stages.is_some_and(begins_with_documents) => SubpipelineSource::Documents,
        None => return Err(Error::new(9, "must specify 'from' field for a $lookup")),
        Some(other) => {
            return err!(9, "$lookup argument 'from' must be a string, is type {}", other.type_name());
        }
    };
    check_names("$lookup", object, &ARGUMENTS)?;
    let target = match object.get("as") {
        Some(Value::String(path)) => FieldPath::parse(path)?,
        Some(Value::Null) => return Err(Error::new(40414, "BSON field '$lookup.as' is missing but a required field")),
        Some(other) => return Err(mistyped("as", other)),
        None => return Err(Error::new(9, "must specify 'as' field for a $lookup")),
    };
    let join = match (field("localField", object)?, field("foreignField", object)?) {
        (Some(local), Some(foreign)) => {
            FieldPath::parse(local)?;
            FieldPath::parse(foreign)?;
            Some((QueryPath::new(local), QueryPath::new(foreign)))
        }
        (None, None) if stages.is_some() => None,
        _ => {
            let text = "$lookup requires either 'pipeline' or both 'localField' and 'foreignField' to be specified";
            return Err(Error::new(9, text));
        }
    };
    let variables = variables(object, surroundings)?;
    let rows = RowFields::begin(&from, stages.unwrap_or_default());
    let mut inside = surroundings.inside(ContainingStage::Lookup, rows.clone())?;
    inside.variables.extend(variables.iter().map(|(name, _)| name.clone()));
    inside.kinds.extend(variables.iter().map(|(_, value)| surroundings.rows.of_expr(value, surroundings.query)));
    let pipeline = match stages {
        Some(stages) => inside.pipeline(stages).map_err(|error| error.within("pipeline"))?,
        None if object.contains("let") => {
            return Err(Error::new(9, "$lookup with a 'let' argument must also specify 'pipeline'"));
        }
        None => Pipeline::empty(rows),
    };
    Ok(Lookup { from, join, variables, names: inside.variables, pipeline, target })
}

/// Returns the source that a name in `from` or `coll` denotes.
pub fn source(name: &str) -> Result<SubpipelineSource> {
    if name.is_empty() || name.starts_with('.') || name.contains('\0') {
        return err!(73, "Invalid namespace specified '{name}'");
    }
    Ok(if name == "$events" { SubpipelineSource::Events } else { SubpipelineSource::Type(name.into()) })
}

/// Returns whether a sub-pipeline begins with `$documents`. Such a sub-pipeline contains its own rows.
pub fn begins_with_documents(stages: &[Value]) -> bool {
    stages.first().is_some_and(|stage| stage.get("$documents").is_some())
}

fn mistyped(name: &str, value: &Value) -> Error {
    let found = value.type_name();
    let expected = match name {
        "pipeline" => "array",
        "let" => "object",
        _ => "string",
    };
    Error::new(14, format!("BSON field '$lookup.{name}' is the wrong type '{found}', expected type '{expected}'"))
}

/// Returns the path in the field `name` of `object`. Null and the empty path count as absent.
fn field<'s>(name: &str, object: &'s Object) -> Result<Option<&'s str>> {
    match object.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(path)) => Ok(Some(&**path).filter(|path| !path.is_empty())),
        Some(other) => Err(mistyped(name, other)),
    }
}

fn variables(object: &Object, surroundings: &PipelineSurroundings) -> Result<Vec<(Arc<str>, Expr)>> {
    let scope = surroundings.scope();
    match object.get("let") {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Object(variables)) => variables
            .iter()
            .map(|(name, value)| {
                let value = check_variable(name).and_then(|()| expr::parse(value, &scope));
                Ok((name.clone(), value.map_err(|error| error.within(name.clone()).within("let"))?))
            })
            .collect(),
        Some(other) => Err(mistyped("let", other)),
    }
}

/// Checks the name of a user variable. The first character must be a lower-case ASCII letter or a non-ASCII character.
/// Every other character must be an ASCII letter, a digit, `_` or a non-ASCII character.
fn check_variable(name: &str) -> Result<()> {
    let Some(first) = name.chars().next() else {
        return Err(Error::new(9, "empty variable names are not allowed"));
    };
    if first.is_ascii() && !first.is_ascii_lowercase() {
        return err!(9, "'{name}' starts with an invalid character for a user variable name");
    }
    if let Some(wrong) = name.chars().find(|c| c.is_ascii() && !c.is_ascii_alphanumeric() && *c != '_') {
        return err!(9, "'{name}' contains an invalid character for a variable name: '{wrong}'");
    }
    Ok(())
}
