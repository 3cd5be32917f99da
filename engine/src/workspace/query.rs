//! Queries: runs the pipelines of clients over the sources of this workspace.
//!
//! A query runs on a thread for blocking work, over one snapshot of the resident state. The time and memory of a query
//! are limited. The rows come from the resident states, the log, the graph, or stored snapshots completed with resident
//! states. If the request has a `limit`, the result is divided into pages. The rows of all pages stay in memory for a
//! minute after the last request for one of the pages, or shorter if the page cache of the workspace is full. The
//! cursor contains the position, `$$NOW` and seed of the first page. If a page is requested after the rows were
//! evicted, the pipeline runs again as of the moment of the first page.

mod edges;
mod events;
mod graph_now;
pub mod histogram;
mod offload;
pub mod page;
mod past_graph;
mod places;
mod preview;
mod reader;
mod states;

use std::sync::Arc;
use std::time::Instant;

use page::{Continuation, PageRequest, ResultRows};
use reader::{QueryReader, StreamScan, project_of_slug};
use states::{PastTable, ResidentTable, StateReader, StateSelection};

use super::call_context::CallContext;
use super::rights;
use crate::error::{Error, Result};
use crate::metric;
use crate::model::excerpt::excerpt_of;
use crate::model::value::{Object, Value};
use crate::pipeline::context::Context;
use crate::pipeline::error::{EXCEEDED_MEMORY, PipelineErrorCode};
use crate::pipeline::hint::did_you_mean;
use crate::pipeline::known_types::{KnownTypes, ObservedFields};
use crate::pipeline::{
    self, Filter, Options, PreparedPipeline, Read, Scan, SourceChoice, StagePreview, StateSource, Table,
};
use crate::resident::Snapshot;
use crate::state::admission::QueryPermit;

/// The maximum number of aggregate types in the warnings about types that do not exist.
const MAX_UNKNOWN_TYPES: usize = 20;

/// A query request.
#[derive(Debug, Clone)]
pub struct Query {
    pub pipeline: Value,
    pub explain: bool,
    /// Whether the pipeline is only checked and planned.
    pub dry_run: bool,
    /// The source that states are read from. Does not change the result.
    pub source: SourceChoice,
    /// Whether optimizer rules apply. Does not change the result.
    pub push_down: bool,
    /// The requested part of the result. `None` requests the whole result.
    pub page: Option<PageRequest>,
    /// Whether columns of the states are used. Does not change the result.
    pub columns: bool,
    /// The maximum number of rows to show after every stage. `None` shows no rows.
    pub preview: Option<usize>,
}

/// The part of a query's time and memory that is already spent.
#[derive(Clone, Copy, Default)]
struct QueryCost {
    us: u64,
    bytes: i64,
}

/// The response to a query.
#[derive(Debug, Clone, Default)]
pub struct QueryOutput {
    pub rows: Vec<Value>,
    pub warnings: Vec<String>,
    /// The explanation, if `explain` was set and `dry_run` was not set.
    pub explain: Option<Value>,
    /// The normalized pipeline and its plan, if `dry_run` was set.
    pub plan: Option<Value>,
    /// The cursor of the next page, if there is a next page.
    pub next: Option<Continuation>,
    /// The rows after every stage, if `preview` was set.
    pub stages: Option<Vec<StagePreview>>,
}

impl Query {
    /// Creates a request for the whole result of a pipeline, without an explanation or a preview.
    pub fn new(pipeline: Value) -> Query {
        let Options { source, push_down, columns, explain, preview } = Options::default();
        Query { pipeline, explain, dry_run: false, source, push_down, page: None, columns, preview }
    }
}

impl rights::Reader {
    /// Runs a pipeline and records its duration. The whole pipeline is checked before any row is read.
    pub async fn query(&self, query: Query) -> Result<QueryOutput> {
        let began = Instant::now();
        let response = self.respond(query).await;
        metric::PIPELINE_SECONDS.record(&[outcome(&response)], began.elapsed().as_secs_f64());
        response
    }

