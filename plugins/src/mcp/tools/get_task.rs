//! `get_task`: returns a task with its messages and output.

use foldwork_engine::{Reader, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::shown_effect::ShownEffect;
use super::shown_task::ShownWhole;
use crate::mcp::tool::{ToolCall, ToolWords};

pub(super) const WORDS: ToolWords = ToolWords {
    name: "get_task",
    title: "Get a task",
    description: "Returns a task of the mailbox with its messages, every version of its output (artifacts) and its \
        events in order (timeline). `allowed_actions` lists what `act_on_task` may do now; `source.aggregate_id` is \
        the aggregate that the task is about, and `would_append` the events that approval appends.",
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    task_id: String,
    /// Whether to include the timeline, which may be long.
    timeline: Option<bool>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Output {
    /// The task: `{id, title, status, priority, …, messages, artifacts, timeline}`.
    #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
    task: ShownWhole,
    /// The events of effects that approval would append now, each with the state of its aggregate after the event. A
    /// state is null if this state and the states of the preceding events together exceed the size limit.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Option<Vec<serde_json::Map<String, serde_json::Value>>>")]
    would_append: Vec<ShownEffect>,
    /// The reason why approval would be rejected now. Absent if approval would succeed, or if only the status or the
    /// review of the task does not allow approval. Also absent if only stale effects prevent approval: `would_append`
    /// marks these effects as `stale`.
    #[serde(skip_serializing_if = "Option::is_none")]
    would_refuse: Option<String>,
}

pub(super) async fn get_task(reader: Reader, arguments: Arguments, _call: ToolCall) -> Result<Output> {
    let task = reader.task(&arguments.task_id).await?;
    // The timeline repeats data of other fields, so the result omits the timeline by default.
    let with_timeline = arguments.timeline.unwrap_or(false);
    let whole = reader.whole_task(&task, if with_timeline { None } else { Some(0) }).await?;
    let approval = reader.approval(&task).await?;
    Ok(Output {
        task: ShownWhole::new(whole, with_timeline),
        would_append: approval.would_append.into_iter().map(ShownEffect::from).collect(),
        would_refuse: approval.refusal.map(|error| error.to_string()),
    })
}
