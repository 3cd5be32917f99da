//! The `[tool]` table of a manifest: the description of a scripted tool for models, and the pipeline that runs before
//! each call.

use foldwork_engine::hook::{Hook, ToolProfile};
use foldwork_engine::model::json;
use foldwork_engine::model::json_schema::Schema;
use foldwork_engine::model::value::{Object, Value};
use foldwork_engine::model::violation::Violation;
use serde::Deserialize;
use toml::Spanned;

use super::ManifestFile;
use crate::error::LoadError;
use crate::mcp;

/// The `[tool]` table as it is written in the manifest.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ManifestTool {
    title: Option<String>,
    input: Option<Spanned<Object>>,
    output: Option<Spanned<Object>>,
    /// The text of the pipeline, in JSON.
    pipeline: Option<Spanned<String>>,
}

/// The schemas of a tool's arguments and result.
#[derive(Debug)]
pub(crate) struct ToolSchemas {
    pub input: Schema,
    pub output: Option<Schema>,
}

impl ManifestFile<'_> {
    /// Reads the `[tool]` table. The table is required for plugins with the hook `tool`, and not allowed for other
    /// plugins.
    pub(super) fn tool(
        &self,
        raw: Option<Spanned<ManifestTool>>,
        hooks: &[Hook],
        name: &Spanned<String>,
        hooks_at: usize,
    ) -> Result<Option<(ToolProfile, ToolSchemas)>, LoadError> {
        match (raw, hooks.contains(&Hook::Tool)) {
            (None, false) => Ok(None),
            (None, true) => Err(self.at(hooks_at, "a plugin with the hook 'tool' needs a [tool] table")),
            (Some(tool), false) => Err(self.at(tool.span().start, "a [tool] table requires the hook 'tool'")),
            (Some(_), true) if mcp::is_own_tool(name.get_ref()) => {
                let message = format!("'{}' is the name of a built-in tool; choose another name", name.get_ref());
                Err(self.at(name.span().start, message))
            }
            (Some(tool), true) => self.profile(tool).map(Some),
        }
    }

    fn profile(&self, raw: Spanned<ManifestTool>) -> Result<(ToolProfile, ToolSchemas), LoadError> {
        let at = raw.span().start;
        let ManifestTool { title, input, output, pipeline } = raw.into_inner();
        let Some(input) = input else {
            let error = self.at(at, "the schema of the arguments is missing");
            return Err(error.with_hint("add [tool.input] with a JSON Schema".to_owned()));
        };
        let schemas = ToolSchemas {
            input: self.schema(&input)?,
            output: output.as_ref().map(|output| self.schema(output)).transpose()?,
        };
        let (input, output) = (input.into_inner(), output.map(Spanned::into_inner));
        let pipeline = pipeline.map(|pipeline| self.pipeline(&pipeline, &input)).transpose()?;
        Ok((ToolProfile { title, input, output, pipeline }, schemas))
    }

    /// Compiles a schema. The schema must describe an object, because the arguments and the result of a tool are
    /// objects.
    fn schema(&self, raw: &Spanned<Object>) -> Result<Schema, LoadError> {
        let at = raw.span().start;
        let refused = |reason: String| self.at(at, format!("the schema is not a valid JSON Schema: {reason}"));
        let placed = |wrong: Violation| match wrong.pointer.as_str() {
            "" => refused(wrong.message),
            place => refused(format!("{place}: {}", wrong.message)),
        };
        if raw.get_ref().get("type").and_then(Value::as_str) != Some("object") {
            return Err(self.at(at, "the schema does not describe an object: type = \"object\" is required"));
        }
        let schema = serde_json::to_value(raw.get_ref()).map_err(|error| refused(error.to_string()))?;
        Schema::compile(&schema).map_err(placed)
    }

    fn pipeline(&self, raw: &Spanned<String>, input: &Object) -> Result<Value, LoadError> {
        let at = raw.span().start;
        let pipeline = json::parse(raw.get_ref().as_bytes())
            .map_err(|error| self.at(at, format!("the pipeline is not valid JSON: {error}")))?;
        if pipeline.as_array().is_none() {
            return Err(self.at(at, "the pipeline is not an array of stages"));
        }
        let known = input.get("properties").and_then(Value::as_object);
        let mut named = Vec::new();
        arguments(&pipeline, &mut named);
        match named.into_iter().find(|name| !known.is_some_and(|known| known.contains(name))) {
            Some(unknown) => {
                let message = format!("the pipeline uses the argument '{unknown}', which is not in [tool.input]");
                Err(self.at(at, message))
            }
            None => Ok(pipeline),
        }
    }
}

/// Adds to `named` the names of the arguments that a pipeline refers to.
fn arguments<'p>(pipeline: &'p Value, named: &mut Vec<&'p str>) {
    match pipeline {
        Value::Array(items) => items.iter().for_each(|item| arguments(item, named)),
        Value::Object(object) => {
            named.extend(ToolProfile::argument(object));
            object.iter().for_each(|(_, value)| arguments(value, named));
        }
        _ => {}
    }
}
