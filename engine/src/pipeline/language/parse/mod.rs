//! Parses JSON into stages. Returns the errors that a stage shows without reading rows. The planner rejects a misplaced
//! `$fold`, and a `$match` before `$fold` that reads a variable of an enclosing `$lookup`.

mod accumulators;
mod bucket;
mod densify;
mod documents;
mod facet;
mod fill;
mod fold;
mod graph_lookup;
mod group;
mod lookup;
mod lookup_edges;
mod names;
mod numbers;
mod reshape;
mod set_window_fields;
mod sort;
mod stages;
mod surroundings;
mod union_with;
mod unwind;

pub use documents::not_objects;
pub use stages::STAGES;

use surroundings::{ContainingStage, PipelineSurroundings};

use std::sync::Arc;

use super::ast::{IndexedStage, Pipeline, Stage};
use super::rows::constants;
use crate::model::value::{Object, Value};
use crate::pipeline::expression::expr::{self, ParseScope};
use crate::pipeline::expression::filter::Filter;
use crate::pipeline::expression::projection;
use crate::pipeline::value::context::Context;
use crate::pipeline::value::error::{Error, Result, err};

/// The maximum number of stages of a pipeline or sub-pipeline (MongoDB's own limit).
const MAX_STAGES: usize = 1_000;

/// Parses the pipeline of a request.
pub fn pipeline(spec: &Value, query: &Context) -> Result<Pipeline> {
    let Value::Array(stages) = spec else {
        return Err(Error::new(14, "'pipeline' option must be specified as an array"));
    };
    sub_pipeline(stages, &PipelineSurroundings::top(sub_pipeline, query))
}

/// Parses the stages of a top-level pipeline or a sub-pipeline.
fn sub_pipeline(stages: &[Value], surroundings: &PipelineSurroundings) -> Result<Pipeline> {
    if stages.len() > MAX_STAGES {
        return err!(7749501, "Pipeline length must be no longer than {MAX_STAGES} stages");
    }
    let scope = surroundings.scope();
    let mut read = Vec::with_capacity(stages.len());
    let mut rows = surroundings.rows.clone();
    for (position, spec) in stages.iter().enumerate() {
        surroundings.query.tick()?;
        let index = surroundings.index.unwrap_or(position);
        let surroundings = surroundings.of_stage(position, index, rows);
        let staged = staged(spec, index, &surroundings, &scope)
            .map_err(|error| error.within(position.to_string()).at_stage(index))?;
        surroundings.rows.check(&staged.stage, surroundings.query);
        rows = surroundings.rows.after(&staged.stage, surroundings.query)?;
        read.push(staged);
    }
    Ok(Pipeline { stages: read, first: surroundings.rows.clone(), last: rows })
}

fn staged(spec: &Value, index: usize, surroundings: &PipelineSurroundings, scope: &ParseScope) -> Result<IndexedStage> {
    let Value::Object(object) = spec else {
        let code = if surroundings.within == ContainingStage::Facet { 40171 } else { 14 };
        return Err(Error::new(code, "Each element of the 'pipeline' array must be an object"));
    };
    let mut fields = object.iter();
    let (Some((name, value)), None) = (fields.next(), fields.next()) else {
        return Err(Error::new(40323, "A pipeline stage specification object must contain exactly one field."));
    };
    let parsed = names::check(name, surroundings).and_then(|()| typed(name, value, surroundings, scope));
    let (value, stage) = parsed.map_err(|error| error.within(name.clone()))?;
    let (name, text): (&str, Value) = match &**name {
        "$addFields" => ("$set", value),
        "$replaceWith" => ("$replaceRoot", Object::from_iter([("newRoot", value)]).into()),
        name => (name, value),
    };
    Ok(IndexedStage { index, text: Object::from_iter([(name, text)]).into(), stage })
}

