//! The built-in tools. Each tool has its own file, with its texts, its arguments and its function.

mod act_on_task;
mod append_event;
mod create_article;
pub(super) mod get_aggregate;
pub(super) mod get_schema;
mod get_task;
mod list_events;
mod list_tasks;
mod publish_article;
mod query;
mod search;
mod upload_file_link;

mod presentation;
mod shown;
mod shown_effect;
pub(super) mod shown_task;

use super::tool::{BuiltinTool, ToolEffect};

/// The effect of a tool that only adds data.
const ADDS: ToolEffect = ToolEffect { destructive: false, idempotent: false };
/// The effect of a tool that may replace or remove data.
const REPLACES: ToolEffect = ToolEffect { destructive: true, idempotent: false };
/// The effect of a tool that may replace data. A repeated call changes nothing further.
const SETS: ToolEffect = ToolEffect { destructive: true, idempotent: true };

/// Returns the built-in tools: first the tools that only read, then the tools that write.
pub(super) fn all() -> Vec<BuiltinTool> {
    vec![
        BuiltinTool::reading(&search::WORDS, search::search),
        BuiltinTool::reading(&query::WORDS, query::query),
        BuiltinTool::reading(&get_aggregate::WORDS, get_aggregate::get_aggregate),
        BuiltinTool::reading(&list_events::WORDS, list_events::list_events),
        BuiltinTool::reading(&get_schema::WORDS, get_schema::get_schema),
        BuiltinTool::reading(&list_tasks::WORDS, list_tasks::list_tasks),
        BuiltinTool::reading(&get_task::WORDS, get_task::get_task),
        BuiltinTool::writing(&act_on_task::WORDS, REPLACES, act_on_task::act_on_task),
        BuiltinTool::writing(&append_event::WORDS, ADDS, append_event::append_event),
        BuiltinTool::writing(&create_article::WORDS, ADDS, create_article::create_article),
        // Publishing replaces the revision that was published before.
        BuiltinTool::writing(&publish_article::WORDS, SETS, publish_article::publish_article),
        // An upload to the link replaces a file that is already at the path.
        BuiltinTool::writing(&upload_file_link::WORDS, REPLACES, upload_file_link::upload_file_link),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tool_schemas_are_objects_without_references_and_reject_unknown_arguments() {
        for tool in all() {
            let description = tool.description;
            let output = description.output_schema.expect("an output schema");
            for schema in [&description.input_schema, &output] {
                assert_eq!(schema["type"], "object", "{}", description.name);
                let text = serde_json::to_string(schema).expect("JSON");
                assert!(!text.contains("$ref") && !text.contains("uint"), "{}: {text}", description.name);
            }
            assert_eq!(description.input_schema["additionalProperties"], false, "{}", description.name);
        }
    }
}
