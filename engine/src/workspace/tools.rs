//! Lists the tools that plugins offer to models, and calls a tool. If the tool has a pipeline, the pipeline runs first,
//! and the tool receives the resulting rows.

use std::sync::Arc;

use super::query::Query;
use super::query::page::PageRequest;
use super::rights::Reader;
use crate::error::{Error, ErrorCode, Result};
use crate::hook::{FailureKind, Hook, Plugin, ToolInput, ToolProfile};
use crate::model::value::{Object, Value};
use crate::state::plugins::PluginVersion;

/// The maximum number of rows passed to a tool.
const MAX_ROWS: u32 = 1_000;

/// The complete input of a tool call.
struct ToolCallInput {
    arguments: Object,
    rows: Vec<Value>,
    now_ms: i64,
}

impl Reader {
    /// Returns the newest version of each plugin that is a tool, in the order of execution.
    pub fn tools(&self) -> impl Iterator<Item = Arc<PluginVersion>> {
        let plugins = &self.context.state().plugins;
        plugins.indexes().map(|plugin| plugins.newest(plugin)).filter(|about| about.hooks.contains(&Hook::Tool))
    }

    /// Checks the arguments of a tool against the tool's schema, and calls the tool. A tool cannot change data: a tool
    /// only computes a result from the arguments and the rows.
    pub async fn call_tool(&self, name: &str, arguments: Object) -> Result<Object> {
        let state = self.context.state();
        let plugin = state.plugins.find(name).ok_or_else(|| Error::not_found("tool", name))?;
        self.context.refresh_versions().await;
        // A tool changes no data, so a call always uses the newest version of the plugin.
        let version = state.plugins.newest(plugin);
        if !version.hooks.contains(&Hook::Tool) {
            return Err(Error::not_found("tool", name));
        }
        let profile = version.tool.as_ref();
        let arguments = profile.map_or(arguments.clone(), |profile| profile.completed(arguments));
        let (checking, checked) = (version.plugin.clone(), arguments.clone());
        let checked = tokio::task::spawn_blocking(move || checking.check_arguments(&checked));
        let violations = checked.await.map_err(Error::internal)?;
        if !violations.is_empty() {
            return Err(Error::from(violations));
        }
        let rows = match profile.and_then(|profile| profile.pipeline.as_ref()) {
            Some(pipeline) => self.rows_of(filled(pipeline, &arguments)).await?,
            None => Vec::new(),
        };
        let call = Arc::new(ToolCallInput { arguments, rows, now_ms: state.clock.now_ms() });
        let called = state.plugins.call_version(plugin, &version, call, run_tool).await;
        state.call_counts.store(&state.record.id, &state.plugins).await;
        called.map(|done| done.value).map_err(|failure| match failure.kind {
            FailureKind::Panic => Error::internal(failure),
            _ => Error::invalid_with_code(ErrorCode::ToolFailed, format!("the tool '{name}' failed: {failure}")),
        })
    }

    async fn rows_of(&self, pipeline: Value) -> Result<Vec<Value>> {
        let page = Some(PageRequest { limit: Some(MAX_ROWS), after: None });
        Ok(self.query(Query { page, ..Query::new(pipeline) }).await?.rows)
    }
}

fn run_tool(plugin: &dyn Plugin, call: &ToolCallInput) -> crate::hook::Outcome<Object> {
    plugin.tool(&ToolInput { arguments: &call.arguments, rows: &call.rows, now_ms: call.now_ms })
}

/// Replaces the placeholders in a pipeline with arguments. A missing argument becomes null.
fn filled(pipeline: &Value, arguments: &Object) -> Value {
    match pipeline {
        Value::Array(items) => items.iter().map(|item| filled(item, arguments)).collect::<Vec<_>>().into(),
        Value::Object(object) => match ToolProfile::argument(object) {
            Some(name) => arguments.get(name).cloned().unwrap_or_default(),
            None => {
                let fields = object.iter().map(|(name, value)| (name.clone(), filled(value, arguments)));
                fields.collect::<Object>().into()
            }
        },
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::json::parse;

    #[test]
    fn arguments_replace_their_placeholders() {
        let value = |text: &str| parse(text.as_bytes()).expect("JSON");
        let pipeline = value(r#"[{"$match": {"a": {"$argument": "x"}, "b": {"$gt": {"$argument": "y"}, "c": 1}}}]"#);
        let arguments = Object::from_iter([("x", Value::from("one"))]);
        let expected = value(r#"[{"$match": {"a": "one", "b": {"$gt": null, "c": 1}}}]"#);
        assert_eq!(filled(&pipeline, &arguments), expected);
    }
}
