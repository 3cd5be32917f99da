//! Parses `$graphLookup`.

use super::lookup::{begins_with_documents, source};
use super::surroundings::{ContainingStage, PipelineSurroundings};
use crate::model::excerpt::excerpt;
use crate::model::value::{Object, Value};
use crate::pipeline::expression::expr;
use crate::pipeline::expression::filter::Filter;
use crate::pipeline::language::ast::{GraphLookup, GraphSearch, Pipeline, SubpipelineSource};
use crate::pipeline::language::rows::RowFields;
use crate::pipeline::language::rows::constants;
use crate::pipeline::value::error::{Error, Result, err};
use crate::pipeline::value::number::whole;
use crate::pipeline::value::path::FieldPath;
use crate::pipeline::value::query_path::QueryPath;

const ARGUMENTS: [&str; 9] = [
    "from",
    "startWith",
    "connectFromField",
    "connectToField",
    "as",
    "maxDepth",
    "depthField",
    "restrictSearchWithMatch",
    "pipeline",
];

pub fn parse(value: &Value, surroundings: &PipelineSurroundings) -> Result<GraphLookup> {
    let Value::Object(object) = value else {
        return err!(9, "the $graphLookup stage specification must be an object, but found {}", value.type_name());
    };
    if let Some(unknown) = object.keys().find(|name| !ARGUMENTS.contains(&&***name)) {
        let error = Error::new(40104, format!("Unknown argument to $graphLookup: {unknown}")).within(unknown.clone());
        return Err(error.suggesting(unknown, ARGUMENTS));
    }
    let stages = match object.get("pipeline") {
        None => None,
        Some(Value::Array(stages)) if object.get("from").is_none() && begins_with_documents(stages) => {
            Some(stages.as_slice())
        }
        Some(_) => {
            let text = "$graphLookup expects either 'from' or a 'pipeline' that begins with $documents";
            return Err(Error::new(9, text).within("pipeline"));
        }
    };
    let from = match (object.get("from"), stages) {
        (Some(Value::String(name)), _) => source(name)?,
        (None, Some(_)) => SubpipelineSource::Documents,
        (None, None) => {
            return err!(9, "missing 'from' option to $graphLookup stage specification: {}", excerpt(value));
        }
        (Some(other), _) => {
            return err!(9, "$graphLookup argument 'from' must be a string, is type {}", other.type_name());
        }
    };
    let max_depth = object.get("maxDepth").map(depth).transpose().map_err(|error| error.within("maxDepth"))?;
    let target = path("as", object)?;
    let (connect_from, connect_to) = (path("connectFromField", object)?, path("connectToField", object)?);
    let depth_field = path("depthField", object)?;
    let (Some(start), Some(connect_from), Some(connect_to), Some(target)) =
        (object.get("startWith"), connect_from, connect_to, target)
    else {
        let text = "$graphLookup requires 'from', 'as', 'startWith', 'connectFromField', and 'connectToField' to be \
                    specified.";
        return Err(Error::new(40105, text));
    };
    let start = expr::parse(start, &surroundings.scope()).map_err(|error| error.within("startWith"))?;
    let rows = RowFields::begin(&from, stages.unwrap_or_default());
    let pipeline = match stages {
        Some(stages) => {
            let inside = surroundings.inside(ContainingStage::Lookup, rows)?;
            inside.pipeline(stages).map_err(|error| error.within("pipeline"))?
        }
        None => Pipeline::empty(rows),
    };
    let restriction =
        restriction(object, &pipeline.last, surroundings).map_err(|error| error.within("restrictSearchWithMatch"))?;
    let connect_to = QueryPath::new(&connect_to.segments().join("."));
    let search = GraphSearch { start, connect_from, connect_to, target, max_depth, depth_field };
    Ok(GraphLookup { from, search, restriction, pipeline })
}

fn depth(value: &Value) -> Result<u64> {
    if !value.is_number() {
        return err!(40100, "maxDepth must be numeric, found type: {}", value.type_name());
    }
    if value.as_f64().is_some_and(|depth| depth < 0.0) {
        return err!(40101, "maxDepth requires a nonnegative argument, found: {}", excerpt(value));
    }
    let number = whole(value).and_then(|depth| u64::try_from(depth).ok());
    number.ok_or_else(|| {
        Error::new(40102, format!("maxDepth could not be represented as a long long: {}", excerpt(value)))
    })
}

fn path(name: &'static str, object: &Object) -> Result<Option<FieldPath>> {
    match object.get(name) {
        None => Ok(None),
        Some(Value::String(path)) => FieldPath::parse(path).map(Some).map_err(|error| error.within(name)),
        Some(other) => {
            let found = other.type_name();
            Err(Error::new(40103, format!("expected string as argument for {name}, found: {found}")).within(name))
        }
    }
}

/// Parses the filter of the found rows. The filter can read the variables of the enclosing `$lookup` stages.
fn restriction(object: &Object, rows: &RowFields, surroundings: &PipelineSurroundings) -> Result<Option<Filter>> {
    match object.get("restrictSearchWithMatch") {
        None => Ok(None),
        Some(spec @ Value::Object(_)) => {
            let converted = constants::filter(spec, surroundings.place(rows))
                .map_err(|error| error.within("restrictSearchWithMatch"))?;
            Filter::parse(converted.as_ref().unwrap_or(spec), &surroundings.scope()).map(Some)
        }
        Some(other) => err!(40185, "restrictSearchWithMatch must be an object, found {}", other.type_name()),
    }
}
