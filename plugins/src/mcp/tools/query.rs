//! `query`: a pipeline over events and states.

use foldwork_engine::model::json;
use foldwork_engine::model::value::Value;
use foldwork_engine::workspace::query::Query;
use foldwork_engine::workspace::query::page::Paging;
use foldwork_engine::{Reader, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::mcp::tool::{Call, Tool, Words};

/// Rows where it is not said.
const USUAL: u32 = 100;

const WORDS: Words = Words {
    name: "query",
    title: "Query",
    description: "Runs a pipeline in MongoDB's aggregation language over the workspace. Rows are events until the stage \
        {\"$fold\": {}} turns them into the states of aggregates; so a question about things as they are now begins \
        [{\"$match\": {\"aggregate_type\": \"article\"}}, {\"$fold\": {}}, …], and one about what happened leaves $fold out. A \
        state has its type's fields and `_id`, `aggregate_type`, `project_id`, `_version`, `_created_at`, `_last_event_at`; an \
        event has `_id`, `aggregate_id`, `event_type`, `payload`, `occurred_at`, `position`. Examples: articles by status: \
        [{\"$match\": {\"aggregate_type\": \"article\"}}, {\"$fold\": {}}, {\"$group\": {\"_id\": \"$status\", \"n\": {\"$sum\": 1}}}]; \
        events a day: [{\"$group\": {\"_id\": {\"$dateTrunc\": {\"date\": \"$occurred_at\", \"unit\": \"day\"}}, \"n\": {\"$sum\": 1}}}]. \
        Times in filters are written {\"$date\": \"2026-01-31T00:00:00Z\"}. End with $project to keep rows small. Fields are told \
        by `get_schema`, operators by the resource foldwork://operators. It changes nothing.",
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The stages, each an object with one operator.
    #[schemars(with = "Vec<serde_json::Map<String, serde_json::Value>>")]
    pipeline: Value,
    /// Rows at most; 100 where it is not said.
    #[schemars(range(min = 1, max = 1000))]
    limit: Option<u32>,
    /// Whether to tell too how the answer was come by.
    explain: Option<bool>,
}

#[derive(Serialize, JsonSchema)]
struct Answer {
    #[schemars(with = "Vec<serde_json::Map<String, serde_json::Value>>")]
    rows: Vec<Value>,
    /// Rows in this answer.
    count: usize,
    /// Whether there are more rows than were asked for or than fit: narrow the pipeline, or go on with $skip.
    more: bool,
    /// What was not as asked.
    warnings: Vec<String>,
    /// Asked for by `explain`.
    #[schemars(with = "Option<serde_json::Map<String, serde_json::Value>>")]
    explain: Option<Value>,
}

pub(super) fn tool() -> Tool {
    Tool::reading(&WORDS, query)
}

async fn query(reader: Reader, arguments: Arguments, call: Call) -> Result<Answer> {
    let mut asked = Query::new(arguments.pipeline);
    asked.explain = arguments.explain.unwrap_or(false);
    asked.page = Some(Paging { limit: Some(arguments.limit.unwrap_or(USUAL)), after: None });
    let found = reader.query(asked).await?;
    let (rows, is_cut) = fitting(found.rows, call.answer_bytes);
    Ok(Answer {
        count: rows.len(),
        more: is_cut || found.next.is_some(),
        rows,
        warnings: found.warnings,
        explain: found.explain,
    })
}

/// The first rows, as many as fit into half of what an answer may have, and one at least; whether others are left out.
fn fitting(mut rows: Vec<Value>, bytes: usize) -> (Vec<Value>, bool) {
    let mut left = bytes / 2;
    let fits = rows.iter().take_while(|row| {
        let size = json::text(row).len();
        let fits = size <= left;
        left = left.saturating_sub(size);
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
    fn rows_that_do_not_fit_are_left_out_but_never_all() {
        let rows = |count: usize| vec![Value::from("x".repeat(98)); count];
        let (left, is_cut) = fitting(rows(3), 1_000);
        assert_eq!((left.len(), is_cut), (3, false));
        let (left, is_cut) = fitting(rows(10), 1_000);
        assert_eq!((left.len(), is_cut), (5, true));
        let (left, is_cut) = fitting(rows(2), 10);
        assert_eq!((left.len(), is_cut), (1, true));
        assert!(!fitting(Vec::new(), 10).1);
    }
}
