//! `get_aggregate`: returns the state of one aggregate.

use foldwork_engine::model::aggregate::Aggregate;
use foldwork_engine::model::date::{format_date, parse_date};
use foldwork_engine::model::definition::Definition;
use foldwork_engine::model::value::Object;
use foldwork_engine::workspace::aggregates::StateMoment;
use foldwork_engine::{Error, Reader, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::shown::shown;
use crate::mcp::tool::{ToolCall, ToolWords};

pub(super) const WORDS: ToolWords = ToolWords {
    name: "get_aggregate",
    title: "Get an aggregate",
    description: "Returns one aggregate by its id: the state that its events fold to, now or at an earlier version or \
        time. Ids come from `search`, `query` or `list_events`.",
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    aggregate_id: String,
    /// The version of the state to return: the state after the event with this version.
    #[schemars(range(min = 1))]
    version: Option<u64>,
    /// The time of the state to return, in RFC 3339: the state after the events that occurred up to this time. Give
    /// either `at` or `version`, not both.
    at: Option<String>,
}

shown! {
    /// An aggregate with its state.
    #[derive(Serialize, JsonSchema)]
    pub struct ShownAggregate from (aggregate, definition): (&Aggregate, &Definition) {
        aggregate_id: String = aggregate.id.to_string(),
        aggregate_type: String = aggregate.aggregate_type.to_string(),
        project_id: Option<String> = aggregate.project_id.as_deref().map(str::to_owned),
        /// The version of the last event that the state is folded from.
        version: u64 = aggregate.version,
        created_at: String = format_date(aggregate.created_at),
        last_event_at: String = format_date(aggregate.last_event_at),
        /// The traits of the aggregate's type.
        traits: Vec<String> = definition.traits.iter().map(|name| name.to_string()).collect(),
        /// The aggregate's fields.
        #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
        state: Object = (*aggregate.state).clone(),
        /// The facts that plugins derived from the aggregate, by plugin.
        #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
        facts: Object = (*aggregate.facts).clone(),
    }
}

pub(super) async fn get_aggregate(reader: Reader, arguments: Arguments, _call: ToolCall) -> Result<ShownAggregate> {
    let moment = match (arguments.version, arguments.at) {
        (None, None) => StateMoment::Now,
        (Some(version), None) => StateMoment::Version(version),
        (None, Some(at)) => {
            StateMoment::At(parse_date(&at).ok_or_else(|| Error::invalid_at("/at", "expected an RFC 3339 time"))?)
        }
        (Some(_), Some(_)) => return Err(Error::invalid_at("/at", "expected either `version` or `at`, not both")),
    };
    let (aggregate, definition) = reader.aggregate(&arguments.aggregate_id, moment).await?;
    Ok(ShownAggregate::from((&*aggregate, &*definition)))
}
