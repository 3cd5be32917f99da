//! A lowered pipeline, which passes the rows or the columns of scans through operators.

use std::ops::Range;
use std::sync::Arc;

use super::meter::{MeteredRows, OperatorMeter};
use super::rows::{KeptRow, KeptRows, Operator, RowOwner, Rows, RunContext, ticked};
use super::vectorized::{ColumnProgram, ProgramTail, RowProbe, RowSelection};
use crate::model::value::{Object, Value};
use crate::pipeline::expression::expr::Expr;
use crate::pipeline::language::parse::not_objects;
use crate::pipeline::source::scan::Scan;
use crate::pipeline::value::error::Result;
use crate::pipeline::value::memory;

/// The maximum number of consecutive streaming operators before rows are collected in memory. The limit keeps the depth
/// of the stack independent of the length of a pipeline.
pub const MAX_CHAIN: usize = 16;

/// A lowered pipeline.
pub struct Program {
    pub input: RowSource,
    /// The owner of the rows of `input`.
    pub source: RowOwner,
    pub steps: Vec<StageOperator>,
    /// The part of the program that runs over columns, if the table has columns.
    pub vectorized: Option<ColumnProgram>,
}

/// The rows after the steps that run over columns.
pub struct TailRows<'a> {
    pub rows: Rows<'a>,
    /// The number of steps that ran.
    pub covered: usize,
    /// Whether the rows are computed only when the caller reads the rows. In this case, the meter of the last step has
    /// not counted the rows.
    is_streaming: bool,
}

/// The source of a program's rows.
pub enum RowSource {
    /// The scan with this index.
    Scan(usize),
    Literal(Arc<Vec<Value>>),
    Computed(Arc<Expr>),
    /// Rows that the caller passes in when the program runs.
    Given,
}

/// An operator, with the index of the top-level stage that the operator comes from.
pub struct StageOperator {
    pub index: usize,
    /// The description of the operator for `explain`.
    pub description: Object,
    pub operator: Box<dyn Operator>,
    /// The owner of the rows that the operator returns.
    pub owner: RowOwner,
}

impl Program {
    /// Returns the index of the scan that provides the rows, or `None` for any other source.
    pub fn scan(&self) -> Option<usize> {
        match self.input {
            RowSource::Scan(scan) => Some(scan),
            RowSource::Literal(_) | RowSource::Computed(_) | RowSource::Given => None,
        }
    }

    /// Returns whether an expression computes the rows.
    pub fn is_computed(&self) -> bool {
        matches!(self.input, RowSource::Computed(_))
    }

    /// Returns whether an expression computes the rows and reads a user variable whose number is in `variables`.
    pub fn is_computed_from(&self, variables: &Range<usize>) -> bool {
        matches!(&self.input, RowSource::Computed(expr) if expr.reads_variables(variables))
    }

    /// Runs the whole program.
    pub fn rows<'a>(&'a self, run: RunContext<'a>) -> Result<Rows<'a>> {
        self.measured(run, None, &[])
    }

