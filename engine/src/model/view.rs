//! Saved pipelines: the fields of the built-in type `view`, and the check of the stages of a saved pipeline.

use super::builtin::VIEW;
use super::definition::Definition;
use super::excerpt::excerpt;
use super::value::{Object, Value};
use super::violation::Violations;

/// The name of the field with the view's name.
pub const NAME: &str = "name";
/// The name of the field with the view's pipeline.
pub const PIPELINE: &str = "pipeline";
/// The name of the field with the view's description.
pub const DESCRIPTION: &str = "description";

/// The maximum length of a view's name, in characters.
pub const MAX_NAME: f64 = 200.0;
/// The maximum length of a view's description, in characters.
pub const MAX_DESCRIPTION: f64 = 4_000.0;
/// The maximum number of stages of a view's pipeline.
pub const MAX_STAGES: f64 = 200.0;

/// Checks that each item of a view's pipeline has the shape of a stage. Does not check whether the pipeline can run,
/// because the types that the pipeline reads may change after the pipeline was saved. Accepts every payload of a type
/// other than the built-in type `view`.
pub fn check_stages(payload: &Object, definition: &Definition, at: &str, violations: &mut Violations) {
    if !definition.builtin || *definition.type_name != *VIEW {
        return;
    }
    let Some(stages) = payload.get(PIPELINE).and_then(Value::as_array) else { return };
    for (index, stage) in stages.iter().enumerate() {
        let names = stage.as_object().map(|stage| stage.iter().map(|(name, _)| name));
        let is_stage = names.is_some_and(|mut names| {
            names.next().is_some_and(|name| name.starts_with('$') && name.len() > 1) && names.next().is_none()
        });
        if !is_stage {
            let message = format!("expected a stage such as {{\"$match\": {{}}}}, found {}", excerpt(stage));
            violations.add(format!("{at}/{PIPELINE}/{index}"), message);
        }
    }
}
