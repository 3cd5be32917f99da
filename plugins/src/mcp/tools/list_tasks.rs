//! `list_tasks`: what waits in the mailbox.

use foldwork_engine::model::task::{Status, shown};
use foldwork_engine::model::value::Object;
use foldwork_engine::workspace::mailbox::tasks::TaskFilter;
use foldwork_engine::{Error, Reader, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::mcp::tool::{Call, Tool, Words};
use crate::mcp::words::{WantedTasks, Word};

/// Tasks where it is not said.
const USUAL: usize = 20;

const WORDS: Words = Words {
    name: "list_tasks",
    title: "List tasks",
    description: "Lists the tasks of the mailbox, newest first: work for agents and people, with who it waits for and what \
        may be done with it. Without `status` it lists those that are open. `get_task` shows what was said and delivered.",
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// `review` waits for a person's decision on what was delivered, `input_required` for an answer to an agent.
    status: Option<Word<WantedTasks>>,
    /// Only tasks of this agent or user.
    assignee_id: Option<String>,
    /// Only those of this project: its id or slug.
    project_id: Option<String>,
    unread: Option<bool>,
    /// The `next_cursor` of the answer before.
    #[schemars(range(min = 1))]
    cursor: Option<u64>,
    /// Tasks at most; 20 where it is not said.
    #[schemars(range(min = 1, max = 100))]
    limit: Option<usize>,
}

#[derive(Serialize, JsonSchema)]
struct Answer {
    /// Each with `id, title, status, priority, assignee_type, assignee_id, waiting_on, allowed_actions, source, …`.
    #[schemars(with = "Vec<serde_json::Map<String, serde_json::Value>>")]
    tasks: Vec<Object>,
    /// The `cursor` of the next call; null where there is nothing more.
    next_cursor: Option<u64>,
}

pub(super) fn tool() -> Tool {
    Tool::reading(&WORDS, list_tasks)
}

async fn list_tasks(reader: Reader, arguments: Arguments, call: Call) -> Result<Answer> {
    let filter = TaskFilter {
        statuses: statuses(arguments.status.map_or(WantedTasks::Open, |wanted| wanted.0)),
        assignee_id: arguments.assignee_id,
        project: arguments.project_id,
        unread: arguments.unread,
        ..TaskFilter::default()
    };
    let page = reader.list_tasks(&filter, arguments.cursor, arguments.limit.unwrap_or(USUAL)).await?;
    let (mut tasks, mut left, mut next_cursor) = (Vec::new(), call.answer_bytes / 2, page.next);
    for (index, task) in page.items.iter().enumerate() {
        let shown = shown::shown(task);
        let size = serde_json::to_string(&shown).map_err(Error::internal)?.len();
        if size > left && index > 0 {
            // The next page begins with what does not fit here.
            next_cursor = page.items.get(index - 1).map(|last| last.first_position);
            break;
        }
        left = left.saturating_sub(size);
        tasks.push(shown);
    }
    Ok(Answer { tasks, next_cursor })
}

fn statuses(wanted: WantedTasks) -> Option<Vec<Status>> {
    let which = |open: bool| Some(Status::ALL.into_iter().filter(|status| status.is_open() == open).collect());
    match wanted {
        WantedTasks::Any => None,
        WantedTasks::Open => which(true),
        WantedTasks::Closed => which(false),
        WantedTasks::Only(status) => Some(vec![status]),
    }
}