    /// Runs the whole program. `read` measures the source, and each meter measures one step.
    pub fn measured<'a>(
        &'a self,
        run: RunContext<'a>,
        read: Option<&'a OperatorMeter>,
        meters: &'a [OperatorMeter],
    ) -> Result<Rows<'a>> {
        if let Some(TailRows { mut rows, covered, is_streaming }) = self.tail_rows(run, read, meters)? {
            let meter = meters.get(covered - 1).filter(|_| is_streaming);
            if meter.is_some() {
                let index = self.steps[covered - 1].index;
                rows = Box::new(MeteredRows { rows, index, meter, query: run.query });
            }
            return self.metered(rows, covered, run, meters);
        }
        let mut rows = self.source_rows(run, read)?;
        if read.is_some() {
            rows = Box::new(MeteredRows { rows, index: 0, meter: read, query: run.query });
        }
        self.metered(rows, 0, run, meters)
    }

    /// Runs the first steps over columns, and records the measurements in `read` and `meters`. Returns `None` if no
    /// step can run over columns.
    pub fn tail_rows<'a>(
        &'a self,
        run: RunContext<'a>,
        read: Option<&OperatorMeter>,
        meters: &[OperatorMeter],
    ) -> Result<Option<TailRows<'a>>> {
        let Some((vectorized, selection)) = self.selection(run)? else { return Ok(None) };
        let index = self.steps.get(vectorized.covers.saturating_sub(1)).map_or(0, |step| step.index);
        let start = (run.query.elapsed_us)();
        let columns = selection.columns;
        let mut counts = [0; 3];
        let rows: Rows = match &vectorized.tail {
            ProgramTail::Rows => return Ok(None),
            ProgramTail::Count(name) => {
                for segment in 0..selection.segments() {
                    counts[0] += selection.mask(segment)?.count() as u64;
                }
                let count = i64::try_from(counts[0]).unwrap_or(i64::MAX);
                counts[1] = u64::from(count > 0);
                let row = (count > 0).then(|| Value::from(Object::from_iter([(name.clone(), count)])));
                Box::new(row.into_iter().map(Ok))
            }
            ProgramTail::Top(top) => {
                let Some((row_indices, selected)) = top.run(&selection, run.query, index)? else { return Ok(None) };
                (counts[0], counts[1]) = (selected, row_indices.len() as u64);
                Box::new(row_indices.into_iter().filter_map(move |row_index| columns.row(row_index)).map(Ok))
            }
            ProgramTail::Windows(windows) => {
                let Some((rows, selected)) = windows.run(&selection, run, index)? else { return Ok(None) };
                counts = [selected; 3];
                Box::new(MeteredRows { rows, index, meter: None, query: run.query })
            }
            ProgramTail::Group(group) => {
                let Some((rows, [selected, before])) = group.run(&selection, run, index)? else { return Ok(None) };
                counts = match vectorized.covers {
                    1 => [selected, rows.len() as u64, 0],
                    _ => [selected, before, rows.len() as u64],
                };
                Box::new(
                    rows.into_iter().map(move |row| row.into_row(run.query).map_err(|error| error.at_stage(index))),
                )
            }
        };
        let us = (run.query.elapsed_us)().saturating_sub(start);
        let is_streaming = matches!(vectorized.tail, ProgramTail::Windows(_));
        let measured = vectorized.covers + usize::from(!is_streaming);
        for (meter, count) in read.into_iter().chain(meters).zip(counts).take(measured) {
            meter.measured(count, us);
        }
        if is_streaming {
            meters.get(vectorized.covers - 1).into_iter().for_each(|meter| meter.took(us));
        }
        read.into_iter().for_each(OperatorMeter::by_columns);
        Ok(Some(TailRows { rows, covered: vectorized.covers, is_streaming }))
    }

    /// Returns the number of rows before the first step, or `None` if the source is not a scan or cannot count the rows
    /// without building them.
    pub fn count(&self, run: RunContext) -> Result<Option<u64>> {
        let Some(table) = self.scan().and_then(|scan| run.tables.get(scan)) else { return Ok(None) };
        if let Some(count) = table.count()? {
            return Ok(Some(count));
        }
        let Some((_, selection)) = self.selection(run)? else { return Ok(None) };
        let counts = (0..selection.segments()).map(|segment| Ok(selection.mask(segment)?.count() as u64));
        counts.sum::<Result<u64>>().map(Some)
    }

    /// Binds the scan's filter to the columns of the table. Returns `None` if the program or the table does not use
    /// columns.
    fn selection<'a>(&'a self, run: RunContext<'a>) -> Result<Option<(&'a ColumnProgram, RowSelection<'a>)>> {
        let (Some(vectorized), RowSource::Scan(scan)) = (&self.vectorized, &self.input) else { return Ok(None) };
        let Some(columns) = run.tables.get(*scan).and_then(|table| table.columns()) else { return Ok(None) };
        Ok(Some((vectorized, vectorized.selects.bind(columns, run.query)?)))
    }

    /// Returns a probe that finds source rows by their value at a path, or `None` if no column provides this value or
    /// the scan has a limit.
    pub fn probe<'a>(&'a self, path: &str, run: RunContext<'a>) -> Result<Option<RowProbe<'a>>> {
        let Some((_, selection)) = self.selection(run)? else { return Ok(None) };
        RowProbe::new(selection, path)
    }

    /// Returns the rows before the first step.
    pub fn source_rows<'a>(&'a self, run: RunContext<'a>, read: Option<&OperatorMeter>) -> Result<Rows<'a>> {
        if let Some((_, selection)) = self.selection(run)?
            && selection.is_useful()
        {
            read.into_iter().for_each(OperatorMeter::by_columns);
            return Ok(Box::new(selection.rows().map(move |row| {
                run.query.tick()?;
                row
            })));
        }
        let rows: Box<dyn Iterator<Item = Value> + 'a> = match &self.input {
            RowSource::Scan(scan) => match run.tables.get(*scan) {
                Some(table) => table.rows(),
                None => Box::new(std::iter::empty()),
            },
            RowSource::Literal(rows) => Box::new(rows.iter().cloned()),
            RowSource::Computed(expr) => Box::new(computed(expr, run)?.into_iter()),
            RowSource::Given => Box::new(std::iter::empty()),
        };
        Ok(ticked(rows, run.query))
    }

    /// Applies the steps to `input`.
    pub fn over<'a>(&'a self, input: Rows<'a>, run: RunContext<'a>) -> Result<Rows<'a>> {
        self.metered(input, 0, run, &[])
    }

    /// Applies the steps after the first `covered` steps to `input`. If a step has a meter, the meter measures the
    /// step.
    fn metered<'a>(
        &'a self,
        input: Rows<'a>,
        covered: usize,
        run: RunContext<'a>,
        meters: &'a [OperatorMeter],
    ) -> Result<Rows<'a>> {
        let mut rows = input;
        let mut chain = 0;
        for (number, step) in self.steps.iter().enumerate().skip(covered) {
            chain = if step.operator.is_blocking() { 0 } else { chain + 1 };
            if chain > MAX_CHAIN {
                let owner = number.checked_sub(1).map_or(self.source, |below| self.steps[below].owner);
                rows = Box::new(KeptRows::new(KeptRow::collect(rows, owner, run.query)?, run.query));
                chain = 1;
            }
            let meter = meters.get(number);
            let start = meter.map(|_| (run.query.elapsed_us)());
            let opened = step.operator.open(rows, run).map_err(|error| error.at_stage(step.index))?;
            if let (Some(meter), Some(start)) = (meter, start) {
                meter.took((run.query.elapsed_us)().saturating_sub(start));
            }
            rows = Box::new(MeteredRows { rows: opened, index: step.index, meter, query: run.query });
        }
        Ok(rows)
    }

    /// Returns the owner of the final rows.
    pub fn owner(&self) -> RowOwner {
        self.steps.last().map_or(self.source, |step| step.owner)
    }

    /// Returns the source and the steps for `explain`.
    pub fn describe(&self, scans: &[Scan]) -> Value {
        let source = match &self.input {
            RowSource::Scan(scan) => scans.get(*scan).map(Scan::describe),
            RowSource::Literal(rows) => {
                let count = i64::try_from(rows.len()).unwrap_or(i64::MAX);
                Some(Object::from_iter([("source", Value::from("documents")), ("rows", count.into())]))
            }
            RowSource::Computed(_) => Some(Object::from_iter([("source", "documents")])),
            RowSource::Given => None,
        };
        let steps = self.steps.iter().map(|step| step.description.clone());
        source.into_iter().chain(steps).map(Value::from).collect::<Vec<_>>().into()
    }
}

fn computed(expr: &Expr, run: RunContext) -> Result<Vec<Value>> {
    let no_row = Object::new().into();
    match expr.eval(&run.env(&no_row))? {
        Some(Value::Array(rows)) if rows.iter().all(|row| row.as_object().is_some()) => {
            rows.iter().try_for_each(|row| memory::check_depth(row, run.query))?;
            Ok(rows.to_vec())
        }
        _ => Err(not_objects()),
    }
}
