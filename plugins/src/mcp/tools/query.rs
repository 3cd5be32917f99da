//! `query`: runs a pipeline over events and states.

use foldwork_engine::model::json;
use foldwork_engine::model::value::Value;
use foldwork_engine::offload::in_place;
use foldwork_engine::workspace::query::Query;
use foldwork_engine::workspace::query::page::PageRequest;
use foldwork_engine::{Reader, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::mcp::tool::{ToolCall, ToolWords};

/// The number of rows if the call has no `limit`.
const DEFAULT_LIMIT: u32 = 100;

pub(super) const WORDS: ToolWords = ToolWords {
    name: "query",
    title: "Query",
    description: "Runs a pipeline in MongoDB's aggregation language over the workspace. Rows are events until the \
        stage {\"$fold\": {}} turns them into the states of aggregates. A question about the current state therefore \
        begins with [{\"$match\": {\"aggregate_type\": \"article\"}}, {\"$fold\": {}}, …]; a question about what \
        happened omits $fold. A state has its type's fields and `_id`, `aggregate_type`, `project_id`, `_version`, \
        `_created_at`, `_last_event_at`; an event has `_id`, `aggregate_id`, `event_type`, `payload`, `occurred_at`, \
        `position`. Examples: articles by status: [{\"$match\": {\"aggregate_type\": \"article\"}}, {\"$fold\": {}}, \
        {\"$group\": {\"_id\": \"$status\", \"n\": {\"$sum\": 1}}}]; events per day: [{\"$group\": {\"_id\": \
        {\"$dateTrunc\": {\"date\": \"$occurred_at\", \"unit\": \"day\"}}, \"n\": {\"$sum\": 1}}}]. Write times in \
        filters as {\"$date\": \"2026-01-31T00:00:00Z\"}. End with $project to keep rows small. `get_schema` returns \
        the fields, and the resource foldwork://operators the operators. A query changes nothing.",
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// The stages of the pipeline. Each stage is an object with one operator.
    #[schemars(with = "Vec<serde_json::Map<String, serde_json::Value>>")]
    pipeline: Value,
    /// The maximum number of rows. The default is 100.
    #[schemars(range(min = 1, max = 1000))]
    limit: Option<u32>,
    /// Whether to explain how the result was computed.
    explain: Option<bool>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Output {
    #[schemars(with = "Vec<serde_json::Map<String, serde_json::Value>>")]
    rows: Vec<Value>,
    /// The number of rows in this result.
    count: usize,
    /// Whether there are more rows than requested, or more than fit into the result. To get the remaining rows, narrow
    /// the pipeline or continue with $skip.
    more: bool,
    /// Messages about probable mistakes in the pipeline and about inexact values in the result.
    warnings: Vec<String>,
    /// How the result was computed. Null unless the argument `explain` is true.
    #[schemars(with = "Option<serde_json::Map<String, serde_json::Value>>")]
    explain: Option<Value>,
}

pub(super) async fn query(reader: Reader, arguments: Arguments, call: ToolCall) -> Result<Output> {
    let mut query = Query::new(arguments.pipeline);
    query.explain = arguments.explain.unwrap_or(false);
    query.page = Some(PageRequest { limit: Some(arguments.limit.unwrap_or(DEFAULT_LIMIT)), after: None });
    let found = reader.query(query).await?;
    let (rows, is_cut) = in_place(|| fitting(found.rows, call.response_bytes));
    Ok(Output {
        count: rows.len(),
        more: is_cut || found.next.is_some(),
        rows,
        warnings: found.warnings,
        explain: found.explain,
    })
}

/// Returns the first rows that together fit into half of the size limit `bytes`, and whether rows were left out. The
/// first row is returned even if the row exceeds this size.
fn fitting(mut rows: Vec<Value>, bytes: usize) -> (Vec<Value>, bool) {
    let mut remaining = bytes / 2;
    let fits = rows.iter().take_while(|row| {
        let size = json::text(row).len();
        let fits = size <= remaining;
        remaining = remaining.saturating_sub(size);
        fits
    });
    let fits = fits.count().max(1);
    let is_cut = fits < rows.len();
    rows.truncate(fits);
    (rows, is_cut)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_over_the_limit_are_omitted_except_the_first_row() {
        let rows = |count: usize| vec![Value::from("x".repeat(98)); count];
        let (kept, is_cut) = fitting(rows(3), 1_000);
        assert_eq!((kept.len(), is_cut), (3, false));
        let (kept, is_cut) = fitting(rows(10), 1_000);
        assert_eq!((kept.len(), is_cut), (5, true));
        let (kept, is_cut) = fitting(rows(2), 10);
        assert_eq!((kept.len(), is_cut), (1, true));
        assert!(!fitting(Vec::new(), 10).1);
    }
}
