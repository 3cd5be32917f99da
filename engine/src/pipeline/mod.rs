//! Turns a client's pipeline into a source and operators, and runs the operators over rows.
//!
//! No async, no I/O, no database crate: what a pipeline reads is handed to it as rows. The layers, in order: `parse`
//! (JSON to `ast`), `plan`, `optimize`, `lower`, `operator`.

pub mod accumulator;
mod ast;
pub mod catalogue;
pub mod column;
pub mod context;
pub mod error;
mod explain;
pub mod expr;
mod extended;
pub mod filter;
mod granularity;
mod hint;
mod lower;
mod memory;
mod operator;
mod optimize;
mod parse;
mod path;
mod plan;
mod program;
mod projection;
mod regex;
pub mod scan;
mod sort_key;
mod sorting;
pub mod surrealql;
#[cfg(test)]
mod tests;
mod visible;

use std::collections::BTreeSet;
use std::sync::Arc;

pub use filter::Filter;
pub use scan::{AsOf, EdgeScan, EventScan, Read, Scan, Source, StateScan, StreamFilter, Table};

use crate::model::value::{Object, Value};
use context::Context;
use error::Result;
use explain::Meter;
use lower::Lowering;
use operator::{Owner, Run};
use program::Program;

/// How a pipeline is to be prepared.
#[derive(Debug, Clone)]
pub struct Options {
    pub source: SourceChoice,
    /// Without it every row is read and every stage is an operator. Filters are moved and ordered nevertheless, since that
    /// decides whose errors are spared.
    pub push_down: bool,
    /// Whether the source's columns are made use of, where it keeps any. Part of pushing down.
    pub columns: bool,
    /// Whether a run measures each operator.
    pub explain: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options { source: SourceChoice::Auto, push_down: true, columns: true, explain: false }
    }
}

/// Where states are to be read, as far as the pipeline allows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SourceChoice {
    #[default]
    Auto,
    Resident,
    Nodes,
    Log,
}

/// A pipeline that can be run.
pub struct Prepared {
    program: Program,
    scans: Vec<Scan>,
    stages: Vec<Value>,
    rules: Vec<&'static str>,
    warnings: Vec<String>,
    explain: bool,
}

/// What a run gave.
#[derive(Debug, Clone)]
pub struct Output {
    pub rows: Vec<Value>,
    pub warnings: Vec<String>,
    /// The plan with rows and microseconds of each part; null unless asked for.
    pub explain: Value,
}

/// Checks a pipeline whole and makes it ready. The first bad stage is the one that is reported.
pub fn prepare(pipeline: &Value, options: &Options) -> Result<Prepared> {
    let pipeline = parse::pipeline(extended::read(pipeline)?.as_ref())?;
    let stages = pipeline.stages.iter().map(|staged| staged.text.clone()).collect();
    let mut plan = plan::plan(pipeline)?;
    let warnings = visible::warnings(&plan);
    let rules = optimize::optimize(&mut plan, options);
    let mut lowering = Lowering { scans: Vec::new(), columns: options.push_down && options.columns };
    let program = lower::lower(plan, &mut lowering);
    Ok(Prepared { program, scans: lowering.scans, stages, rules, warnings, explain: options.explain })
}

impl Prepared {
    /// Everything that must be read, sub-pipelines included.
    pub fn scans(&self) -> &[Scan] {
        &self.scans
    }

    /// The paths of which columns would help.
    pub fn columns(&self) -> Vec<&Arc<str>> {
        let paths: BTreeSet<_> = self.scans.iter().filter_map(|scan| scan.columns.as_ref()).flatten().collect();
        paths.into_iter().take(column::MOST_PATHS).collect()
    }

    /// The aggregate types that the pipeline names; those that do not exist deserve a warning.
    pub fn aggregate_types(&self) -> BTreeSet<&Arc<str>> {
        let streams = self.scans.iter().filter_map(|scan| match &scan.read {
            Read::Events(scan) => Some(&scan.streams),
            Read::States(scan) => Some(&scan.streams),
            Read::Edges(_) => None,
        });
        streams.filter_map(|streams| streams.aggregate_types.as_ref()).flatten().collect()
    }

    /// What is already known to be worth a warning; a run's output has these too.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Runs the pipeline; `tables[i]` holds the rows of `scans()[i]`.
    pub fn run(&self, tables: &[&dyn Table], query: &Context) -> Result<Output> {
        let run = Run { query, tables, variables: None };
        let read = Meter::default();
        let meters: Vec<Meter> = self.program.steps.iter().map(|_| Meter::default()).collect();
        let meters = if self.explain { meters.as_slice() } else { &[] };
        let owner = self.program.owner();
        let mut rows = Vec::new();
        let mut finite = true;
        let found = self.program.measured(run, self.explain.then_some(&read), meters);
        for row in found.map_err(|error| if self.program.is_computed() { error.at_stage(0) } else { error })? {
            let row = row?;
            owner.hold(&row, query)?;
            finite &= owner == Owner::Source || is_finite(&row);
            rows.push(row);
        }
        let mut warnings = self.warnings.clone();
        if !finite {
            warnings.push("NaN and infinity are shown as null".to_owned());
        }
        let explain = match self.explain {
            true => explain::explain(&self.program, &self.scans, &self.rules, meters, &read),
            false => Value::Null,
        };
        Ok(Output { rows, warnings, explain })
    }

    /// The normalised pipeline and its plan.
    pub fn describe(&self) -> Value {
        let rules: Vec<Value> = self.rules.iter().copied().map(Value::from).collect();
        Object::from_iter([
            ("pipeline", Value::from(self.stages.clone())),
            ("plan", self.program.describe(&self.scans)),
            ("rules", rules.into()),
        ])
        .into()
    }
}

/// Whether JSON can say every number in the value.
fn is_finite(value: &Value) -> bool {
    match value {
        Value::Double(number) => number.is_finite(),
        Value::Array(items) => items.iter().all(is_finite),
        Value::Object(object) => object.iter().all(|(_, value)| is_finite(value)),
        Value::Null | Value::Bool(_) | Value::Int(_) | Value::Date(_) | Value::String(_) => true,
    }
}
