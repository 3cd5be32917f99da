//! Turns a plan into scans and operators; what a scan does not do stays an operator.

use std::sync::Arc;

use super::ast::Documents;
use super::column::{Probe, Selection, Tail, Vectored, can_keep};
use super::error::Result;
use super::explain::{Meter, Tracked};
use super::expr::Expr;
use super::filter::Filter;
use super::operator::{self, Operator, Owner, Rows, Run};
use super::parse::not_objects;
use super::plan::{self, Node, Plan, Step};
use super::scan::{AsOf, EventScan, Read, Scan, Source, StateScan, StreamFilter, is_of_stream};
use crate::model::value::{Object, Value};

/// Streaming operators that may stand over each other before rows are taken into memory, so that no pipeline's
/// length is a depth of the stack.
const MAX_CHAIN: usize = 16;

/// A lowered pipeline.
pub struct Program {
    feed: Feed,
    pub steps: Vec<Lowered>,
    /// What columns can do, where the table offers them.
    vectored: Option<Vectored>,
}

/// What is gathered while a plan is lowered.
pub struct Lowering {
    /// Everything that is to be read.
    pub scans: Vec<Scan>,
    /// Whether columns are made use of.
    pub columns: bool,
}

/// Where a program's rows come from.
pub enum Feed {
    /// One of the scans.
    Scan(usize),
    Literal(Arc<Vec<Value>>),
    Computed(Arc<Expr>),
    /// Whoever runs the program brings the rows.
    Given,
}

/// An operator, and the stage that it stems from.
pub struct Lowered {
    pub index: usize,
    /// For `explain`.
    pub description: Object,
    operator: Box<dyn Operator>,
    /// Whose rows come out of it.
    pub owner: Owner,
}

/// Lowers a plan and the plans inside it.
pub fn lower(plan: Plan, lowering: &mut Lowering) -> Program {
    let mut vectored = None;
    let feed = match plan.source {
        plan::Source::Documents(Documents::Literal(rows)) => Feed::Literal(rows),
        plan::Source::Documents(Documents::Computed(expr)) => Feed::Computed(expr),
        plan::Source::Events(events) => {
            let (streams, filter) = streams(&events.filters);
            let read = Read::Events(EventScan { streams, filter, limit: events.limit });
            scan(Scan { read, fields: events.fields, columns: None }, lowering)
        }
        plan::Source::States(states) => {
            let (mut streams, event_filter) = streams(&states.event_filters);
            let filter = rest(&states.filters, |conjunct| streams.take_set(conjunct, "_id"));
            // Single aggregates are found by their ids.
            if lowering.columns && states.choice == Source::Resident && streams.aggregate_ids.is_none() {
                vectored = Some(Vectored::new(filter.as_deref(), states.limit, &plan.nodes));
            }
            let columns = vectored.as_ref().map(Vectored::paths);
            let read = Read::States(StateScan {
                source: states.choice,
                streams,
                event_filter,
                as_of: states.fold.as_of,
                deleted: states.fold.deleted,
                events: states.fold.events,
                filter,
                limit: states.limit,
            });
            scan(Scan { read, fields: states.fields, columns }, lowering)
        }
    };
    Program { feed, steps: steps(plan.nodes, Owner::Source, lowering), vectored }
}

fn scan(scan: Scan, lowering: &mut Lowering) -> Feed {
    lowering.scans.push(scan);
    Feed::Scan(lowering.scans.len() - 1)
}

/// Filters over events, split into the streams they select and what they ask of single events.
fn streams(filters: &[Filter]) -> (StreamFilter, Option<Arc<Filter>>) {
    let mut streams = StreamFilter::default();
    let mut of_stream = Vec::new();
    let filter = rest(filters, |conjunct| {
        let taken = streams.take_set(conjunct, "aggregate_id");
        if !taken && is_of_stream(conjunct) {
            of_stream.push(conjunct.clone());
            return true;
        }
        taken
    });
    streams.filter = all(&of_stream);
    (streams, filter)
}

/// What of the filters is not taken elsewhere.
fn rest(filters: &[Filter], mut take: impl FnMut(&Filter) -> bool) -> Option<Arc<Filter>> {
    let conjuncts = filters.iter().flat_map(Filter::conjuncts);
    all(&conjuncts.filter(|conjunct| !take(conjunct)).collect::<Vec<_>>())
}

fn all(conjuncts: &[Filter]) -> Option<Arc<Filter>> {
    (!conjuncts.is_empty()).then(|| Arc::new(Filter::all(conjuncts)))
}

