//! Turns a client's pipeline into a source and operators, and runs the operators over rows.
//!
//! The module contains no async code, no I/O and no database crate: its caller passes in the rows that a pipeline
//! reads. The submodules form layers. A layer uses only lower layers. The layers, from the lowest to the highest, are
//! `column` and `value`, `expression`, `source`, `language`, `run` and `plan`. This file contains the interface for
//! callers.
//!
//! # How a pipeline is processed
//!
//! 1. **Parse** (`language/parse`): rejects unknown stages, unknown operators and wrong shapes before a row is read,
//!    with MongoDB's error code and the index of the stage. From stage to stage, `language/rows` tracks the fields of
//!    the rows and the kinds of their values. A string that a stage compares with a date or a decimal is converted
//!    before the stage is parsed, so all sources and operators use the same constant. Names that rows cannot have, and
//!    constants that select no rows, cause warnings.
//! 2. **Plan** (`plan/logical.rs`): determines the source and the steps. Rows are events before `$fold`, and states
//!    after `$fold`.
//! 3. **Optimize** (`plan/optimize`): applies ten rules in a fixed order. Filters move towards the source, and a
//!    `$sort` gets the limit of a later `$limit`. If a fold covers whole streams up to the present, `choose_source`
//!    reads the resident states instead of the log. The log remains the source if a pipeline has a condition on single
//!    events, specifies a time, a version or a log position, or reads the events themselves.
//! 4. **Lower** (`plan/lower.rs`, `source/surrealql.rs`): converts the plan to scans and operators. A source evaluates
//!    a filter exactly (the pipeline drops the filter), inexactly (the pipeline evaluates the filter again), or not at
//!    all. Values are bound as parameters and never inserted into the text of a query.
//! 5. **Run** (`run`): runs the operators. Over resident states, the filter runs over columns (`run/vectorized`). A
//!    count, a sort, a group or a stage with windows also runs over columns if the stage directly follows the filter.
//!    An unwind or a projection may precede the group, and a projection may precede the windows. Windows
//!    (`run/windows`) read their partitions, their order and their inputs from columns. A test of the filter
//!    returns a mask for a whole segment. A group distinguishes strings by their codes, and a `$lookup` uses a column
//!    to find the rows with a value. Rows are built only for the result. The expressions of a group and its ranked
//!    accumulators are evaluated over rows that contain only the needed cells. An expression that reads only one column
//!    with few distinct strings is evaluated once for each string. Columns do not suffice for a path through an array,
//!    for an expression in a filter, or for finding the row that causes the first error. In these cases, the run reads
//!    the rows instead and returns the same result.
//! 6. **Explain**: describes the source, the parts that the source evaluates, the rows and the time of each stage, and
//!    the applied rules.
//!
//! Every source returns the same rows and errors. As in MongoDB, the error that a row causes at a stage does not occur
//! if a later `$match` drops the row and reads only fields that the stage leaves unchanged. The rules that determine
//! which errors occur apply before a source is chosen, and also if no work is pushed to the source. These rules move
//! filters, and put the conditions that cannot fail at the beginning of a filter.

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
pub use run::preview::StagePreview;
pub use source::positions::Positions;
pub use source::scan::{AsOf, EdgeScan, EventScan, Read, Scan, StateScan, StateSource};
pub use source::streams::StreamFilter;
pub use source::surrealql;
pub use source::table::{Columns, Table};
pub use value::{context, error, hint, known_types, memory};

use crate::model::value::{Object, Value};
use context::Context;
use error::Result;
use language::parse;
use plan::explain::explain;
use plan::logical;
use plan::lower::{PlanLowering, lower};
use plan::optimize::optimize;
use plan::preview::{Previews, preview};
use plan::read_types::read_types;
use run::meter::OperatorMeter;
use run::preview::RunOutput;
use run::program::Program;
use run::rows::{RowOwner, RunContext};
use value::extended_json;

