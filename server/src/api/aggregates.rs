//! `/aggregates/query`, which runs pipelines, and `/aggregates/:aggregate_id`, which returns the folded state of one
//! aggregate.

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
    /// Whether the response includes a report on the execution: the data that was read, the stages that were pushed
    /// down and the remaining stages, with rows and time per stage.
    #[oai(nullable)]
    explain: Option<bool>,
    /// Whether to return only the normalised pipeline and its plan. A dry run reads no data.
    #[oai(nullable)]
    dry_run: Option<bool>,
    /// The maximum number of rows per page, 1 to 10000. If `limit` is absent, the response has all rows.
    #[oai(nullable, validator(minimum(value = "1"), maximum(value = "10000")))]
    limit: Option<u64>,
    /// The `next_cursor` of the previous page, sent with the same pipeline. All pages show the state at the time of the
    /// first page.
    #[oai(nullable)]
    cursor: Option<String>,
}

/// The rows that a pipeline returned.
#[derive(Object, Serialize)]
struct QueryResult {
    results: Vec<AnyValue>,
    /// The number of rows in `results`.
    count: u64,
    /// The cursor of the next page, or null on the last page. Present if the request has a `limit`.
    #[oai(skip_serializing_if_is_none)]
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<AnyValue>,
    #[oai(skip_serializing_if_is_none)]
    #[serde(skip_serializing_if = "Option::is_none")]
    explain: Option<AnyValue>,
    /// The plan of the pipeline. Present for a dry run.
    #[oai(skip_serializing_if_is_none)]
    #[serde(skip_serializing_if = "Option::is_none")]
    plan: Option<AnyValue>,
    #[oai(skip_serializing_if_is_none)]
    #[serde(skip_serializing_if = "Option::is_none")]
    warnings: Option<Vec<String>>,
}

#[derive(ApiResponse)]
enum State {
    /// The folded state of the aggregate.
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
    /// `version` and `at` the server returns the current state. The current state includes every event appended before
    /// this request.
    #[oai(path = "/aggregates/:aggregate_id", method = "get", operation_id = "get_aggregate")]
    async fn get_aggregate(
        &self,
        access: ApiRead,
        aggregate_id: Path<String>,
        /// The version of the event after which the state is returned.
        version: Query<Option<page::Whole>>,
        /// The time up to which events are included in the state, RFC 3339.
        at: Query<Option<String>>,
        #[oai(name = "If-None-Match")] if_none_match: Header<Option<String>>,
    ) -> ApiResult<State> {
        let moment = moment(version.0.map(u64::from), at.0.as_deref())?;
        let (aggregate, definition) = access.0.aggregate(&aggregate_id, moment).await?;
        let tag = etag(aggregate.version);
        if is_known(if_none_match.as_deref(), &tag) {
            return Ok(State::Known(tag));
        }
        let row = AnyObject::of(&aggregate.row(&definition)).unwrap_or_default();
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
