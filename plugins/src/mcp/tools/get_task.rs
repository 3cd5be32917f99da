//! `get_task`: returns a task with its messages and output.

use foldwork_engine::{Reader, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::shown_task::ShownWhole;
use crate::mcp::tool::{Call, Tool, Words};

const WORDS: Words = Words {
    name: "get_task",
    title: "Get a task",
    description: "Returns a task of the mailbox with its messages, every version of its output (artifacts) and its \
        events in order (timeline). `allowed_actions` lists what `act_on_task` may do now; `source.aggregate_id` is \
        the aggregate that the task is about.",
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    task_id: String,
    /// Whether to include the timeline, which may be long.
    timeline: Option<bool>,
}

#[derive(Serialize, JsonSchema)]
struct Answer {
    /// The task: `{id, title, status, priority, …, messages, artifacts, timeline}`.
    #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
    task: ShownWhole,
}

pub(super) fn tool() -> Tool {
    Tool::reading(&WORDS, get_task)
}

async fn get_task(reader: Reader, arguments: Arguments, _call: Call) -> Result<Answer> {
    let task = reader.task(&arguments.task_id).await?;
    // The timeline repeats what the other fields contain.
    let with_timeline = arguments.timeline.unwrap_or(false);
    let whole = reader.whole_task(&task, if with_timeline { None } else { Some(0) }).await?;
    Ok(Answer { task: ShownWhole::new(whole, with_timeline) })
}
