//! Parses `$unionWith`.

use super::lookup;
use super::surroundings::{ContainingStage, PipelineSurroundings};
use crate::model::value::Value;
use crate::pipeline::language::ast::{Pipeline, SubpipelineSource};
use crate::pipeline::language::rows::RowFields;
use crate::pipeline::value::error::{Error, Result, err};

pub fn parse(value: &Value, surroundings: &PipelineSurroundings) -> Result<(SubpipelineSource, Pipeline)> {
    let object = match value {
        Value::String(name) => {
            let from = lookup::source(name)?;
            let rows = RowFields::begin(&from, &[]);
            return Ok((from, Pipeline::empty(rows)));
        }
        Value::Object(object) => object,
        _ => {
            let found = value.type_name();
            return err!(9, "the $unionWith stage specification must be an object or string, but found {found}");
        }
    };
    let (mut from, mut stages) = (None, &[][..]);
    for (name, value) in object.iter() {
        match (&**name, value) {
            ("coll", Value::String(name)) => from = Some(lookup::source(name)?),
            ("pipeline", Value::Array(items)) => stages = items,
            ("coll" | "pipeline", other) => {
                let (found, expected) = (other.type_name(), if &**name == "coll" { "string" } else { "array" });
                return err!(
                    14,
                    "BSON field '$unionWith.{name}' is the wrong type '{found}', expected type '{expected}'"
                );
            }
            (unknown, _) => return err!(40415, "BSON field '$unionWith.{unknown}' is an unknown field."),
        }
    }
    if from.is_none() && !lookup::begins_with_documents(stages) {
        return Err(Error::new(
            9,
            "$unionWith stage without explicit collection must have a pipeline with $documents as first stage",
        ));
    }
    let from = from.unwrap_or(SubpipelineSource::Documents);
    let pipeline = surroundings.inside(ContainingStage::UnionWith, RowFields::begin(&from, stages))?;
    let pipeline = pipeline.pipeline(stages).map_err(|error| error.within("pipeline"))?;
    Ok((from, pipeline))
}