/// A checked pipeline that is ready to run.
pub struct PreparedPipeline {
    /// The optimized program. `None` for a preview without an explanation.
    program: Option<Program>,
    /// The programs that show rows after every stage, and the number of rows to show.
    previews: Option<(Previews, usize)>,
    scans: Vec<Scan>,
    /// The aggregate types that the pipeline reads. `None` if the pipeline may read any type.
    types: Option<BTreeSet<Arc<str>>>,
    stages: Vec<Value>,
    /// The specifications of stages and filters after the conversion of their constants, in the order of parsing.
    /// `None` represents a specification that the conversion did not change.
    conversions: Vec<Option<Value>>,
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
    /// The rows after every stage, if the options request a preview.
    pub stages: Vec<StagePreview>,
}

/// Checks a whole pipeline and prepares the pipeline for running, within the query's time and memory limits.
///
/// Evaluates constants and compiles patterns, which can take a long time. Do not call this function on threads that
/// serve requests.
///
/// Returns the first error of these checks, in this order: the Extended JSON values of the whole pipeline, each stage
/// from the first to the last, and the positions of the `$fold` stages together with the variables in the `$match`
/// stages before `$fold`.
pub fn prepare(pipeline: &Value, options: &Options, query: &Context) -> Result<PreparedPipeline> {
    let spec = extended_json::read(pipeline, query)?;
    let parsed = parse::pipeline(spec.as_ref(), query)?;
    let stages = parsed.stages.iter().map(|staged| staged.text.clone()).collect();
    let conversions = query.take_conversions();
    let mut plan = logical::plan(parsed, query)?;
    let types = read_types(&plan);
    let warnings = query.take_warnings();
    query.check_time()?;
    let mut lowering = PlanLowering {
        scans: Vec::new(),
        columns: options.push_down && options.columns,
        shows_rows: options.preview.is_some(),
    };
    let mut previews = None;
    if let Some(shown) = options.preview {
        previews = Some((preview(plan, options, shown, &mut lowering), shown));
        if !options.explain {
            let (scans, rules) = (lowering.scans, Vec::new());
            let (program, explain) = (None, false);
            return Ok(PreparedPipeline {
                program,
                previews,
                scans,
                types,
                stages,
                conversions,
                rules,
                warnings,
                explain,
            });
        }
        // The preview has consumed the plan, so the optimizer gets a second plan of the same pipeline.
        plan = logical::plan(parse::pipeline(spec.as_ref(), query)?, query)?;
        query.take_warnings();
        lowering.shows_rows = false;
    }
    let rules = optimize(&mut plan, options);
    query.check_time()?;
    let (program, explain) = (Some(lower(plan, &mut lowering)), options.explain);
    let scans = lowering.scans;
    Ok(PreparedPipeline { program, previews, scans, types, stages, conversions, rules, warnings, explain })
}

impl PreparedPipeline {
    /// Returns the scans of the pipeline and of its sub-pipelines.
    pub fn scans(&self) -> &[Scan] {
        &self.scans
    }

    /// Returns the paths whose columns would speed up the pipeline, at most [`MAX_PATHS`](column::MAX_PATHS).
    pub fn columns(&self) -> Vec<&Arc<str>> {
        let paths: BTreeSet<_> = self.scans.iter().filter_map(|scan| scan.columns.as_ref()).flatten().collect();
        paths.into_iter().take(column::MAX_PATHS).collect()
    }

    /// Returns the aggregate types to which `from`, `coll`, and conditions for equality or `$in` restrict the scans.
    /// The caller should warn about types that do not exist.
    pub fn aggregate_types(&self) -> BTreeSet<&Arc<str>> {
        let streams = self.scans.iter().filter_map(|scan| match &scan.read {
            Read::Events(scan) => Some(&scan.streams),
            Read::States(scan) => Some(&scan.streams),
            Read::Edges(_) => None,
        });
        streams.filter_map(|streams| streams.aggregate_types.as_ref()).flatten().collect()
    }

    /// Returns whether the pipeline may read events or states of a type.
    pub fn may_read(&self, type_name: &str) -> bool {
        self.types.as_ref().is_none_or(|types| types.contains(type_name))
    }

