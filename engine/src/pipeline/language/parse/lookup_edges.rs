//! Parses a `$lookup` along the edges of the knowledge graph: `{edge, direction, depth, localField, pipeline, as}`.

use std::sync::Arc;

use super::surroundings::{ContainingStage, PipelineSurroundings};
use crate::model::excerpt::excerpt;
use crate::model::graph::Direction;
use crate::model::value::{Object, Value};
use crate::pipeline::language::ast::{Follow, Pipeline};
use crate::pipeline::language::rows::RowFields;
use crate::pipeline::source::scan::EdgeScan;
use crate::pipeline::value::error::{Error, Result, err};
use crate::pipeline::value::path::FieldPath;

const ARGUMENTS: [&str; 6] = ["edge", "direction", "depth", "localField", "pipeline", "as"];
/// The maximum number of edges between the start node and a reached node.
const MAX_DEPTH: i64 = 3;

pub fn parse(object: &Object, surroundings: &PipelineSurroundings) -> Result<Follow> {
    if let Some(unknown) = object.keys().find(|name| !ARGUMENTS.contains(&&***name)) {
        let allowed = ARGUMENTS.join(", ");
        let error = Error::new(9, format!("unknown argument to $lookup along edges: {unknown} (allowed: {allowed})"));
        return Err(error.suggesting(unknown, ARGUMENTS));
    }
    let edges = EdgeScan { kinds: kinds(object)?, direction: direction(object)?, depth: depth(object)? };
    let local = match object.get("localField") {
        None => FieldPath::parse("_id")?,
        Some(Value::String(path)) => FieldPath::parse(path)?,
        Some(other) => return Err(mistyped("localField", "a string", other)),
    };
    let target = match object.get("as") {
        Some(Value::String(path)) => FieldPath::parse(path)?,
        Some(other) => return Err(mistyped("as", "a string", other)),
        None => return Err(Error::new(9, "must specify 'as' field for a $lookup")),
    };
    let pipeline = match object.get("pipeline") {
        None => Pipeline::empty(RowFields::states()),
        Some(Value::Array(stages)) => {
            surroundings.inside(ContainingStage::LookupEdges, RowFields::states())?.pipeline(stages)?
        }
        Some(other) => return Err(mistyped("pipeline", "an array", other)),
    };
    Ok(Follow { edges, local, pipeline, target })
}

/// Returns the requested kinds of edges. The empty list means all kinds.
fn kinds(object: &Object) -> Result<Vec<Arc<str>>> {
    let type_error = |found: &Value| mistyped("edge", "a string or an array of strings", found);
    match object.get("edge") {
        Some(Value::String(kind)) => Ok(vec![kind.clone()]),
        Some(Value::Array(kinds)) => {
            let item_error = |item: &Value| {
                let found = item.type_name();
                Error::new(14, format!("each item of the $lookup argument 'edge' must be a string, found {found}"))
            };
            kinds.iter().map(|kind| kind.as_str().map(Arc::from).ok_or_else(|| item_error(kind))).collect()
        }
        Some(other) => Err(type_error(other)),
        None => Ok(Vec::new()),
    }
}

fn direction(object: &Object) -> Result<Direction> {
    match object.get("direction") {
        None => Ok(Direction::Out),
        Some(Value::String(name)) => Direction::parse(name)
            .ok_or_else(|| Error::new(2, format!("$lookup 'direction' must be 'out', 'in' or 'both', not '{name}'"))),
        Some(other) => Err(mistyped("direction", "a string", other)),
    }
}

fn depth(object: &Object) -> Result<u32> {
    let Some(written) = object.get("depth") else { return Ok(1) };
    let whole = written.as_f64().filter(|number| number.fract() == 0.0).map(|number| number as i64);
    match whole.filter(|depth| (1..=MAX_DEPTH).contains(depth)) {
        Some(depth) => Ok(depth as u32),
        None => err!(2, "$lookup 'depth' must be an integer from 1 to {MAX_DEPTH}, found: {}", excerpt(written)),
    }
}

fn mistyped(name: &str, expected: &str, found: &Value) -> Error {
    Error::new(14, format!("$lookup argument '{name}' must be {expected}, is type {}", found.type_name()))
}
