//! `$lookup`: adds to each row the matching rows of another pipeline.

use std::collections::hash_map::Entry;
use std::hash::Hash;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::nested_fields;
use crate::model::value::Value;
use crate::pipeline::expression::expr::{Env, Expr};
use crate::pipeline::run::program::Program;
use crate::pipeline::run::rows::{Operator, RowOwner, Rows, RunContext, collect, ticked};
use crate::pipeline::run::vectorized::RowProbe;
use crate::pipeline::value::context::Context;
use crate::pipeline::value::error::Result;
use crate::pipeline::value::memory::measure_all;
use crate::pipeline::value::path::FieldPath;
use crate::pipeline::value::query_path::{Leaf, QueryPath};

/// The operator of `$lookup`.
pub struct LookupOperator {
    pub join: Option<(QueryPath, QueryPath)>,
    /// A foreign path and an expression. A foreign row matches if its value at the path equals the value of the
    /// expression. The values are compared as in expressions.
    pub probe: Option<(FieldPath, Expr)>,
    pub variables: Vec<(Arc<str>, Expr)>,
    pub program: Program,
    /// Whether the foreign rows depend on `variables`, so that the foreign rows are computed for each local row.
    pub is_computed_by_row: bool,
    pub target: FieldPath,
}

/// The foreign side of a join.
enum ForeignSide<'a> {
    Rows(ForeignRows),
    /// Foreign rows that are found through a column.
    Columns(RowProbe<'a>),
}

/// The foreign rows, with indexes of their values at the foreign path and at the probe's path.
struct ForeignRows {
    rows: Vec<Value>,
    by_value: FxHashMap<Value, Vec<usize>>,
    /// The indexes of the rows by the value at the probe's path. `None` represents a missing field.
    by_read: FxHashMap<Option<Value>, Vec<usize>>,
}

impl Operator for LookupOperator {
    fn open<'a>(&'a self, input: Rows<'a>, run: RunContext<'a>) -> Result<Rows<'a>> {
        if self.is_computed_by_row {
            return Ok(Box::new(input.map(move |row| {
                let row = row?;
                let joined = run.query.uncharged(|| self.joined(&row, None, run))?;
                Ok(nested_fields::with(row, self.target.segments(), joined))
            })));
        }
        // The foreign side, and the number of bytes that the query is charged for the foreign side.
        let mut foreign: Option<(ForeignSide<'a>, usize)> = None;
        // Without a join and without variables, the sub-pipeline returns the same rows for every local row.
        let mut same: Option<Value> = None;
        Ok(Box::new(input.map(move |row| {
            let row = row?;
            let joined = match &same {
                Some(joined) => joined.clone(),
                None => {
                    let (side, bytes) = match &mut foreign {
                        Some(foreign) => foreign,
                        None => foreign.insert(run.query.charged(|| self.read(run))?),
                    };
                    if let ForeignSide::Columns(probe) = side {
                        probe.count_request(run.query)?;
                    }
                    // The operator that keeps the row charges the query for the joined rows as well.
                    let joined = run.query.uncharged(|| self.joined(&row, Some(side), run))?;
                    if self.join.is_none() && self.variables.is_empty() {
                        run.query.give_back(*bytes);
                        foreign = None;
                        self.program.owner().hold_all(joined.as_array().unwrap_or_default(), run.query)?;
                        same = Some(joined.clone());
                    }
                    joined
                }
            };
            Ok(nested_fields::with(row, self.target.segments(), joined))
        })))
    }
}