    async fn respond(&self, query: Query) -> Result<QueryOutput> {
        let Query { source, push_down, columns, explain, preview, .. } = query;
        preview::check(&query)?;
        let options = Options { source, push_down, columns, explain, preview };
        // Another server may have created a project whose slug the pipeline names, or written facts and edges. A query
        // that waits for this refresh is not counted as a running query.
        self.context.refresh_graph().await?;
        let admitted = self.context.admit_query().await?;
        let (prepared, spent, admitted) = self.prepare_offloaded(query.pipeline.clone(), options, admitted).await?;
        let mut warnings = self.unknown_types(&prepared);
        if query.dry_run {
            warnings.extend_from_slice(prepared.warnings());
            let plan = Some(prepared.describe());
            return Ok(QueryOutput { warnings, plan, ..QueryOutput::default() });
        }
        let paths: Vec<_> = prepared.columns().into_iter().cloned().collect();
        let snapshot = self.context.snapshot_with(&paths).await?;
        if let Some(position) = prepared.last_position().filter(|position| *position > snapshot.position()) {
            warnings.push(format!("position {position} is after the log's end, {}", snapshot.position()));
        }
        let page = self.page(&query, &prepared, snapshot.position())?;
        let pages = &self.context.state().pages;
        let now_ms = self.context.state().clock.now_ms();
        let (mut explain, mut stages) = (None, None);
        let kept =
            if query.page.is_none() || query.explain || preview.is_some() { None } else { pages.take(page, now_ms) };
        let all = match kept {
            Some(kept) => kept,
            None => {
                if query.explain && page.position != snapshot.position() {
                    warnings.push(format!(
                        "the rows are read at position {}, the end of the log when the first page was read",
                        page.position
                    ));
                }
                let run = move |reader: &QueryReader<'_>| run_over(reader, &prepared);
                let output = self.read_at(snapshot, page, spent, admitted, run).await?;
                explain = query.explain.then_some(output.explain);
                stages = preview.map(|_| output.stages);
                ResultRows { rows: output.rows.into(), warnings: output.warnings.into() }
            }
        };
        warnings.extend(all.warnings.iter().cloned());
        if query.page.is_none() {
            let rows = Arc::unwrap_or_clone(all.rows);
            return Ok(QueryOutput { rows, warnings, explain, stages, ..QueryOutput::default() });
        }
        let (rows, next) = page::cut(&all.rows, page)?;
        if next.is_some() {
            pages.put(page, all, now_ms);
        }
        Ok(QueryOutput { rows, warnings, explain, plan: None, next, stages })
    }

    /// Returns the requested page, with the position and the time as of which the query runs. Without paging, the page
    /// is the whole result as of now. Fails if the cursor does not belong to the query.
    fn page(&self, query: &Query, prepared: &PreparedPipeline, position: u64) -> Result<Continuation> {
        let first = |limit, binding| {
            let clock = &self.context.state().clock;
            Continuation { position, now_ms: clock.now_ms(), seed: clock.random_u64(), offset: 0, limit, binding }
        };
        let Some(PageRequest { limit, after }) = query.page else { return Ok(first(u32::MAX, 0)) };
        let binding = self.binding(&query.pipeline, prepared);
        match after {
            Some(after) if after.binding != binding || after.position > position => Err(page::refused()),
            Some(after) => Ok(Continuation { limit: limit.unwrap_or(after.limit), ..after }),
            None => Ok(first(limit.unwrap_or(u32::MAX), binding)),
        }
    }

    /// Prepares a pipeline on a thread for blocking work. Preparation evaluates constants and compiles patterns. This
    /// work must not block the threads that serve requests. The time and memory spent count toward the query's limits.
    async fn prepare_offloaded(
        &self,
        pipeline: Value,
        options: Options,
        admitted: QueryPermit,
    ) -> Result<(PreparedPipeline, QueryCost, QueryPermit)> {
        let reader = self.clone();
        let prepare = move || {
            let state = reader.context.state();
            let began = state.clock.monotonic_us();
            let elapsed_us = || state.clock.monotonic_us().saturating_sub(began);
            let (prepared, bytes) = {
                let share = |bytes| admitted.grant(bytes);
                let mut context = reader.context(0, 0, &elapsed_us, QueryCost::default(), &share);
                let definitions = state.types.all();
                let observed = &state.folded.observed;
                let has_field = |type_name: &str, field: &str| observed.has_field(type_name, field);
                let fields = |type_name: &str| observed.fields(type_name);
                let observed = ObservedFields { has_field: &has_field, fields: &fields };
                context.types = Some(KnownTypes::new(&definitions, observed));
                let project_id = |text: &str| project_of_slug(state, text);
                context.projects = Some(&project_id);
                let bytes_before = context.bytes_left.get();
                let prepared = pipeline::prepare(&pipeline, &options, &context);
                let prepared = prepared.map_err(|error| denied(error.into()));
                (prepared, bytes_before.saturating_sub(context.bytes_left.get()))
            };
            let spent = QueryCost { us: elapsed_us(), bytes };
            Ok((prepared?, spent, admitted))
        };
        tokio::task::spawn_blocking(prepare).await.map_err(Error::internal)?
    }

