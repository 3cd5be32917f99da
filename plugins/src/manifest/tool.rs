//! The `[tool]` of a manifest: what models are told of a scripted tool, and what is read before it is called.

use foldwork_engine::hook::{Hook, ToolProfile};
use foldwork_engine::model::json;
use foldwork_engine::model::json_schema::Schema;
use foldwork_engine::model::value::{Object, Value};
use foldwork_engine::model::violation::Violation;
use serde::Deserialize;
use toml::Spanned;

use super::File;
use crate::mcp;
use crate::registry::LoadError;

/// The table as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Tool {
    title: Option<String>,
    input: Option<Spanned<Object>>,
    output: Option<Spanned<Object>>,
    /// As JSON.
    pipeline: Option<Spanned<String>>,
}

/// What a tool's arguments and its answer must be like.
#[derive(Debug)]
pub(crate) struct ToolSchemas {
    pub input: Schema,
    pub output: Option<Schema>,
}

impl File<'_> {
    /// The table stands there exactly for plugins with the hook `tool`.
    pub(super) fn tool(
        &self,
        written: Option<Spanned<Tool>>,
        hooks: &[Hook],
        name: &Spanned<String>,
        hooks_at: usize,
    ) -> Result<Option<(ToolProfile, ToolSchemas)>, LoadError> {
        match (written, hooks.contains(&Hook::Tool)) {
            (None, false) => Ok(None),
            (None, true) => Err(self.at(hooks_at, "a plugin with the hook 'tool' needs a [tool]")),
            (Some(tool), false) => Err(self.at(tool.span().start, "a [tool] is for plugins with the hook 'tool'")),
            (Some(_), true) if mcp::is_own_tool(name.get_ref()) => {
                let message = format!("'{}' is a tool of the server's own", name.get_ref());
                Err(self.at(name.span().start, message))
            }
            (Some(tool), true) => self.profile(tool).map(Some),
        }
    }

    fn profile(&self, written: Spanned<Tool>) -> Result<(ToolProfile, ToolSchemas), LoadError> {
        let at = written.span().start;
        let Tool { title, input, output, pipeline } = written.into_inner();
        let Some(input) = input else {
            let error = self.at(at, "a tool says what its arguments are like");
            return Err(LoadError { hint: Some("write [tool.input] with a JSON Schema".into()), ..error });
        };
        let schemas = ToolSchemas {
            input: self.schema(&input)?,
            output: output.as_ref().map(|output| self.schema(output)).transpose()?,
        };
        let (input, output) = (input.into_inner(), output.map(Spanned::into_inner));
        let pipeline = pipeline.map(|pipeline| self.pipeline(&pipeline, &input)).transpose()?;
        Ok((ToolProfile { title, input, output, pipeline }, schemas))
    }

    /// The schema of an object: neither arguments nor answers are anything else.
    fn schema(&self, written: &Spanned<Object>) -> Result<Schema, LoadError> {
        let at = written.span().start;
        let refused = |reason: String| self.at(at, format!("this is no JSON Schema: {reason}"));
        let placed = |wrong: Violation| match wrong.pointer.as_str() {
            "" => refused(wrong.message),
            place => refused(format!("{place}: {}", wrong.message)),
        };
        if written.get_ref().get("type").and_then(Value::as_str) != Some("object") {
            return Err(self.at(at, "the schema is not one of an object: it needs type = \"object\""));
        }
        let schema = serde_json::to_value(written.get_ref()).map_err(|error| refused(error.to_string()))?;
        Schema::compile(&schema).map_err(placed)
    }

    fn pipeline(&self, written: &Spanned<String>, input: &Object) -> Result<Value, LoadError> {
        let at = written.span().start;
        let pipeline = json::parse(written.get_ref().as_bytes())
            .map_err(|error| self.at(at, format!("the pipeline is no JSON: {error}")))?;
        if pipeline.as_array().is_none() {
            return Err(self.at(at, "the pipeline is no array of stages"));
        }
        let known = input.get("properties").and_then(Value::as_object);
        let mut named = Vec::new();
        arguments(&pipeline, &mut named);
        match named.into_iter().find(|name| !known.is_some_and(|known| known.contains(name))) {
            Some(unknown) => {
                let message = format!("the pipeline names the argument '{unknown}', which the schema does not have");
                Err(self.at(at, message))
            }
            None => Ok(pipeline),
        }
    }
}

/// The arguments that a pipeline names.
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