/// Converts the constants of a stage to the types of the fields with which the stage compares the constants. Then
/// parses the stage. Returns the converted specification and the parsed stage.
fn typed(name: &str, value: &Value, surroundings: &PipelineSurroundings, scope: &ParseScope) -> Result<(Value, Stage)> {
    let rows = &surroundings.rows;
    let as_written = |value: &Value| stage(name, value, surroundings, scope);
    if name == "$match" {
        // The filter may restrict the aggregate types, and the aggregate types determine the types of the filter's
        // constants.
        let written = as_written(value)?;
        let Stage::Match(filter) = &written else { return Ok((value.clone(), written)) };
        return match constants::filter(value, surroundings.place(&rows.clone().narrowed(filter)))? {
            Some(converted) => Ok((converted.clone(), as_written(&converted)?)),
            None => Ok((value.clone(), written)),
        };
    }
    let value = constants::of_stage(name, value, surroundings.place(rows))?.unwrap_or_else(|| value.clone());
    let stage = as_written(&value)?;
    Ok((value, stage))
}

fn stage(name: &str, value: &Value, surroundings: &PipelineSurroundings, scope: &ParseScope) -> Result<Stage> {
    Ok(match name {
        "$documents" => Stage::Documents(documents::parse(value, surroundings.position, scope)?),
        "$match" => Stage::Match(Filter::parse(value, scope)?),
        "$fold" => Stage::Fold(fold::parse(value, scope)?),
        "$project" => Stage::Project(projection::projection(value, scope)?),
        "$set" => Stage::Set(projection::set("$set", value, scope)?),
        "$addFields" => Stage::Set(projection::set("$addFields", value, scope)?),
        "$unset" => Stage::Unset(reshape::unset(value)?),
        "$group" => Stage::Group(group::parse(value, scope)?),
        "$sort" => Stage::Sort(sort::parse(value)?),
        "$limit" => Stage::Limit(numbers::limit(value)?),
        "$skip" => Stage::Skip(numbers::skip(value)?),
        "$sample" => Stage::Sample(numbers::sample(value)?),
        "$count" => Stage::Count(names::count(value)?),
        "$sortByCount" => Stage::SortByCount(group::sort_by_count(value, scope)?),
        "$unwind" => Stage::Unwind(unwind::parse(value)?),
        "$replaceRoot" => Stage::ReplaceRoot(reshape::replace_root(value, scope)?),
        "$replaceWith" => Stage::ReplaceRoot(expr::parse(value, scope)?),
        "$facet" => Stage::Facet(facet::parse(value, surroundings)?),
        "$bucket" => Stage::Bucket(bucket::parse(value, scope)?),
        "$bucketAuto" => Stage::BucketAuto(bucket::parse_auto(value, scope)?),
        "$lookup" => match value {
            Value::Object(object) if along_edges(object) => {
                Stage::Follow(Box::new(lookup_edges::parse(object, surroundings)?))
            }
            _ => Stage::Lookup(Box::new(lookup::parse(value, surroundings)?)),
        },
        "$unionWith" => {
            let (from, pipeline) = union_with::parse(value, surroundings)?;
            Stage::UnionWith(from, pipeline)
        }
        "$setWindowFields" => Stage::Windows(Arc::new(set_window_fields::parse(value, scope)?)),
        "$fill" => Stage::Fill(Box::new(fill::parse(value, scope)?)),
        "$densify" => Stage::Densify(Box::new(densify::parse(value)?)),
        "$graphLookup" => Stage::GraphLookup(Box::new(graph_lookup::parse(value, surroundings)?)),
        "$redact" => Stage::Redact(expr::parse(value, &surroundings.redact_scope())?),
        unknown => return Err(names::unknown(unknown)),
    })
}

/// Returns whether a `$lookup` follows the edges of the graph instead of matching fields.
fn along_edges(object: &Object) -> bool {
    ["edge", "direction", "depth"].iter().any(|name| object.contains(name))
}