impl LookupOperator {
    /// Returns a probe if the foreign rows can be found through a column. Otherwise, reads the foreign rows and indexes
    /// them by their values.
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
                    measure_all(value, run.query)?;
                    add(&mut by_value, value.cloned().unwrap_or_default(), row_index, run.query)?;
                    Ok(false)
                })?;
            }
        }
        let mut by_read: FxHashMap<Option<Value>, Vec<usize>> = FxHashMap::default();
        if let Some((path, _)) = &self.probe {
            for (row_index, row) in rows.iter().enumerate() {
                run.query.tick()?;
                let (read, built) = run.query.charged(|| path.eval(row, run.query))?;
                measure_all(&read, run.query)?;
                if !add(&mut by_read, read, row_index, run.query)? {
                    run.query.give_back(built);
                }
            }
        }
        Ok(ForeignSide::Rows(ForeignRows { rows, by_value, by_read }))
    }

    /// Runs the sub-pipeline over the foreign rows that match `row`, and returns the resulting rows as an array.
    /// Without `foreign`, reads the foreign rows first.
    fn joined(&self, row: &Value, foreign: Option<&ForeignSide>, run: RunContext) -> Result<Value> {
        let env = run.env(row);
        let values = self.variables.iter().map(|(_, expr)| expr.eval(&env)).collect::<Result<Vec<_>>>()?;
        let frame = env.frame(&values);
        let inner: Env = env.bind(&frame);
        let run = RunContext { query: run.query, tables: run.tables, variables: inner.variables };
        let read;
        let foreign = match foreign {
            Some(foreign) => foreign,
            None => {
                read = self.read(run)?;
                &read
            }
        };
        let local = self.join.as_ref().map(|(local, _)| local_values(local, row, run.query)).transpose()?;
        let input = match (foreign, local, &self.probe) {
            (ForeignSide::Columns(probe), local, _) => {
                ticked(probe.rows(local.unwrap_or_default(), run.query)?, run.query)
            }
            (ForeignSide::Rows(foreign), Some(local), _) => {
                ticked(foreign.at(foreign.matching(&local, run.query)?), run.query)
            }
            (ForeignSide::Rows(foreign), None, Some((_, equal))) => {
                let value = equal.eval(&inner)?;
                measure_all(&value, run.query)?;
                let row_indices = foreign.by_read.get(&value).map(Vec::as_slice).unwrap_or_default();
                run.query.charge(size_of_val(row_indices))?;
                ticked(foreign.at(row_indices.to_vec()), run.query)
            }
            (ForeignSide::Rows(foreign), None, None) => ticked(foreign.rows.iter().cloned(), run.query),
        };
        Ok(collect(self.program.over(input, run)?, RowOwner::Pipeline, run.query)?.into())
    }
}

/// Adds a row index to the list of `key`, and charges the query for the entry. Returns whether the key is new.
pub fn add<K: Eq + Hash>(
    rows_by: &mut FxHashMap<K, Vec<usize>>,
    key: K,
    row_index: usize,
    query: &Context,
) -> Result<bool> {
    /// The approximate number of bytes of an entry with one row. Includes the heap memory of the vector, which has
    /// capacity for four rows after the second row is added.
    const ENTRY_BYTES: usize = 2 * size_of::<(Option<Value>, Vec<usize>)>();
    match rows_by.entry(key) {
        Entry::Vacant(entry) => {
            query.charge(ENTRY_BYTES)?;
            entry.insert(vec![row_index]);
            Ok(true)
        }
        Entry::Occupied(mut entry) => {
            if entry.get().last() != Some(&row_index) {
                query.charge(size_of::<usize>())?;
                entry.get_mut().push(row_index);
            }
            Ok(false)
        }
    }
}

impl ForeignRows {
    /// Returns the indexes of the rows that contain any of the values, in ascending order.
    fn matching(&self, values: &[Value], query: &Context) -> Result<Vec<usize>> {
        let distinct: FxHashSet<&Value> = values.iter().collect();
        let mut row_indices: Vec<usize> = Vec::new();
        for found in distinct.into_iter().filter_map(|value| self.by_value.get(value)) {
            query.tick_many(found.len())?;
            query.charge(size_of_val(found.as_slice()))?;
            row_indices.extend(found);
        }
        row_indices.sort_unstable();
        row_indices.dedup();
        Ok(row_indices)
    }

    /// Returns the rows at the given indexes.
    fn at(&self, row_indices: Vec<usize>) -> impl Iterator<Item = Value> {
        row_indices.into_iter().map(move |row_index| self.rows[row_index].clone())
    }
}

/// Returns the values of a row at the local path, or null if there are none. A foreign row with one of these values at
/// the foreign path matches.
fn local_values(local: &QueryPath, row: &Value, query: &Context) -> Result<Vec<Value>> {
    let mut values: Vec<Value> = Vec::new();
    local.any(row, Leaf::Whole, &mut |value| {
        query.tick()?;
        let items = match value {
            None => return Ok(false),
            Some(Value::Array(items)) => items.as_slice(),
            Some(value) => std::slice::from_ref(value),
        };
        query.tick_many(items.len())?;
        measure_all(items, query)?;
        query.charge(size_of_val(items))?;
        values.extend_from_slice(items);
        Ok(false)
    })?;
    // A row with a missing field or an empty array matches null.
    if values.is_empty() {
        values.push(Value::Null);
    }
    Ok(values)
}
