//! `list_events`: lists events of the workspace or of one aggregate.

use std::time::Duration;

use foldwork_engine::workspace::events::{EventLimit, LogFilter, ReadDirection};
use foldwork_engine::{Error, Reader, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::presentation::ShownEvent;
use crate::mcp::tool::{ToolCall, ToolWords};

/// The number of events if the call has no `limit`.
const DEFAULT_LIMIT: usize = 50;

pub(super) const WORDS: ToolWords = ToolWords {
    name: "list_events",
    title: "List events",
    description: "Lists events, oldest first: those of the whole workspace, or with `aggregate_id` those of one \
        aggregate (also newest first). To continue, call again with `after` set to the answer's `next_after`. To \
        count or group events use `query`.",
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// The id of the aggregate whose history is listed. By default, the events of the whole workspace are listed.
    aggregate_id: Option<String>,
    /// The aggregate type whose events are listed. Not allowed with `aggregate_id`.
    aggregate_type: Option<String>,
    /// The event types to list, such as `article.published`. Not allowed with `aggregate_id`.
    event_types: Option<Vec<String>>,
    /// Without `aggregate_id`: the position in the log after which events are listed. With `aggregate_id`: the version
    /// after which events are listed. With `aggregate_id` and `newest_first`: the version before which events are
    /// listed.
    after: Option<u64>,
    /// Whether to list the newest events first. Allowed only with `aggregate_id`.
    newest_first: Option<bool>,
    /// The maximum number of events. The default is 50.
    #[schemars(range(min = 1, max = 200))]
    limit: Option<usize>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Output {
    events: Vec<ShownEvent>,
    /// The value of `after` for the next call. Null if there are no more events.
    next_after: Option<u64>,
}

pub(super) async fn list_events(reader: Reader, arguments: Arguments, call: ToolCall) -> Result<Output> {
    // An event takes more bytes as text than in memory, so only half of the limit is used. The first event is returned
    // even if the event exceeds this size.
    let limit = EventLimit { events: arguments.limit.unwrap_or(DEFAULT_LIMIT), bytes: call.response_bytes / 2 };
    let newest_first = arguments.newest_first.unwrap_or(false);
    if let Some(id) = arguments.aggregate_id {
        if arguments.aggregate_type.is_some() || arguments.event_types.is_some() {
            let message = "`aggregate_id` cannot be combined with `aggregate_type` or `event_types`";
            return Err(Error::invalid_at("/aggregate_id", message));
        }
        let direction = if newest_first { ReadDirection::Backward } else { ReadDirection::Forward };
        let page = reader.stream(&id, arguments.after, limit, direction).await?;
        let events = page.items.iter().map(ShownEvent::from).collect();
        return Ok(Output { events, next_after: page.next });
    }
    if newest_first {
        return Err(Error::invalid_at("/newest_first", "`newest_first` requires `aggregate_id`"));
    }
    let filter = LogFilter {
        event_types: arguments.event_types.unwrap_or_default().into_iter().collect(),
        aggregate_type: arguments.aggregate_type,
        ..LogFilter::default()
    };
    let page = reader.log(arguments.after.unwrap_or(0), limit, &filter, Duration::ZERO).await?;
    let events = page.items.iter().map(|event| ShownEvent::from(&**event)).collect();
    Ok(Output { events, next_after: page.next })
}