    /// Returns the highest log position in the `$fold` stages, or `None` if no `$fold` specifies a position.
    pub fn last_position(&self) -> Option<u64> {
        let positions = self.scans.iter().filter_map(|scan| match &scan.read {
            Read::States(StateScan { as_of: AsOf::Position(position), .. }) => u64::try_from(*position).ok(),
            _ => None,
        });
        positions.max()
    }

    /// Returns the specifications of stages and filters after the conversion of their constants, in the order of
    /// parsing. `None` represents a specification that the conversion did not change.
    pub fn conversions(&self) -> &[Option<Value>] {
        &self.conversions
    }

    /// Returns the warnings that are known before the run. The output of a run also contains these warnings.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Runs the pipeline. Returns the rows and the warnings. Returns the plan or the previews only if the options
    /// request this part of the output. `tables[i]` must contain the rows of `scans()[i]`.
    pub fn run(&self, tables: &[&dyn Table], query: &Context) -> Result<Output> {
        let run = RunContext { query, tables, variables: None };
        let mut warnings = self.warnings.clone();
        let (mut rows, mut explain) = (None, Value::Null);
        let mut is_exact = true;
        if let Some(program) = &self.program {
            let ran = self.run_program(program, run)?;
            explain = ran.1;
            is_exact = program.owner() == RowOwner::Source || ran.0.iter().all(is_finite);
            rows = Some(ran.0);
        }
        let mut stages = Vec::new();
        if let Some((previews, shown)) = &self.previews {
            if let Some(before) = &previews.before {
                query.restart_random();
                stages = before.run(run, *shown, RunOutput::Stages)?.1;
            }
            query.restart_random();
            let wanted = if rows.is_some() { RunOutput::Stages } else { RunOutput::Rows };
            let (found, shown) = previews.rows.run(run, *shown, wanted)?;
            stages.extend(shown);
            for stage in &mut stages {
                let text = self.stages.get(stage.index).and_then(Value::as_object);
                stage.name =
                    text.and_then(|text| text.iter().next()).map(|(name, _)| name.to_string()).unwrap_or_default();
            }
            let rows = rows.get_or_insert(found);
            is_exact &= rows.iter().chain(stages.iter().flat_map(|stage| &stage.rows)).all(is_finite);
        }
        if !is_exact {
            warnings.push("NaN and infinity are shown as null".to_owned());
        }
        Ok(Output { rows: rows.unwrap_or_default(), warnings, explain, stages })
    }

    /// Runs the optimized program. Returns the rows and the explanation.
    fn run_program<'a>(&'a self, program: &'a Program, run: RunContext<'a>) -> Result<(Vec<Value>, Value)> {
        let read = OperatorMeter::default();
        let meters: Vec<OperatorMeter> = program.steps.iter().map(|_| OperatorMeter::default()).collect();
        let meters = if self.explain { meters.as_slice() } else { &[] };
        let owner = program.owner();
        let mut rows = Vec::new();
        let found = program.measured(run, self.explain.then_some(&read), meters);
        for row in found.map_err(|error| if program.is_computed() { error.at_stage(0) } else { error })? {
            let row = row?;
            owner.hold(&row, run.query)?;
            rows.push(row);
        }
        let explain = match self.explain {
            true => explain(program, &self.scans, &self.rules, meters, &read),
            false => Value::Null,
        };
        Ok((rows, explain))
    }

    /// Returns the normalized stages, the plan, and the names of the rules that changed the plan.
    pub fn describe(&self) -> Value {
        let rules: Vec<Value> = self.rules.iter().copied().map(Value::from).collect();
        Object::from_iter([
            ("pipeline", Value::from(self.stages.clone())),
            ("plan", self.program.as_ref().map_or(Value::Null, |program| program.describe(&self.scans))),
            ("rules", rules.into()),
        ])
        .into()
    }
}

/// Returns whether JSON can represent every number in the value. Infinities and NaN have no representation.
fn is_finite(value: &Value) -> bool {
    match value {
        Value::Double(number) => number.is_finite(),
        Value::Array(items) => items.iter().all(is_finite),
        Value::Object(object) => object.iter().all(|(_, value)| is_finite(value)),
        Value::Null | Value::Bool(_) | Value::Int(_) | Value::Decimal(_) | Value::Date(_) | Value::String(_) => true,
    }
}
