//! `/aggregates/query`, which runs pipelines, and `/aggregates`, which returns the folded states of aggregates of any
//! type, and deletes aggregates.

use foldwork_engine::Error;
use foldwork_engine::model::value::Value;
use foldwork_engine::pipeline::StagePreview;
use foldwork_engine::workspace::PageLimit;
use foldwork_engine::workspace::aggregates::{AggregateFilter, StateMoment};
use foldwork_engine::workspace::query::{Query as PipelineQuery, QueryOutput};
use poem_openapi::param::{Header, Path, Query};
use poem_openapi::{Object, OpenApi};
use serde::Deserialize;
use serde_json::json;

use super::long_poll::LiveContext;
use super::section::Section;
use crate::auth::{ApiRead, ApiWrite};
use crate::http::error::ApiResult;
use crate::http::etag::{etag, expected_at, is_known};
use crate::wire::body::{Body, JsonResponse};
use crate::wire::json::{AnyObject, AnyValue, Stages};
use crate::wire::page::{self, PageBody, Whole, listed};
use crate::wire::response::{no_content, revalidated};
use crate::wire::shown::shown;

pub struct Api;

/// A pipeline and its options.
#[derive(Object, Deserialize)]
#[serde(deny_unknown_fields)]
struct QueryBody {
    /// The stages. Each stage is an object with one key, the stage's operator.
    #[serde(default)]
    pipeline: Stages,
    /// Whether the response includes a report on the execution. The report shows which data was read, which parts of
    /// the pipeline were applied while reading, and which stages remained. For each stage, the report contains the
    /// number of rows and the time.
    explain: Option<bool>,
    /// Whether to return only the normalized pipeline and its plan. A dry run reads no data.
    dry_run: Option<bool>,
    /// The maximum number of rows per page, 1 to 10000. If `limit` is absent, a request with `cursor` uses the `limit`
    /// of the previous page, and a request without `cursor` returns all rows.
    #[oai(validator(minimum(value = "1"), maximum(value = "10000")))]
    limit: Option<u64>,
    /// The maximum number of rows per stage in the response's `stages`, 1 to 20. The server counts the rows of every
    /// stage, so a request with a preview may take longer than a request without a preview. Cannot be combined with
    /// `dry_run` or `cursor`.
    #[oai(validator(minimum(value = "1"), maximum(value = "20")))]
    preview: Option<u64>,
    /// The `next_cursor` of the previous page, sent with the same pipeline. All pages show the state at the time of the
    /// first page.
    cursor: Option<String>,
}

shown! {
    /// The rows that a pipeline returned.
    struct QueryResult from (found, paged): (QueryOutput, bool) where {
        let count = found.rows.len() as u64;
        let next_cursor = paged.then(|| AnyValue(found.next.map(page::encode_continuation).into()));
    };

    results: Vec<AnyValue> = found.rows.into_iter().map(AnyValue).collect(),
    /// The number of rows in `results`.
    count: u64 = count,
    /// The cursor of the next page, or null on the last page. Present if the request contains `limit` or `cursor`,
    /// except for a dry run.
    @read_only next_cursor: Option<AnyValue> = next_cursor,
    @read_only explain: Option<AnyValue> = found.explain.map(AnyValue),
    /// The plan of the pipeline. Present for a dry run.
    @read_only plan: Option<AnyValue> = found.plan.map(AnyValue),
    @read_only warnings: Option<Vec<String>> = Some(found.warnings).filter(|warnings| !warnings.is_empty()),
    /// The rows after every stage, in the order of the stages. Present if the request contains `preview`.
    @read_only stages: Option<Vec<StageRows>> =
        found.stages.map(|stages| stages.into_iter().map(StageRows::from).collect()),
}

shown! {
    /// The rows after a stage of a pipeline. The pipeline would return these rows if it ended with this stage.
    struct StageRows from stage: StagePreview where {
        let has_more = stage.count > stage.rows.len() as u64;
    };

    /// The index of the stage in `pipeline`.
    index: u64 = stage.index as u64,
    /// The name of the stage, as in the plan of a dry run. For an alias, the name is the canonical name: `$set` for
    /// `$addFields`.
    stage: String = stage.name,
    /// The exact number of rows after the stage.
    rows: u64 = stage.count,
    /// The first rows after the stage, at most as many as the request's `preview`.
    preview: Vec<AnyValue> = stage.rows.into_iter().map(AnyValue).collect(),
    /// Whether the stage has more rows than `preview` contains.
    more: bool = has_more,
    /// The duration of the stage in milliseconds, without the stages before it.
    ms: f64 = stage.us as f64 / 1_000.0,
}

revalidated!(StateResponse of AnyObject: "The folded state of the aggregate.");

no_content!(AggregateDeletionResponse: "The aggregate was deleted. Its history stays in the log.");

listed!(AnyObject as "AggregatePage": "A page of folded states, each as `get_aggregate` returns it.");

#[OpenApi(tag = "Section::Aggregates")]
impl Api {
    /// Lists the folded states of aggregates, newest first.
    ///
    /// Deleted aggregates are left out. A page may have fewer rows than `limit`, because its size in bytes is limited
    /// as well. To filter by fields or to get earlier states (`$fold` with `at`), use a pipeline.
    #[oai(path = "/aggregates", method = "get", operation_id = "list_aggregates")]
    async fn list_aggregates(
        &self,
        access: ApiRead,
        /// Only aggregates of this type.
        #[oai(name = "type")]
        aggregate_type: Query<Option<String>>,
        /// Only aggregates of the project with this id or slug.
        project_id: Query<Option<String>>,
        #[oai(name = "limit")] Query(rows): Query<Option<u64>>,
        /// The `next_cursor` of the previous page.
        cursor: Query<Option<String>>,
        live: LiveContext,
    ) -> ApiResult<JsonResponse<PageBody<AnyObject>>> {
        let list = format!("aggregates/{}", json!([&*aggregate_type, &*project_id]));
        let listing = AggregateFilter { aggregate_type: aggregate_type.0, project: project_id.0 };
        let before = page::read_cursor(&list, cursor.as_deref())?;
        let limit = PageLimit { rows: page::limit(rows)?, bytes: live.page_bytes };
        let page = access.0.list_aggregates(&listing, before, limit).await?;
        let bytes = page.items.iter().map(|(aggregate, _)| aggregate.size_bytes()).sum();
        Ok(JsonResponse::large(bytes, || {
            PageBody::new(page, &list, |(aggregate, definition)| {
                AnyObject::of(&aggregate.row(&definition)).unwrap_or_default()
            })
        }))
    }

