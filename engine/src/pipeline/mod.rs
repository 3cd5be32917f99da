//! Turns a client's pipeline into a source and operators, and runs the operators over rows.
//!
//! The module contains no async code, no I/O and no database crate: its caller passes in the rows that a pipeline
//! reads. The submodules form layers, and none uses a layer above it. From the lowest: `column` and `value`,
//! `expression`, `source`, `language`, `run`, `plan`. This file holds the interface for callers.

pub mod column;
mod expression;
mod language;
mod plan;
mod run;
mod source;
#[cfg(test)]
mod tests;
mod value;

use std::collections::BTreeSet;
use std::sync::Arc;

pub use expression::filter::Filter;
pub use language::catalogue;
pub use plan::options::{Options, SourceChoice};
pub use source::positions::Positions;
pub use source::scan::{AsOf, EdgeScan, EventScan, Read, Scan, Source, StateScan};
pub use source::streams::StreamFilter;
pub use source::surrealql;
pub use source::table::{Columns, Table};
pub use value::{context, error, hint};

use crate::model::value::{Object, Value};
use context::Context;
use error::Result;
use language::parse;
use plan::explain::explain;
use plan::lower::{Lowering, lower};
use plan::optimize::optimize;
use plan::{logical, visible};
use run::meter::Meter;
use run::program::Program;
use run::rows::{Owner, Run};
use value::extended;

/// A checked pipeline that is ready to run.
pub struct Prepared {
    program: Program,
    scans: Vec<Scan>,
    stages: Vec<Value>,
    rules: Vec<&'static str>,
    warnings: Vec<String>,
    explain: bool,
}

/// The rows and the warnings that a run returns.
#[derive(Debug, Clone)]
pub struct Output {
    pub rows: Vec<Value>,
    pub warnings: Vec<String>,
    /// The plan, with the number of rows and the microseconds of each part. Null unless the options request the plan.
    pub explain: Value,
}

/// Checks a whole pipeline and prepares the pipeline for running, within the query's time and memory limits.
///
/// Evaluates constants and compiles patterns, which can take long. Do not call this function on threads that serve
/// requests. If several stages are invalid, the error names the first.
pub fn prepare(pipeline: &Value, options: &Options, query: &Context) -> Result<Prepared> {
    let pipeline = parse::pipeline(extended::read(pipeline)?.as_ref(), query)?;
    let stages = pipeline.stages.iter().map(|staged| staged.text.clone()).collect();
    let mut plan = logical::plan(pipeline, query)?;
    let warnings = visible::warnings(&plan);
    query.check_time()?;
    let rules = optimize(&mut plan, options);
    query.check_time()?;
    let mut lowering = Lowering { scans: Vec::new(), columns: options.push_down && options.columns };
    let program = lower(plan, &mut lowering);
    Ok(Prepared { program, scans: lowering.scans, stages, rules, warnings, explain: options.explain })
}

impl Prepared {
    /// Returns the scans of the pipeline and of its sub-pipelines.
    pub fn scans(&self) -> &[Scan] {
        &self.scans
    }

    /// Returns the paths whose columns would speed up the pipeline, at most `MAX_PATHS` of them.
    pub fn columns(&self) -> Vec<&Arc<str>> {
        let paths: BTreeSet<_> = self.scans.iter().filter_map(|scan| scan.columns.as_ref()).flatten().collect();
        paths.into_iter().take(column::MAX_PATHS).collect()
    }

    /// Returns the aggregate types that the pipeline names. The caller should warn about types that do not exist.
    pub fn aggregate_types(&self) -> BTreeSet<&Arc<str>> {
        let streams = self.scans.iter().filter_map(|scan| match &scan.read {
            Read::Events(scan) => Some(&scan.streams),
            Read::States(scan) => Some(&scan.streams),
            Read::Edges(_) => None,
        });
        streams.filter_map(|streams| streams.aggregate_types.as_ref()).flatten().collect()
    }

    /// Returns the warnings that are known before the run. The output of a run also contains these warnings.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Runs the pipeline. `tables[i]` holds the rows of `scans()[i]`.
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
            true => explain(&self.program, &self.scans, &self.rules, meters, &read),
            false => Value::Null,
        };
        Ok(Output { rows, warnings, explain })
    }

    /// Returns the normalized pipeline and its plan.
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

/// Returns whether JSON can represent every number in the value.
fn is_finite(value: &Value) -> bool {
    match value {
        Value::Double(number) => number.is_finite(),
        Value::Array(items) => items.iter().all(is_finite),
        Value::Object(object) => object.iter().all(|(_, value)| is_finite(value)),
        Value::Null | Value::Bool(_) | Value::Int(_) | Value::Date(_) | Value::String(_) => true,
    }
}
