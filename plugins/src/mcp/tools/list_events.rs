//! `list_events`: what happened, in the workspace or to one aggregate.

use std::time::Duration;

use foldwork_engine::workspace::events::{Direction, Limit, LogFilter};
use foldwork_engine::{Error, Reader, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::shown::ShownEvent;
use crate::mcp::tool::{Call, Tool, Words};

/// Events where it is not said.
const USUAL: usize = 50;

const WORDS: Words = Words {
    name: "list_events",
    title: "List events",
    description: "Lists what happened, oldest first: in the whole workspace, or with `aggregate_id` to one aggregate (there \
        also newest first). To go on, call again with `after` set to the answer's `next_after`. To count or group events use \
        `query`.",
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// Only the history of this aggregate.
    aggregate_id: Option<String>,
    /// Only events of this aggregate type. Not with `aggregate_id`.
    aggregate_type: Option<String>,
    /// Only events of these types, such as `article.published`. Not with `aggregate_id`.
    event_types: Option<Vec<String>>,
    /// Events after this position of the log; with `aggregate_id` after (newest first: before) this version.
    after: Option<u64>,
    /// With `aggregate_id`: the newest first.
    newest_first: Option<bool>,
    /// Events at most; 50 where it is not said.
    #[schemars(range(min = 1, max = 200))]
    limit: Option<usize>,
}

#[derive(Serialize, JsonSchema)]
struct Answer {
    events: Vec<ShownEvent>,
    /// The `after` of the next call; null where there is nothing more.
    next_after: Option<u64>,
}

pub(super) fn tool() -> Tool {
    Tool::reading(&WORDS, list_events)
}

async fn list_events(reader: Reader, arguments: Arguments, call: Call) -> Result<Answer> {
    // An event takes more as text than in memory, and one is answered at least.
    let limit = Limit { events: arguments.limit.unwrap_or(USUAL), bytes: call.answer_bytes / 2 };
    let newest_first = arguments.newest_first.unwrap_or(false);
    if let Some(id) = arguments.aggregate_id {
        if arguments.aggregate_type.is_some() || arguments.event_types.is_some() {
            return Err(Error::invalid_at("/aggregate_id", "one aggregate's events are listed without other filters"));
        }
        let direction = if newest_first { Direction::Backward } else { Direction::Forward };
        let page = reader.stream(&id, arguments.after, limit, direction).await?;
        let events = page.items.iter().map(ShownEvent::from).collect();
        return Ok(Answer { events, next_after: page.next });
    }
    if newest_first {
        return Err(Error::invalid_at("/newest_first", "needs an aggregate_id"));
    }
    let filter =
        LogFilter { event_types: arguments.event_types.unwrap_or_default(), aggregate_type: arguments.aggregate_type };
    let page = reader.log(arguments.after.unwrap_or(0), limit, &filter, Duration::ZERO).await?;
    let events = page.items.iter().map(|event| ShownEvent::from(&**event)).collect();
    Ok(Answer { events, next_after: page.next })
}
