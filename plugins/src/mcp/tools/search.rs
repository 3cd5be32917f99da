//! `search`: finds aggregates by words.

use foldwork_engine::model::date::format_date;
use foldwork_engine::workspace::search::{Hit, SearchRequest};
use foldwork_engine::{Reader, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::shown::shown;
use crate::mcp::closed_sets::{MatchKind, OneOf};
use crate::mcp::tool::{ToolCall, ToolWords};

pub(super) const WORDS: ToolWords = ToolWords {
    name: "search",
    title: "Search",
    description: "Finds aggregates (articles, projects, anything with a label) by words of their labels and texts, \
        best first. Words may be misspelt, reordered or incomplete. Start here if you know a name but not the id. For \
        counting, filtering by fields or grouping use `query`.",
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// The words to search for in labels and texts.
    query: String,
    /// The type of aggregates to search for. By default, all types except tasks are searched.
    aggregate_type: Option<String>,
    /// The id or slug of the project to search in.
    project_id: Option<String>,
    /// The maximum number of results. The default is 10.
    #[schemars(range(min = 1, max = 100))]
    limit: Option<u64>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Output {
    /// The results, best first.
    results: Vec<FoundAggregate>,
    /// Reasons why results may be missing, for example changes that are not indexed yet.
    warnings: Vec<String>,
}

shown! {
    #[derive(Serialize, JsonSchema)]
    #[schemars(rename = "Found")]
    struct FoundAggregate from hit: Hit {
        aggregate_id: String = hit.aggregate.id.to_string(),
        aggregate_type: String = hit.aggregate.aggregate_type.to_string(),
        project_id: Option<String> = hit.aggregate.project_id.as_deref().map(str::to_owned),
        /// The label. A label of more than 512 bytes is cut.
        label: String = hit.label.to_string(),
        /// The quality of the match, from 0 to 1.
        score: f64 = hit.score,
        /// The kind of match by which the aggregate was found.
        kind: OneOf<MatchKind> = OneOf(MatchKind(hit.kind)),
        last_event_at: String = format_date(hit.aggregate.last_event_at),
    }
}

pub(super) async fn search(reader: Reader, arguments: Arguments, _call: ToolCall) -> Result<Output> {
    let Arguments { query, aggregate_type, project_id, limit } = arguments;
    let found = reader.search(SearchRequest { query, aggregate_type, project: project_id, limit }).await?;
    Ok(Output { results: found.results.into_iter().map(FoundAggregate::from).collect(), warnings: found.warnings })
}
