//! Runs a pipeline and shows the rows after every stage: the exact number of rows, the first rows, and the time
//! that the stage took.
//!
//! Each step is followed by a tap, which counts the rows that pass and keeps the first rows. A step reads only as many
//! rows as later steps need. At the end of the run, the taps therefore read further rows: all remaining rows if the
//! rows must be counted, and otherwise only the rows to show.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use super::meter::OperatorMeter;
use super::program::{MAX_CHAIN, Program, TailRows};
use super::rows::{KeptRow, KeptRows, Rows, RunContext, collect};
use super::stopwatch::Stopwatch;
use crate::model::value::Value;
use crate::pipeline::value::error::Result;
use crate::pipeline::value::memory;

/// The rows after a stage.
#[derive(Debug, Clone)]
pub struct StagePreview {
    /// The index of the stage in the request.
    pub index: usize,
    /// The name of the stage.
    pub name: String,
    /// The number of rows after the stage.
    pub count: u64,
    /// The first rows after the stage.
    pub rows: Vec<Value>,
    /// The time that the stage took, in microseconds.
    pub us: u64,
}

/// A pipeline or a part of a pipeline, prepared to show the rows after each of its stages.
pub struct Preview {
    /// The leading `$fold` and `$match` stages that the source evaluates. Each entry contains the index of the stage
    /// and a program that returns the rows after the stage. The program is a scan without steps. A source with columns
    /// can therefore count these rows without building them.
    pub levels: Vec<(usize, Program)>,
    /// The index of the stage that provides the source rows of `main`. `None` if `levels` is not empty, or if the
    /// source rows are events.
    pub source: Option<usize>,
    /// The program of the remaining stages.
    pub main: Program,
    /// For each step of `main`, how the number of rows after the step follows from the number of rows before the step.
    pub counts: Vec<RowCountBound>,
}

/// The results that a run returns.
#[derive(Debug, Clone, Copy)]
pub enum RunOutput {
    /// The rows after the last stage, and the previews of all stages.
    Rows,
    /// The previews of all stages, without the rows after the last stage.
    Stages,
}

/// The rule that determines the number of rows after a step from the number of rows before the step.
#[derive(Debug, Clone, Copy)]
pub enum RowCountBound {
    Same,
    AtMost(u64),
    Without(u64),
    /// The number of rows before the step does not determine the number after the step, so the rows are counted.
    Own,
}

/// A tap after one step: passes the rows of the step on, counts these rows, and keeps the first rows for the preview.
struct Tap<'a> {
    number: usize,
    index: usize,
    input: RefCell<Option<Rows<'a>>>,
    seen: Cell<u64>,
    first: RefCell<Vec<Value>>,
    /// The number of rows, if the number is known before the tap reads rows. Otherwise `None`.
    count: Cell<Option<u64>>,
    counted: RowCountBound,
    shared: Rc<PreviewRun<'a>>,
}

struct PreviewRun<'a> {
    run: RunContext<'a>,
    /// The number of rows to show.
    shown: usize,
    watch: Stopwatch<'a>,
}

/// The taps of a run. The input of a tap contains the preceding taps. The taps are closed from the last to the first,
/// because dropping the nested inputs recursively could overflow the stack.
struct Taps<'a>(Vec<Rc<Tap<'a>>>);

impl Drop for Taps<'_> {
    fn drop(&mut self) {
        self.0.iter().rev().for_each(|tap| tap.close());
    }
}

