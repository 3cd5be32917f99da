//! Parses `$facet`.

use std::sync::Arc;

use super::surroundings::{ContainingStage, PipelineSurroundings};
use crate::model::value::Value;
use crate::pipeline::language::ast::Pipeline;
use crate::pipeline::value::error::{Error, Result, err};
use crate::pipeline::value::path::check_name;

pub fn parse(value: &Value, surroundings: &PipelineSurroundings) -> Result<Vec<(Arc<str>, Pipeline)>> {
    let object = match value {
        Value::Object(object) if !object.is_empty() => object,
        _ => return Err(Error::new(40169, "the $facet specification must be a non-empty object")),
    };
    let surroundings = surroundings.inside(ContainingStage::Facet, surroundings.rows.clone())?;
    let mut facets = Vec::with_capacity(object.len());
    for (name, value) in object.iter() {
        check_name(name)?;
        if name.contains('.') {
            return Err(Error::new(16412, "FieldPath field names may not contain '.'."));
        }
        let Value::Array(stages) = value else {
            return err!(40170, "arguments to $facet must be arrays, {name} is type {}", value.type_name());
        };
        facets.push((name.clone(), surroundings.pipeline(stages).map_err(|error| error.within(name.clone()))?));
    }
    Ok(facets)
}