    /// Deletes an aggregate. Its history stays in the log.
    ///
    /// The server appends `<type>.deleted`. Lists, searches and pipelines no longer include the aggregate. The
    /// aggregate's events, and its states at earlier versions and times, stay readable. `<type>.created` restores the
    /// aggregate with an empty state. An event with `restore` restores the aggregate with its earlier state. This
    /// operation cannot delete tasks, agents, projects and files. Agents and files have separate operations for their
    /// deletion.
    #[oai(path = "/aggregates/:aggregate_id", method = "delete", operation_id = "delete_aggregate")]
    async fn delete_aggregate(
        &self,
        access: ApiWrite,
        aggregate_id: Path<String>,
        expected_version: Query<Option<Whole>>,
        #[oai(name = "If-Match")] if_match: Header<Option<String>>,
    ) -> ApiResult<AggregateDeletionResponse> {
        let expected = expected_at(expected_version.0, if_match.as_deref())?;
        access.0.delete_aggregate(&aggregate_id, expected).await?;
        Ok(AggregateDeletionResponse::Done)
    }

    /// Runs a fold pipeline over the workspace's events and states.
    ///
    /// The language is MongoDB's aggregation language. [Its stages, operators and variables](/docs/operators) are
    /// documented with examples; `GET /pipelines/operators` lists them. Values that JSON cannot distinguish are written
    /// as Extended JSON. A date is `{"$date": "2026-01-31T00:00:00Z"}` or, in milliseconds since 1970,
    /// `{"$date": 1769817600000}`. A number is `{"$numberInt": "1"}`, `{"$numberLong": "1"}`,
    /// `{"$numberDouble": "NaN"}` or the exact `{"$numberDecimal": "1.5"}`. An id is
    /// `{"$oid": "5ab9cbfa31c2ab715d42129e"}`. A regular expression is
    /// `{"$regularExpression": {"pattern": "^a", "options": "i"}}`.
    #[oai(path = "/aggregates/query", method = "post", operation_id = "query_aggregates")]
    async fn query_aggregates(&self, access: ApiRead, body: Body<QueryBody>) -> ApiResult<JsonResponse<QueryResult>> {
        let mut query = PipelineQuery::new(body.pipeline.0.clone());
        query.explain = body.explain.unwrap_or(false);
        query.dry_run = body.dry_run.unwrap_or(false);
        query.preview = body.preview.map(|rows| usize::try_from(rows).unwrap_or(usize::MAX));
        query.page = page::paging(body.limit, body.cursor.as_deref())?;
        let paged = query.page.is_some() && !query.dry_run;
        let found = access.0.query(query).await?;
        let shown = found.stages.iter().flatten().flat_map(|stage| &stage.rows);
        let bytes = found.rows.iter().chain(shown).map(Value::size_bytes).sum();
        Ok(JsonResponse::large(bytes, || QueryResult::from((found, paged))))
    }

    /// Returns the folded state of an aggregate, now or at an earlier version, position or time.
    ///
    /// The state contains the fields that the aggregate's events set, `aggregate_type`, `project_id`, and system fields
    /// whose names begin with `_`. Without `version`, `position` and `at`, the server returns the current state. The
    /// current state includes every event appended before this request, unless `consistency` is `eventual`.
    #[oai(path = "/aggregates/:aggregate_id", method = "get", operation_id = "get_aggregate")]
    async fn get_aggregate(
        &self,
        access: ApiRead,
        aggregate_id: Path<String>,
        /// The version of the state. Later events are left out.
        version: Query<Option<page::Whole>>,
        /// The log position of the state. Later events are left out.
        position: Query<Option<page::Whole>>,
        /// The time of the state, RFC 3339. Later events are left out.
        at: Query<Option<String>>,
        #[oai(name = "If-None-Match")] if_none_match: Header<Option<String>>,
    ) -> ApiResult<StateResponse> {
        let moment = moment(version.0, position.0, at.0.as_deref())?;
        let (aggregate, definition) = access.0.aggregate(&aggregate_id, moment).await?;
        let tag = etag(aggregate.version);
        if is_known(if_none_match.as_deref(), &tag) {
            return Ok(StateResponse::Known(tag));
        }
        let row = AnyObject::of(&aggregate.row(&definition)).unwrap_or_default();
        Ok(StateResponse::Found(JsonResponse::new(&row), tag))
    }
}

fn moment(version: Option<page::Whole>, position: Option<page::Whole>, at: Option<&str>) -> Result<StateMoment, Error> {
    match (version.map(u64::from), position.map(u64::from), at) {
        (None, None, None) => Ok(StateMoment::Now),
        (Some(version), None, None) => Ok(StateMoment::Version(version)),
        (None, Some(position), None) => Ok(StateMoment::Position(position)),
        (None, None, Some(at)) => page::time("at", at).map(StateMoment::At),
        _ => Err(Error::invalid("expected at most one of `version`, `position` and `at`")),
    }
}