    /// Returns the context of a query. Reduces the memory limit by the memory in `spent`. `elapsed_us` must include the
    /// time in `spent`.
    fn context<'a>(
        &self,
        now_ms: i64,
        seed: u64,
        elapsed_us: &'a dyn Fn() -> u64,
        spent: QueryCost,
        share: &'a dyn Fn(usize) -> bool,
    ) -> Context<'a> {
        let state = self.context.state();
        let settings = &state.settings;
        let bytes = i64::try_from(settings.pipeline_bytes).unwrap_or(i64::MAX);
        let context = Context::new(now_ms, seed, elapsed_us, settings.pipeline_ms * 1_000, bytes);
        let mut context = context.with_spent_bytes(spent.bytes);
        context.user = described("id", self.caller().user_id());
        context.workspace = described("id", &self.record().id);
        context.patterns = Some(state.patterns.clone());
        context.share = Some(share);
        context
    }

    fn unknown_types(&self, prepared: &PreparedPipeline) -> Vec<String> {
        let definitions = self.context.state().types.all();
        let unknown = prepared.aggregate_types().into_iter().filter(|name| !definitions.contains_key(&***name));
        let warning = |name: &Arc<str>| {
            let known = definitions.keys().map(|known| &**known);
            let hint = did_you_mean(name, known).map(|hint| format!(": {hint}")).unwrap_or_default();
            format!("unknown aggregate_type '{}'{hint}", excerpt_of(name))
        };
        unknown.take(MAX_UNKNOWN_TYPES).map(warning).collect()
    }
}

impl CallContext {
    /// Waits until the caller may run another query. Fails if the wait takes too long, or if too many queries wait
    /// already.
    pub(super) async fn admit_query(&self) -> Result<QueryPermit> {
        self.state().admission.admit(&self.actor()).await
    }

    /// Returns the current states with columns for these paths. Builds missing columns on a thread for blocking work.
    pub(super) async fn snapshot_with(&self, paths: &[Arc<str>]) -> Result<Snapshot> {
        let (state, path_refs) = (self.state().clone(), paths.iter().collect::<Vec<_>>());
        if state.folded.has_columns(&path_refs) {
            return Ok(state.folded.snapshot_with(&path_refs));
        }
        let paths = paths.to_vec();
        let task = tokio::task::spawn_blocking(move || state.folded.snapshot_with(&paths.iter().collect::<Vec<_>>()));
        task.await.map_err(Error::internal)
    }
}

/// Returns the label of the metric for the result of a pipeline.
fn outcome(response: &Result<QueryOutput>) -> &'static str {
    match response {
        Ok(_) => "ok",
        Err(Error::Pipeline(error)) => match error.code {
            PipelineErrorCode::QueryTimeout => "timeout",
            PipelineErrorCode::Number(EXCEEDED_MEMORY) => "memory",
            PipelineErrorCode::Number(_) => "invalid",
        },
        Err(Error::TooManyQueries(_)) => "rejected",
        Err(Error::Unavailable(_) | Error::Internal(_)) => "failed",
        Err(_) => "invalid",
    }
}

/// Returns the error that the caller of a query gets. If the query exceeded the shared memory, returns the error of
/// [`QueryPermit::out_of_memory`].
fn denied(error: Error) -> Error {
    match error {
        Error::Pipeline(error) if error.is_of_shared_memory => QueryPermit::out_of_memory(),
        error => error,
    }
}

fn described(name: &str, value: &str) -> Value {
    Object::from_iter([(name, value)]).into()
}

/// Runs a pipeline over the tables that its scans read.
fn run_over(reader: &QueryReader<'_>, prepared: &PreparedPipeline) -> Result<pipeline::Output> {
    let tables: Vec<Box<dyn Table + '_>> =
        prepared.scans().iter().map(|scan| table(reader, scan)).collect::<Result<_>>()?;
    let tables: Vec<&dyn Table> = tables.iter().map(|table| &**table).collect();
    Ok(prepared.run(&tables, reader.context)?)
}

/// Returns the table that a scan reads.
fn table<'a>(reader: &'a QueryReader<'a>, scan: &'a Scan) -> Result<Box<dyn Table + 'a>> {
    let fields = scan.fields.as_ref();
    let offered = scan.columns.is_some();
    Ok(match &scan.read {
        Read::Edges(scan) => Box::new(edges::EdgeTable::new(reader, scan)?),
        Read::Events(scan) => {
            let streams = StreamScan::new(&scan.streams);
            Box::new(events::EventTable { reader, scan, fields, streams })
        }
        Read::States(scan) => {
            let mut streams = StreamScan::new(&scan.streams);
            streams.filter_fields = scan.filter.as_deref().and_then(Filter::fields);
            let states = StateReader { reader, scan, fields, streams };
            // Memory and stored snapshots contain only current states. States of an earlier moment are folded again,
            // with the same plan.
            let is_past = reader.position != reader.snapshot.position();
            match scan.source {
                StateSource::Resident if is_past => Box::new(PastTable::new(states)?),
                StateSource::Resident => {
                    let offered = offered.then(|| StateSelection::new(&states)).flatten();
                    Box::new(ResidentTable { states, offered })
                }
                StateSource::Nodes if !is_past => Box::new(states.stored()?),
                StateSource::Nodes | StateSource::Log => Box::new(states.folded()?),
            }
        }
    })
}