fn steps(nodes: Vec<Node>, above: Owner, lowering: &mut Lowering) -> Vec<Lowered> {
    let mut steps: Vec<Lowered> = Vec::with_capacity(nodes.len());
    for Node { index, text, step } in nodes {
        let owner = steps.last().map_or(above, |step| step.owner);
        let mut about = Object::new();
        let (name, operator, made): (&str, Box<dyn Operator>, Owner) = match step {
            Step::Match(filter) => ("match", Box::new(operator::Match { filter }), owner),
            Step::Project(projection) => ("project", Box::new(operator::Project { projection }), Owner::Pipeline),
            Step::Group(group) => ("group", Box::new(operator::Group { group }), Owner::Pipeline),
            Step::Sort { keys, limit } => {
                if let Some(limit) = limit {
                    about.push("keeps", i64::try_from(limit).unwrap_or(i64::MAX));
                }
                let name = if limit.is_some() { "top" } else { "sort" };
                (name, Box::new(operator::Sort::new(keys, limit, owner)), owner)
            }
            Step::Limit(rows) => ("limit", Box::new(operator::Limit { rows }), owner),
            Step::Skip(rows) => ("skip", Box::new(operator::Skip { rows }), owner),
            Step::Count(name) => ("count", Box::new(operator::Count { name }), Owner::Pipeline),
            Step::Unwind(unwind) => ("unwind", Box::new(operator::Unwind { unwind }), Owner::Pipeline),
            Step::ReplaceRoot(new_root) => {
                ("replace_root", Box::new(operator::ReplaceRoot { new_root }), Owner::Pipeline)
            }
            Step::Facet(facets) => {
                let facets: Vec<(Arc<str>, Program)> =
                    facets.into_iter().map(|(name, nodes)| (name, Program::given(nodes, owner, lowering))).collect();
                let plans: Object =
                    facets.iter().map(|(name, program)| (name.clone(), program.describe(&lowering.scans))).collect();
                about.push("plans", plans);
                ("facet", Box::new(operator::Facet { facets, owner }), Owner::Pipeline)
            }
            Step::Bucket(bucket) => ("bucket", Box::new(operator::Bucket { bucket }), Owner::Pipeline),
            Step::BucketAuto(bucket) => {
                ("bucket_auto", Box::new(operator::BucketAuto { bucket, owner }), Owner::Pipeline)
            }
            Step::Lookup(lookup) => {
                let plan::Lookup { join, probe, variables, scope: _, plan, target } = *lookup;
                let program = lower(plan, lowering);
                if let Some((_, foreign)) = &join {
                    program.want(foreign.text(), lowering);
                }
                let kind = match (&join, &probe) {
                    (Some(_), _) => "hash",
                    (None, Some(_)) => "index",
                    (None, None) => "none",
                };
                about.push("join", kind);
                about.push("plan", program.describe(&lowering.scans));
                ("lookup", Box::new(operator::Lookup { join, probe, variables, program, target }), Owner::Pipeline)
            }
            Step::Follow(follow) => {
                let plan::Follow { edges, local, nodes, target } = *follow;
                about.push("edges", edges.describe());
                lowering.scans.push(Scan { read: Read::Edges(edges), fields: None, columns: None });
                let scan = lowering.scans.len() - 1;
                let program = Program::given(nodes, Owner::Source, lowering);
                about.push("plan", program.describe(&lowering.scans));
                ("follow", Box::new(operator::Follow { scan, local, program, target }), Owner::Pipeline)
            }
            Step::Union(plan) => {
                let program = lower(plan, lowering);
                about.push("plan", program.describe(&lowering.scans));
                ("union", Box::new(operator::Union { program }), Owner::Pipeline)
            }
            Step::Sample(size) => ("sample", Box::new(operator::Sample { size, owner }), owner),
            Step::Redact(expr) => ("redact", Box::new(operator::Redact { expr }), Owner::Pipeline),
        };
        let mut description = Object::from_iter([("operator", Value::from(name))]);
        description.push("stage", i64::try_from(index).unwrap_or(i64::MAX));
        description.push("from", text);
        about.into_iter().for_each(|(name, value)| description.push(name, value));
        steps.push(Lowered { index, description, operator, owner: made });
    }
    steps
}

impl Program {
    /// Steps over rows that whoever runs them brings.
    fn given(nodes: Vec<Node>, owner: Owner, lowering: &mut Lowering) -> Program {
        Program { feed: Feed::Given, steps: steps(nodes, owner, lowering), vectored: None }
    }

    /// Asks the source for a column of a path.
    fn want(&self, path: &Arc<str>, lowering: &mut Lowering) {
        if let Feed::Scan(scan) = self.feed
            && let Some(columns) = lowering.scans.get_mut(scan).and_then(|scan| scan.columns.as_mut())
            && can_keep(path)
        {
            columns.insert(path.clone());
        }
    }

