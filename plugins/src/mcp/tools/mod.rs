//! The built-in tools. Each tool has its own file.

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

use super::tool::BuiltinTool;

/// Returns the built-in tools: first the tools that only read, then the tools that write.
pub(super) fn all() -> Vec<BuiltinTool> {
    vec![
        search::tool(),
        query::tool(),
        get_aggregate::tool(),
        list_events::tool(),
        get_schema::tool(),
        list_tasks::tool(),
        get_task::tool(),
        act_on_task::tool(),
        append_event::tool(),
        create_article::tool(),
        publish_article::tool(),
        upload_file_link::tool(),
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
