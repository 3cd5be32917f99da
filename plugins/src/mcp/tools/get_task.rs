//! `get_task`: a task with what was said and delivered.

use foldwork_engine::model::value::{Object, Value};
use foldwork_engine::{Reader, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::mcp::tool::{Call, Tool, Words};

const WORDS: Words = Words {
    name: "get_task",
    title: "Get a task",
    description: "Shows a task of the mailbox with its messages, every version of what was delivered (artifacts), and what \
        happened to it in order (timeline). `allowed_actions` are what `act_on_task` may do with it now; `source.aggregate_id` \
        is what it is about.",
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    task_id: String,
    /// Whether to show the timeline too; it may be long.
    timeline: Option<bool>,
}

#[derive(Serialize, JsonSchema)]
struct Answer {
    /// `{id, title, status, priority, …, messages, artifacts, timeline}`.
    #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
    task: Object,
}

pub(super) fn tool() -> Tool {
    Tool::reading(&WORDS, get_task)
}

async fn get_task(reader: Reader, arguments: Arguments, _call: Call) -> Result<Answer> {
    let task = reader.task(&arguments.task_id).await?;
    let mut whole = reader.whole_task(&task, None).await?;
    if !arguments.timeline.unwrap_or(false) {
        // What happened is told with everything else that was said.
        whole = whole.into_iter().filter(|(name, _): &(_, Value)| &**name != "timeline").collect();
    }
    Ok(Answer { task: whole })
}