    /// Runs the whole program.
    pub fn rows<'a>(&'a self, run: Run<'a>) -> Result<Rows<'a>> {
        self.measured(run, None, &[])
    }

    /// Runs the whole program; `read` measures the source, and each step is measured by its meter.
    pub fn measured<'a>(&'a self, run: Run<'a>, read: Option<&'a Meter>, meters: &'a [Meter]) -> Result<Rows<'a>> {
        if let Some((rows, covered)) = self.tail_rows(run, read, meters)? {
            return self.metered(rows, covered, run, meters);
        }
        let source = self.source_rows(run, read)?;
        let source = match read {
            Some(_) => Box::new(Tracked { rows: source, index: 0, meter: read, query: run.query }),
            None => source,
        };
        self.metered(source, 0, run, meters)
    }

    /// The rows that come out of the steps that columns stand for, and how many steps these are.
    fn tail_rows<'a>(
        &'a self,
        run: Run<'a>,
        read: Option<&Meter>,
        meters: &[Meter],
    ) -> Result<Option<(Rows<'a>, usize)>> {
        let Some((vectored, selection)) = self.selection(run)? else { return Ok(None) };
        let index = self.steps.get(vectored.covers.saturating_sub(1)).map_or(0, |step| step.index);
        let start = (run.query.elapsed_us)();
        let columns = selection.columns;
        let mut counts = [0; 3];
        let rows: Rows = match &vectored.tail {
            Tail::Rows => return Ok(None),
            Tail::Count(name) => {
                for segment in 0..selection.segments() {
                    counts[0] += selection.mask(segment)?.count() as u64;
                }
                let count = i64::try_from(counts[0]).unwrap_or(i64::MAX);
                counts[1] = u64::from(count > 0);
                let row = (count > 0).then(|| Value::from(Object::from_iter([(name.clone(), count)])));
                Box::new(row.into_iter().map(Ok))
            }
            Tail::Top(top) => match top.run(&selection, run.query, index)? {
                Some((places, selected)) => {
                    (counts[0], counts[1]) = (selected, places.len() as u64);
                    Box::new(places.into_iter().filter_map(move |place| columns.row(place)).map(Ok))
                }
                None => return Ok(None),
            },
            Tail::Group(group) => match group.run(&selection, run.query, index)? {
                Some((rows, [selected, unwound])) => {
                    counts = if group.unwinds() {
                        [selected, unwound, rows.len() as u64]
                    } else {
                        [selected, rows.len() as u64, 0]
                    };
                    Box::new(rows.into_iter().map(Ok))
                }
                None => return Ok(None),
            },
        };
        let us = (run.query.elapsed_us)().saturating_sub(start);
        for (meter, count) in read.into_iter().chain(meters).zip(counts).take(vectored.covers + 1) {
            meter.measured(count, us);
        }
        if let Some(read) = read {
            read.by_columns();
        }
        Ok(Some((rows, vectored.covers)))
    }

    /// The scan's filter over the table's columns, where there are any.
    fn selection<'a>(&'a self, run: Run<'a>) -> Result<Option<(&'a Vectored, Selection<'a>)>> {
        let (Some(vectored), Feed::Scan(scan)) = (&self.vectored, &self.feed) else { return Ok(None) };
        let Some(columns) = run.tables.get(*scan).and_then(|table| table.columns()) else { return Ok(None) };
        Ok(Some((vectored, vectored.selects.bind(columns, run.query)?)))
    }

    /// The source's rows, to be asked for by what they hold at a path; `None` where no column tells that.
    pub fn probe<'a>(&'a self, path: &str, run: Run<'a>) -> Result<Option<Probe<'a>>> {
        match self.selection(run)? {
            Some((_, selection)) => Probe::new(selection, path),
            None => Ok(None),
        }
    }

    /// The rows before the first step.
    pub fn source_rows<'a>(&'a self, run: Run<'a>, read: Option<&Meter>) -> Result<Rows<'a>> {
        if let Some((_, selection)) = self.selection(run)?
            && selection.is_useful()
        {
            if let Some(read) = read {
                read.by_columns();
            }
            return Ok(Box::new(selection.rows().map(move |row| {
                run.query.tick()?;
                row
            })));
        }
        let rows: Box<dyn Iterator<Item = Value> + 'a> = match &self.feed {
            Feed::Scan(scan) => match run.tables.get(*scan) {
                Some(table) => table.rows(),
                None => Box::new(std::iter::empty()),
            },
            Feed::Literal(rows) => Box::new(rows.iter().cloned()),
            Feed::Computed(expr) => Box::new(computed(expr, run)?.into_iter()),
            Feed::Given => Box::new(std::iter::empty()),
        };
        Ok(Box::new(rows.map(move |row| {
            run.query.tick()?;
            Ok(row)
        })))
    }

    /// Puts the steps over `input`.
    pub fn over<'a>(&'a self, input: Rows<'a>, run: Run<'a>) -> Result<Rows<'a>> {
        self.metered(input, 0, run, &[])
    }

    /// Puts the steps that are not `covered` over `input`; each is measured by its meter, where there is one.
    fn metered<'a>(&'a self, input: Rows<'a>, covered: usize, run: Run<'a>, meters: &'a [Meter]) -> Result<Rows<'a>> {
        let mut rows = input;
        let mut chain = 0;
        for (place, step) in self.steps.iter().enumerate().skip(covered) {
            chain = if step.operator.is_blocking() { 0 } else { chain + 1 };
            if chain > MAX_CHAIN {
                let owner = place.checked_sub(1).map_or(Owner::Source, |below| self.steps[below].owner);
                rows = Box::new(operator::collect(rows, owner, run.query)?.into_iter().map(Ok));
                chain = 1;
            }
            let meter = meters.get(place);
            let start = meter.map(|_| (run.query.elapsed_us)());
            let opened = step.operator.open(rows, run).map_err(|error| error.at_stage(step.index))?;
            if let (Some(meter), Some(start)) = (meter, start) {
                meter.took((run.query.elapsed_us)().saturating_sub(start));
            }
            rows = Box::new(Tracked { rows: opened, index: step.index, meter, query: run.query });
        }
        Ok(rows)
    }

    /// Whose rows come out at the end.
    pub fn owner(&self) -> Owner {
        self.steps.last().map_or(Owner::Source, |step| step.owner)
    }

    /// Source and steps, for `explain`.
    pub fn describe(&self, scans: &[Scan]) -> Value {
        let source = match &self.feed {
            Feed::Scan(scan) => scans.get(*scan).map(Scan::describe),
            Feed::Literal(rows) => {
                let count = i64::try_from(rows.len()).unwrap_or(i64::MAX);
                Some(Object::from_iter([("source", Value::from("documents")), ("rows", count.into())]))
            }
            Feed::Computed(_) => Some(Object::from_iter([("source", "documents")])),
            Feed::Given => None,
        };
        let steps = self.steps.iter().map(|step| step.description.clone());
        source.into_iter().chain(steps).map(Value::from).collect::<Vec<_>>().into()
    }
}

