//! Prompts: prepared requests to a model, each with the data that the model needs. A person selects a prompt in the
//! client.

use foldwork_engine::model::json;
use foldwork_engine::pipeline::catalogue::catalogue;
use foldwork_engine::workspace::query::Query;
use foldwork_engine::{Error, Reader, Result};
use rmcp::model::{GetPromptResult, JsonObject, Prompt, PromptArgument, PromptMessage, Role};

use super::tools::shown_task::ShownWhole;

pub(super) const REVIEW_TASK: &str = "review_task";
pub(super) const TASK_ID: &str = "task_id";
const EXPLAIN_PIPELINE: &str = "explain_pipeline";
const PIPELINE: &str = "pipeline";

pub(super) fn all() -> Vec<Prompt> {
    let argument =
        |name: &str, description: &str| PromptArgument::new(name).with_description(description).with_required(true);
    vec![
        Prompt::new(
            REVIEW_TASK,
            Some("Reviews a task of the mailbox: its output, whether it is correct, and what to do next."),
            Some(vec![argument(TASK_ID, "The task's id.")]),
        )
        .with_title("Review a task"),
        Prompt::new(
            EXPLAIN_PIPELINE,
            Some("Explains a pipeline stage by stage, and what it costs."),
            Some(vec![argument(PIPELINE, "The pipeline, as JSON.")]),
        )
        .with_title("Explain a pipeline"),
    ]
}

/// Returns a prompt with its arguments filled in.
pub(super) async fn get(reader: &Reader, name: &str, arguments: &JsonObject) -> Result<GetPromptResult> {
    let argument = |name: &str| {
        let value = arguments.get(name).and_then(|value| value.as_str()).filter(|text| !text.is_empty());
        value.ok_or_else(|| Error::invalid_at(format!("/{name}"), "the argument is required"))
    };
    match name {
        REVIEW_TASK => review_task(reader, argument(TASK_ID)?).await,
        EXPLAIN_PIPELINE => explain_pipeline(reader, argument(PIPELINE)?).await,
        _ => Err(Error::not_found("prompt", name)),
    }
}

async fn review_task(reader: &Reader, id: &str) -> Result<GetPromptResult> {
    let task = reader.task(id).await?;
    let whole = ShownWhole::new(reader.whole_task(&task, None).await?, true);
    let text = format!(
        "Review this task. Say in one sentence what was requested, then what was delivered, then what is wrong or \
         missing. Read the aggregate that the task is about with `get_aggregate`, and its history with `list_events`. \
         End with what you would do (approve, edit, reject, ask or defer) and why. Do not act before a person tells \
         you to.\n\n\
         ```json\n{}\n```",
        json::text(&whole)
    );
    Ok(user_prompt("A task to review", text))
}

async fn explain_pipeline(reader: &Reader, text: &str) -> Result<GetPromptResult> {
    let pipeline = json::parse(text.as_bytes())
        .map_err(|error| Error::invalid_at(format!("/{PIPELINE}"), format!("not valid JSON: {error}")))?;
    let result = reader.query(Query { dry_run: true, ..Query::new(pipeline) }).await?;
    let used = catalogue().filter(|entry| entry.word.name.starts_with('$') && names(text, entry.word.name));
    let used: Vec<String> = used.map(|entry| format!("* `{}`: {}", entry.word.name, entry.word.summary)).collect();
    let plan = result.plan.map(|plan| json::text(&plan)).unwrap_or_default();
    let text = format!(
        "Explain this pipeline to somebody who does not know the language: what it computes, what each stage does to \
         the rows, and what its result looks like. Then use the plan to say what is read, and whether a cheaper \
         pipeline would give the same result.\n\n```json\n{text}\n```\n\nIts plan:\n\n```json\n{plan}\n```\n\nStages \
         and operators that it uses:\n\n{}",
        used.join("\n")
    );
    Ok(user_prompt("A pipeline to explain", text))
}

/// Returns whether a pipeline's text contains `name` without a letter or digit directly after the name.
fn names(text: &str, name: &str) -> bool {
    text.match_indices(name).any(|(at, _)| !text[at + name.len()..].starts_with(|next: char| next.is_alphanumeric()))
}

fn user_prompt(description: &str, text: String) -> GetPromptResult {
    GetPromptResult::new(vec![PromptMessage::new_text(Role::User, text)]).with_description(description)
}
