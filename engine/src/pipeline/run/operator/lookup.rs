//! `$lookup`: adds to each row the matching rows of another pipeline.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::nested_fields;
use crate::model::value::Value;
use crate::pipeline::expression::expr::{Env, Expr};
use crate::pipeline::run::program::Program;
use crate::pipeline::run::rows::{Operator, RowOwner, Rows, RunContext, collect};
use crate::pipeline::run::vectorized::RowProbe;
use crate::pipeline::value::context::Context;
use crate::pipeline::value::error::Result;
use crate::pipeline::value::memory::{self, measure_all};
use crate::pipeline::value::path::FieldPath;
use crate::pipeline::value::query_path::{Leaf, QueryPath};

/// The operator of `$lookup`.
pub struct LookupOperator {
    pub join: Option<(QueryPath, QueryPath)>,
    /// A foreign path, and an expression that must equal the value at the path under the comparison rules of
    /// expressions.
    pub probe: Option<(FieldPath, Expr)>,
    pub variables: Vec<(Arc<str>, Expr)>,
    pub program: Program,
    pub target: FieldPath,
}

/// The foreign side of a join.
enum ForeignSide<'a> {
    Rows(ForeignRows),
    /// Foreign rows that are found through a column.
    Columns(RowProbe<'a>),
}

/// The foreign rows, read once, with an index of their values at the foreign path.
struct ForeignRows {
    rows: Vec<Value>,
    by_value: FxHashMap<Value, Vec<usize>>,
    /// The indexes of the rows by the value at the probe's path. `None` represents a missing field.
    by_read: FxHashMap<Option<Value>, Vec<usize>>,
}

impl Operator for LookupOperator {
    fn open<'a>(&'a self, input: Rows<'a>, run: RunContext<'a>) -> Result<Rows<'a>> {
        let mut foreign: Option<ForeignSide<'a>> = None;
        // Without a join and without variables, the sub-pipeline returns the same rows for every local row.
        let mut same: Option<Value> = None;
        Ok(Box::new(input.map(move |row| {
            let mut row = row?;
            let joined = match &same {
                Some(joined) => joined.clone(),
                None => {
                    let foreign = match &mut foreign {
                        Some(foreign) => foreign,
                        None => foreign.insert(self.read(run)?),
                    };
                    if let ForeignSide::Columns(probe) = foreign {
                        probe.count_request(run.query)?;
                    }
                    // The operator that keeps the row charges the query for the joined rows as well.
                    let joined = run.query.passing(|| self.joined(&row, foreign, run))?;
                    if self.join.is_none() && self.variables.is_empty() {
                        memory::hold(&joined, run.query)?;
                        same = Some(joined.clone());
                    }
                    joined
                }
            };
            if let Value::Object(object) = &mut row {
                nested_fields::set(Arc::make_mut(object), self.target.segments(), joined);
            }
            Ok(row)
        })))
    }
}

impl LookupOperator {
    /// Reads the foreign rows before the steps of the sub-pipeline run, or returns a probe that finds the rows through
    /// a column.
    fn read<'a>(&'a self, run: RunContext<'a>) -> Result<ForeignSide<'a>> {
        if let Some((_, path)) = &self.join
            && let Some(probe) = self.program.probe(path.text(), run)?
        {
            return Ok(ForeignSide::Columns(probe));
        }
        let rows = collect(self.program.source_rows(run, None)?, self.program.source, run.query)?;
        let mut by_value: FxHashMap<Value, Vec<usize>> = FxHashMap::default();
        if let Some((_, path)) = &self.join {
            for (row_index, row) in rows.iter().enumerate() {
                run.query.tick()?;
                path.any(row, Leaf::Expanded, &mut |value| {
                    run.query.charge(size_of::<Value>())?;
                    measure_all(value, run.query)?;
                    let row_indices = by_value.entry(value.cloned().unwrap_or_default()).or_default();
                    if row_indices.last() != Some(&row_index) {
                        row_indices.push(row_index);
                    }
                    Ok(false)
                })?;
            }
        }
        let mut by_read: FxHashMap<Option<Value>, Vec<usize>> = FxHashMap::default();
        if let Some((path, _)) = &self.probe {
            for (row_index, row) in rows.iter().enumerate() {
                run.query.tick()?;
                run.query.charge(size_of::<Value>())?;
                let read = path.eval(row, run.query)?;
                measure_all(&read, run.query)?;
                by_read.entry(read).or_default().push(row_index);
            }
        }
        Ok(ForeignSide::Rows(ForeignRows { rows, by_value, by_read }))
    }

    /// Returns the array of foreign rows that match `row`.
    fn joined(&self, row: &Value, foreign: &mut ForeignSide, run: RunContext) -> Result<Value> {
        let env = run.env(row);
        let values = self.variables.iter().map(|(_, expr)| expr.eval(&env)).collect::<Result<Vec<_>>>()?;
        let frame = env.frame(&values);
        let inner: Env = env.bind(&frame);
        let run = RunContext { query: run.query, tables: run.tables, variables: inner.variables };
        let foreign = match foreign {
            ForeignSide::Rows(foreign) => foreign,
            ForeignSide::Columns(probe) => {
                let values = self.join.as_ref().map(|(local, _)| local_values(local, row)).transpose()?;
                let rows = probe.rows(values.unwrap_or_default(), run.query)?;
                let input = Box::new(rows.into_iter().map(|row| ticked(row, run.query)));
                return Ok(collect(self.program.over(input, run)?, RowOwner::Pipeline, run.query)?.into());
            }
        };
        let row_indices = match (&self.join, &self.probe) {
            (Some((local, _)), _) => {
                let values = local_values(local, row)?;
                measure_all(&values, run.query)?;
                Some(foreign.matching(values))
            }
            (None, Some((_, equal))) => Some(foreign.by_read.get(&equal.eval(&inner)?).cloned().unwrap_or_default()),
            (None, None) => None,
        };
        let input: Rows = match row_indices {
            None => Box::new(foreign.rows.iter().cloned().map(|row| ticked(row, run.query))),
            Some(row_indices) => {
                Box::new(row_indices.into_iter().map(|row_index| ticked(foreign.rows[row_index].clone(), run.query)))
            }
        };
        Ok(collect(self.program.over(input, run)?, RowOwner::Pipeline, run.query)?.into())
    }
}

fn ticked(row: Value, query: &Context) -> Result<Value> {
    query.tick()?;
    Ok(row)
}

impl ForeignRows {
    /// Returns the indexes of the rows that contain one of the values, in ascending order.
    fn matching(&self, values: Vec<Value>) -> Vec<usize> {
        let found = values.iter().filter_map(|value| self.by_value.get(value));
        let mut row_indices: Vec<usize> = found.flatten().copied().collect();
        row_indices.sort_unstable();
        row_indices.dedup();
        row_indices
    }
}

/// Returns the values of a local row that foreign rows must match.
fn local_values(local: &QueryPath, row: &Value) -> Result<Vec<Value>> {
    let mut values: Vec<Value> = Vec::new();
    local.any(row, Leaf::Whole, &mut |value| {
        match value {
            None => {}
            Some(Value::Array(items)) => values.extend(items.iter().cloned()),
            Some(value) => values.push(value.clone()),
        }
        Ok(false)
    })?;
    // A row with a missing field or an empty array matches null.
    if values.is_empty() {
        values.push(Value::Null);
    }
    Ok(values)
}
