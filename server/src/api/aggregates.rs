//! `/aggregates/query` and the folded state of one aggregate.

use foldwork_engine::Error;
use foldwork_engine::model::date::parse_date;
use foldwork_engine::model::value::Value;
use foldwork_engine::workspace::aggregates::Moment;
use foldwork_engine::workspace::query::Query as PipelineQuery;
use poem_openapi::param::{Header, Path, Query};
use poem_openapi::{ApiResponse, Object, OpenApi};
use serde::{Deserialize, Serialize};

use super::section::Section;
use crate::auth::ApiRead;
use crate::http::error::ApiResult;
use crate::http::etag::{etag, is_known};
use crate::wire::body::{Body, JsonResponse};
use crate::wire::json::{AnyObject, AnyValue, Stages};
use crate::wire::page;

pub struct Api;

/// A pipeline and its options.
#[derive(Object, Deserialize)]
#[serde(deny_unknown_fields)]
struct QueryBody {
    /// The stages, each an object with one operator key.
    #[serde(default)]
    pipeline: Stages,
    /// Adds a report on what was read, pushed down and left over, with rows and time per stage.
    #[oai(nullable)]
    explain: Option<bool>,
    /// Returns the normalised pipeline and its plan without reading anything.
    #[oai(nullable)]
    dry_run: Option<bool>,
    /// Rows per page, 1 to 10000; without it all rows are returned in one response.
    #[oai(nullable, validator(minimum(value = "1"), maximum(value = "10000")))]
    limit: Option<u64>,
    /// The `next_cursor` of the previous page, sent with the same pipeline. All pages show the state at the time of the
    /// first one.
    #[oai(nullable)]
    cursor: Option<String>,
}

/// The rows that a pipeline returned.
#[derive(Object, Serialize)]
struct QueryResult {
    results: Vec<AnyValue>,
    /// The number of rows in this response.
    count: u64,
    /// Present if `limit` was given: the cursor of the next page, or null after the last page.
    #[oai(skip_serializing_if_is_none)]
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<AnyValue>,
    #[oai(skip_serializing_if_is_none)]
    #[serde(skip_serializing_if = "Option::is_none")]
    explain: Option<AnyValue>,
    /// Present if `dry_run` was given.
    #[oai(skip_serializing_if_is_none)]
    #[serde(skip_serializing_if = "Option::is_none")]
    plan: Option<AnyValue>,
    #[oai(skip_serializing_if_is_none)]
    #[serde(skip_serializing_if = "Option::is_none")]
    warnings: Option<Vec<String>>,
}

#[derive(ApiResponse)]
enum State {
    /// The folded state.
    #[oai(status = 200)]
    Found(JsonResponse<AnyObject>, #[oai(header = "ETag")] String),
    /// The client has the current version.
    #[oai(status = 304)]
    Known(#[oai(header = "ETag")] String),
}

#[OpenApi(tag = "Section::Aggregates")]
impl Api {
    /// Runs a fold pipeline over the workspace's events and states.
    ///
    /// The language is MongoDB's aggregation language. [Its stages, operators and variables](/docs/operators) are
    /// documented with examples; `GET /pipelines/operators` lists them. Values that JSON cannot distinguish are written
    /// as Extended JSON: a date as `{"$date": "2026-01-31T00:00:00Z"}`, or with milliseconds since 1970 instead of the
    /// text; a number as `{"$numberInt": "1"}`, `{"$numberLong": "1"}`, `{"$numberDouble": "NaN"}` or
    /// `{"$numberDecimal": "1.5"}`, the latter two both of double precision; an id as `{"$oid":
    /// "5ab9cbfa31c2ab715d42129e"}`; and a pattern as `{"$regularExpression": {"pattern": "^a", "options": "i"}}`.
    #[oai(path = "/aggregates/query", method = "post", operation_id = "query_aggregates")]
    async fn query_aggregates(&self, access: ApiRead, body: Body<QueryBody>) -> ApiResult<JsonResponse<QueryResult>> {
        let mut query = PipelineQuery::new(body.pipeline.0.clone());
        query.explain = body.explain.unwrap_or(false);
        query.dry_run = body.dry_run.unwrap_or(false);
        query.page = page::paging(body.limit, body.cursor.as_deref())?;
        let paged = query.page.is_some() && !query.dry_run;
        let found = access.0.query(query).await?;
        let bytes = found.rows.iter().map(Value::size_bytes).sum();
        let result = QueryResult {
            count: found.rows.len() as u64,
            next_cursor: paged.then(|| AnyValue(found.next.map(page::encode_continuation).into())),
            results: found.rows.into_iter().map(AnyValue).collect(),
            explain: found.explain.map(AnyValue),
            plan: found.plan.map(AnyValue),
            warnings: Some(found.warnings).filter(|warnings| !warnings.is_empty()),
        };
        Ok(JsonResponse::large(&result, bytes))
    }

    /// Returns the folded state of an aggregate, now or at an earlier version or time.
    ///
    /// The state has the fields that the aggregate's events set, and system fields whose names begin with `_`. Without
    /// `version` and `at` the current state is returned, which includes every event appended before this request.
    #[oai(path = "/aggregates/:aggregate_id", method = "get", operation_id = "get_aggregate")]
    async fn get_aggregate(
        &self,
        access: ApiRead,
        aggregate_id: Path<String>,
        /// The state after the event with this version.
        version: Query<Option<page::Whole>>,
        /// The state after the events that occurred up to this time, RFC 3339.
        at: Query<Option<String>>,
        #[oai(name = "If-None-Match")] if_none_match: Header<Option<String>>,
    ) -> ApiResult<State> {
        let moment = moment(version.0.map(u64::from), at.0.as_deref())?;
        let (aggregate, definition) = access.0.aggregate(&aggregate_id, moment).await?;
        let tag = etag(aggregate.version);
        if is_known(if_none_match.as_deref(), &tag) {
            return Ok(State::Known(tag));
        }
        let row: Value = aggregate.row(&definition);
        Ok(State::Found(JsonResponse::new(&row), tag))
    }
}

fn moment(version: Option<u64>, at: Option<&str>) -> Result<Moment, Error> {
    match (version, at) {
        (None, None) => Ok(Moment::Now),
        (Some(version), None) => Ok(Moment::Version(version)),
        (None, Some(at)) => parse_date(at).map(Moment::At).ok_or_else(|| Error::invalid("at must be an RFC 3339 time")),
        (Some(_), Some(_)) => Err(Error::invalid("give version or at, not both")),
    }
}
