//! `list_tasks`: lists the tasks of the mailbox.

use foldwork_engine::model::task::Status;
use foldwork_engine::workspace::mailbox::tasks::{TaskFilter, TaskLimit};
use foldwork_engine::{Error, Reader, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::VariantArray;

use super::shown_task::ShownTask;
use crate::mcp::closed_sets::{OneOf, WantedTasks};
use crate::mcp::tool::{ToolCall, ToolWords};

/// The number of tasks if the call has no `limit`.
const DEFAULT_LIMIT: usize = 20;

pub(super) const WORDS: ToolWords = ToolWords {
    name: "list_tasks",
    title: "List tasks",
    description: "Lists the tasks of the mailbox, newest first: work for agents and people, with the assignee and the \
        allowed actions. Without `status`, lists open tasks. `get_task` returns messages and output.",
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// The status of the tasks to list. The default is `open`. `review` tasks wait for a person's decision on the
    /// output. `input_required` tasks wait for an answer to an agent's question.
    status: Option<OneOf<WantedTasks>>,
    /// The id of the agent or user whose tasks are listed.
    assignee_id: Option<String>,
    /// The id or slug of the project whose tasks are listed.
    project_id: Option<String>,
    unread: Option<bool>,
    /// The `next_cursor` of the previous result.
    #[schemars(range(min = 1))]
    cursor: Option<u64>,
    /// The maximum number of tasks. The default is 20.
    #[schemars(range(min = 1, max = 100))]
    limit: Option<usize>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Output {
    /// The tasks, each with `id, title, status, priority, assignee_type, assignee_id, waiting_on, allowed_actions,
    /// source, …`.
    #[schemars(with = "Vec<serde_json::Map<String, serde_json::Value>>")]
    tasks: Vec<ShownTask>,
    /// The value of `cursor` for the next call. Null if there are no more tasks.
    next_cursor: Option<u64>,
}

pub(super) async fn list_tasks(reader: Reader, arguments: Arguments, call: ToolCall) -> Result<Output> {
    let filter = TaskFilter {
        statuses: statuses(arguments.status.map_or(WantedTasks::Open, |status| status.0)),
        assignee_id: arguments.assignee_id,
        project: arguments.project_id,
        unread: arguments.unread,
        ..TaskFilter::default()
    };
    let limit = TaskLimit::tasks(arguments.limit.unwrap_or(DEFAULT_LIMIT));
    let page = reader.list_tasks(&filter, arguments.cursor, limit).await?;
    let decider = reader.decider();
    let (mut tasks, mut remaining, mut next_cursor) = (Vec::new(), call.response_bytes / 2, page.next);
    for (index, task) in page.items.iter().enumerate() {
        let shown = ShownTask::from(decider.view(task));
        let size = serde_json::to_string(&shown).map_err(Error::internal)?.len();
        if size > remaining && index > 0 {
            // The next page begins with the first task that does not fit into this page.
            next_cursor = page.items.get(index - 1).map(|last| last.first_position);
            break;
        }
        remaining = remaining.saturating_sub(size);
        tasks.push(shown);
    }
    Ok(Output { tasks, next_cursor })
}

fn statuses(filter: WantedTasks) -> Option<Vec<Status>> {
    let which = |open: bool| Some(Status::VARIANTS.iter().copied().filter(|status| status.is_open() == open).collect());
    match filter {
        WantedTasks::Any => None,
        WantedTasks::Open => which(true),
        WantedTasks::Closed => which(false),
        WantedTasks::Only(status) => Some(vec![status]),
    }
}