fn computed(expr: &Expr, run: Run) -> Result<Vec<Value>> {
    let no_row = Object::new().into();
    match expr.eval(&run.env(&no_row))? {
        Some(Value::Array(rows)) if rows.iter().all(|row| row.as_object().is_some()) => Ok(rows.to_vec()),
        _ => Err(not_objects()),
    }
}

impl Scan {
    /// For `explain`.
    fn describe(&self) -> Object {
        let mut object = Object::new();
        let (streams, filters, limit) = match &self.read {
            Read::Events(scan) => {
                object.push("source", "events");
                (&scan.streams, [("filter", &scan.filter), ("event_filter", &None)], scan.limit)
            }
            Read::States(scan) => {
                object.push("source", scan.source.name());
                match scan.as_of {
                    AsOf::Now => {}
                    AsOf::At(ms) => object.push("at", Value::Date(ms)),
                    AsOf::Version(version) => object.push("version", version),
                    AsOf::Position(position) => object.push("position", position),
                }
                if let (Source::Nodes, query) = (scan.source, super::surrealql::node_query(scan)) {
                    object.push("where", query.text);
                    object.push("exact", query.exact);
                }
                (&scan.streams, [("filter", &scan.filter), ("event_filter", &scan.event_filter)], scan.limit)
            }
            Read::Edges(edges) => return edges.describe(),
        };
        if !streams.is_empty() {
            object.push("streams", streams.describe());
        }
        for (name, filter) in filters {
            if let Some(filter) = filter {
                object.push(name, filter.spec().clone());
            }
        }
        if let Some(limit) = limit {
            object.push("limit", i64::try_from(limit).unwrap_or(i64::MAX));
        }
        if let Some(columns) = self.columns.as_ref().filter(|columns| !columns.is_empty()) {
            object.push("columns", columns.iter().cloned().map(Value::from).collect::<Vec<_>>());
        }
        if let Some(fields) = &self.fields {
            object.push("fields", fields.iter().cloned().map(Value::from).collect::<Vec<_>>());
        }
        object
    }
}
