//! The names of stages, the positions in which each stage is allowed, and the names that stages give to fields.

use std::sync::Arc;

use super::stages::STAGES;
use super::surroundings::{ContainingStage, PipelineSurroundings};
use crate::model::value::Value;
use crate::pipeline::value::error::{Error, Result, err};

/// The stages that are not allowed inside a `$facet`, or in the sub-pipeline of a `$lookup` along edges. [`check`] also
/// rejects `$changeStream` there. As an exception, `$documents` and `$fold` are allowed inside a `$facet` in a
/// sub-pipeline that has its own source of rows, such as the sub-pipeline of a `$unionWith`.
const REFUSED_OVER_ROWS: [&str; 15] = [
    "$facet",
    "$documents",
    "$fold",
    "$out",
    "$merge",
    "$geoNear",
    "$collStats",
    "$indexStats",
    "$planCacheStats",
    "$querySettings",
    "$search",
    "$searchMeta",
    "$listSearchIndexes",
    "$vectorSearch",
    "$searchBeta",
];

/// Rejects a stage that is not allowed inside the enclosing stages. Does not check the positions of `$documents` and
/// `$fold` within their pipeline.
pub fn check(name: &str, surroundings: &PipelineSurroundings) -> Result<()> {
    let nested = surroundings.within != ContainingStage::Request;
    if nested && matches!(name, "$currentOp" | "$listSessions" | "$listLocalSessions") {
        return err!(73, "{name} must be run against the 'admin' database");
    }
    if matches!(name, "$out" | "$merge") {
        match surroundings.within {
            ContainingStage::Lookup | ContainingStage::LookupEdges => {
                return err!(51047, "{name} is not allowed within a $lookup's sub-pipeline");
            }
            ContainingStage::UnionWith => {
                return err!(31441, "{name} is not allowed within a $unionWith's sub-pipeline");
            }
            ContainingStage::Request | ContainingStage::Facet => {}
        }
    }
    let is_refused = REFUSED_OVER_ROWS.contains(&name) || name == "$changeStream";
    if surroundings.within == ContainingStage::LookupEdges && is_refused {
        return err!(40600, "{name} is not allowed within the sub-pipeline of a $lookup along edges");
    }
    // A sub-pipeline of a stage inside a facet may have its own source of rows.
    let brings_rows = surroundings.within != ContainingStage::Facet && matches!(name, "$documents" | "$fold");
    if surroundings.facet && is_refused && !brings_rows {
        return err!(40600, "{name} is not allowed to be used within a $facet stage");
    }
    Ok(())
}

/// Returns the error for a name that is not a stage.
pub fn unknown(name: &str) -> Error {
    let error = Error::new(40324, format!("Unrecognized pipeline stage name: '{name}'"));
    match name {
        "$out" | "$merge" => error.with_hint("a query never writes"),
        "$geoNear" => error.with_hint("states have no type for geographic coordinates"),
        "$search" | "$searchMeta" | "$vectorSearch" | "$rankFusion" | "$scoreFusion" | "$listSearchIndexes" => {
            error.with_hint("use POST /aggregates/search for search")
        }
        "$changeStream" | "$changeStreamSplitLargeEvent" => {
            error.with_hint("use GET /events with the header Accept: text/event-stream to receive changes")
        }
        "$collStats"
        | "$indexStats"
        | "$planCacheStats"
        | "$currentOp"
        | "$listSessions"
        | "$listLocalSessions"
        | "$listSampledQueries"
        | "$shardedDataDistribution"
        | "$queryStats"
        | "$querySettings"
        | "$listClusterCatalog" => error.with_hint(format!("{name} reports on MongoDB's servers and collections")),
        _ => error.suggesting(name, STAGES.iter().map(|stage| stage.name)),
    }
}

/// Checks the name of the field that `$count` writes.
pub fn count(value: &Value) -> Result<Arc<str>> {
    let Value::String(name) = value else {
        return Err(Error::new(40156, "the count field must be a non-empty string"));
    };
    let (code, reason) = match &**name {
        "" => (40157, "must be a non-empty string"),
        "_id" => (9039800, "cannot be '_id'"),
        text if text.starts_with('$') => (40158, "cannot be a $-prefixed path"),
        text if text.contains('\0') => (40159, "cannot contain a null byte"),
        text if text.contains('.') => (40160, "cannot contain '.'"),
        _ => return Ok(name.clone()),
    };
    err!(code, "the count field {reason}")
}