impl Preview {
    /// Runs the pipeline. Returns the rows after the last stage, and the previews of all stages. The returned rows are
    /// empty unless `wanted` is [`RunOutput::Rows`]. Each preview contains at most `shown` rows.
    pub fn run<'a>(
        &'a self,
        run: RunContext<'a>,
        shown: usize,
        wanted: RunOutput,
    ) -> Result<(Vec<Value>, Vec<StagePreview>)> {
        let mut stages = Vec::new();
        for (index, program) in &self.levels {
            stages.push(level(*index, program, run, shown).map_err(|error| error.at_stage(*index))?);
        }
        let steps = self.main.steps.len();
        let shared = Rc::new(PreviewRun { run, shown, watch: Stopwatch::new(run.query, steps + 1) });
        let mut taps = Taps(Vec::with_capacity(steps + 1));
        let known = stages.last().map(|stage| stage.count);
        let rows = self.open(&shared, known, &mut taps)?;
        let rows = match wanted {
            RunOutput::Rows => collect(rows, self.main.owner(), run.query)?,
            RunOutput::Stages => Vec::new(),
        };
        for tap in taps.0.iter().rev() {
            let is_shown = tap.number > 0 || self.source.is_some();
            tap.fill(if is_shown { shown } else { 0 })?;
        }
        let mut before = known.unwrap_or_default();
        for tap in &taps.0 {
            before = tap.total(before);
            let is_source = tap.number == 0;
            if is_source && self.source.is_none() {
                continue;
            }
            let (rows, us) = (tap.first.take(), shared.watch.us(tap.number));
            let stage = StagePreview { index: tap.index, name: String::new(), count: before, rows, us };
            match stages.last_mut() {
                // A stage of several steps shows the rows after its last step.
                Some(last) if last.index == tap.index && !is_source => {
                    *last = StagePreview { us: last.us.saturating_add(us), ..stage };
                }
                _ => stages.push(stage),
            }
        }
        Ok((rows, stages))
    }

    /// Opens the main program and returns its final rows. Adds a [`Tap`] after the source and after each step.
    fn open<'a>(&'a self, shared: &Rc<PreviewRun<'a>>, known: Option<u64>, taps: &mut Taps<'a>) -> Result<Rows<'a>> {
        let run = shared.run;
        let mut tap = |index: usize, rows: Rows<'a>, counted: RowCountBound, count: Option<u64>| -> Rows<'a> {
            let tap = Rc::new(Tap {
                number: taps.0.len(),
                index,
                input: RefCell::new(Some(rows)),
                seen: Cell::new(0),
                first: RefCell::default(),
                count: Cell::new(count),
                counted,
                shared: shared.clone(),
            });
            taps.0.push(tap.clone());
            Box::new(std::iter::from_fn(move || tap.next()))
        };
        let read = OperatorMeter::default();
        let meters: Vec<OperatorMeter> = self.main.steps.iter().map(|_| OperatorMeter::default()).collect();
        let source_index = self.source.unwrap_or_default();
        let covers = self.main.vectorized.as_ref().map_or(0, |vectorized| vectorized.covers);
        let by_columns = shared.watch.timed(covers, || self.main.tail_rows(run, Some(&read), &meters))?;
        let (mut rows, covered) = match by_columns {
            None => {
                let source = shared.watch.timed(0, || self.main.source_rows(run, None));
                let source = source.map_err(|error| error.at_stage(source_index))?;
                (tap(source_index, source, RowCountBound::Own, known), 0)
            }
            Some(TailRows { rows, covered, .. }) => {
                drop(tap(source_index, Box::new(std::iter::empty()), RowCountBound::Own, known.or(Some(read.rows()))));
                // The covered steps ran over columns together, so there are no rows between the covered steps. Each
                // covered step except the last runs again over rows, to show its first rows.
                for (number, step) in self.main.steps.iter().enumerate().take(covered.saturating_sub(1)) {
                    let source = self.main.source_rows(run, None)?;
                    let opened = step.operator.open(source, run).map_err(|error| error.at_stage(step.index))?;
                    drop(tap(step.index, opened, RowCountBound::Own, Some(meters[number].rows())));
                }
                let (index, counted) = self.step(covered.saturating_sub(1));
                (tap(index, rows, counted, None), covered)
            }
        };
        let mut chain = 0;
        for (number, step) in self.main.steps.iter().enumerate().skip(covered) {
            chain = if step.operator.is_blocking() { 0 } else { chain + 1 };
            if chain > MAX_CHAIN {
                let owner = number.checked_sub(1).map_or(self.main.source, |below| self.main.steps[below].owner);
                rows = Box::new(KeptRows::new(KeptRow::collect(rows, owner, run.query)?, run.query));
                chain = 1;
            }
            let opened = shared.watch.timed(number + 1, || step.operator.open(rows, run));
            let (index, counted) = self.step(number);
            rows = tap(index, opened.map_err(|error| error.at_stage(index))?, counted, None);
        }
        Ok(rows)
    }

    /// Returns the index of the stage that contains a step, and the relation between the numbers of rows before and
    /// after the step.
    fn step(&self, number: usize) -> (usize, RowCountBound) {
        let index = self.main.steps.get(number).map_or(0, |step| step.index);
        (index, self.counts.get(number).copied().unwrap_or(RowCountBound::Own))
    }
}

/// Runs the program of a leading stage. Returns the number of rows and the first `shown` rows.
fn level(index: usize, program: &Program, run: RunContext, shown: usize) -> Result<StagePreview> {
    let start = (run.query.elapsed_us)();
    let known = program.count(run)?;
    let mut rows = Vec::new();
    let mut seen = 0u64;
    for row in program.source_rows(run, None)? {
        let row = row?;
        seen += 1;
        if rows.len() < shown {
            memory::hold(&row, run.query)?;
            rows.push(row);
        }
        if known.is_some() && rows.len() >= shown {
            break;
        }
    }
    let us = (run.query.elapsed_us)().saturating_sub(start);
    Ok(StagePreview { index, name: String::new(), count: known.unwrap_or(seen), rows, us })
}

impl Tap<'_> {
    fn next(&self) -> Option<Result<Value>> {
        let mut input = self.input.try_borrow_mut().ok()?;
        let rows = input.as_mut()?;
        let below = self.shared.watch.enter(self.number);
        let row = rows.next();
        self.shared.watch.enter(below);
        if !matches!(row, Some(Ok(_))) {
            *input = None;
        }
        let shown = row?.and_then(|row| self.show(&row).map(|()| row));
        Some(shown.map_err(|error| error.at_stage(self.index)))
    }

    /// Counts a row. Keeps a copy of the row if the row is one of the rows to show.
    fn show(&self, row: &Value) -> Result<()> {
        self.seen.set(self.seen.get() + 1);
        if self.seen.get() <= self.shared.shown as u64 {
            // The response contains the row, so the query is charged for the whole row.
            memory::hold(row, self.shared.run.query)?;
            self.first.borrow_mut().push(row.clone());
        }
        Ok(())
    }

    /// Reads the rows that the later steps have left unread. If the rows of this step must be counted, reads all of
    /// these rows. Otherwise reads only until the first `shown` rows of the step are known.
    fn fill(&self, shown: usize) -> Result<()> {
        let is_counted = matches!(self.counted, RowCountBound::Own) && self.count.get().is_none();
        while is_counted || self.seen.get() < shown as u64 {
            match self.next() {
                Some(row) => drop(row?),
                None => break,
            }
        }
        Ok(())
    }

    /// Returns the number of rows after the step, given the number before the step.
    fn total(&self, before: u64) -> u64 {
        self.count.get().unwrap_or(match self.counted {
            RowCountBound::Same => before,
            RowCountBound::AtMost(most) => before.min(most),
            RowCountBound::Without(skipped) => before.saturating_sub(skipped),
            RowCountBound::Own => self.seen.get(),
        })
    }

    fn close(&self) {
        if let Ok(mut input) = self.input.try_borrow_mut() {
            input.take();
        }
    }
}
