//! The operator that gathers the partitions of `$setWindowFields` from rows.

use std::borrow::Cow;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::partition::PartitionRows;
use super::stage::WindowStage;
use crate::model::value::Value;
use crate::pipeline::language::ast;
use crate::pipeline::run::rows::{Operator, RowOwner, Rows, RunContext};
use crate::pipeline::value::context::Context;
use crate::pipeline::value::error::{Error, Result};
use crate::pipeline::value::memory::{self, measure, measure_all};
use crate::pipeline::value::path::FieldPath;
use crate::pipeline::value::sort_key::{SortKey, SortOrder};
use crate::pipeline::value::sorting::sorted;

/// A row with its sort key.
type Keyed = (SortKey, Value);

/// The rows of a partition, and the number of bytes that the query is charged for the rows.
#[derive(Default)]
struct GatheredRows {
    rows: Vec<Keyed>,
    charged: usize,
}

/// The operator of `$setWindowFields`.
pub struct WindowsOperator {
    stage: WindowStage,
    /// The order of the rows in a partition. Rows with equal sort keys are in the order of their `_id`.
    order: Option<SortOrder>,
    owner: RowOwner,
}

impl WindowsOperator {
    pub fn new(stage: Arc<ast::Windows>, owner: RowOwner) -> WindowsOperator {
        let sort = stage.sort.as_deref().filter(|keys| !keys.is_empty());
        let order = sort.map(|keys| SortOrder::then_by_id(keys.iter().map(|key| (&**key.path.text(), key.descending))));
        WindowsOperator { stage: WindowStage::new(stage), order, owner }
    }

    /// Gathers the rows of each partition, in the order of the partitions' keys.
    fn partitions(&self, input: Rows, run: RunContext) -> Result<Vec<GatheredRows>> {
        let mut numbers: FxHashMap<Value, usize> = FxHashMap::default();
        let mut partitions: Vec<(Value, GatheredRows)> = Vec::new();
        for row in input {
            let row = row?;
            let key = self.key(&row, run)?;
            let sort_key = match &self.order {
                Some(order) => order.key(&row)?,
                None => SortKey::new(),
            };
            let ((), charged) = run.query.charged(|| {
                self.owner.hold(&row, run.query)?;
                run.query.charge(size_of::<Keyed>() + size_of_val(sort_key.as_slice()))
            })?;
            let number = match numbers.get(&key) {
                Some(number) => *number,
                None => {
                    memory::hold(&key, run.query)?;
                    partitions.push((key.clone(), GatheredRows::default()));
                    numbers.insert(key, partitions.len() - 1);
                    partitions.len() - 1
                }
            };
            let partition = &mut partitions[number].1;
            partition.rows.push((sort_key, row));
            partition.charged += charged;
        }
        let partitions = sorted(partitions, run.query, |(key, _)| measure(key, run.query), |(a, _), (b, _)| a.cmp(b))?;
        Ok(partitions.into_iter().map(|(_, rows)| rows).collect())
    }

    /// Returns the key of a row's partition. A missing key counts as null.
    fn key(&self, row: &Value, run: RunContext) -> Result<Value> {
        let Some(expr) = &self.stage.stage.partition else { return Ok(Value::Null) };
        match run.query.uncharged(|| expr.eval(&run.env(row)))? {
            Some(Value::Array(_)) => Err(Error::new(14, "Cannot 'partitionBy' an expression of type array")),
            Some(key) => {
                measure(&key, run.query)?;
                Ok(key)
            }
            None => Ok(Value::Null),
        }
    }

    /// Sorts the rows of a partition.
    fn sort<'a>(&'a self, gathered: GatheredRows, query: &'a Context<'a>) -> Result<Box<dyn PartitionRows + 'a>> {
        let GatheredRows { rows, charged } = gathered;
        let rows = match &self.order {
            Some(order) => {
                let weigh = |(key, _): &Keyed| measure_all(key.iter().flatten(), query);
                sorted(rows, query, weigh, |(a, _), (b, _)| order.compare(a, b))?
            }
            None => rows,
        };
        let (keys, rows) = rows.into_iter().unzip();
        let (sort_path, is_sorted) = (self.stage.stage.sort_path.as_ref(), self.order.is_some());
        Ok(Box::new(RowPartition { rows, keys, sort_path, is_sorted, charged, query }))
    }
}

impl Operator for WindowsOperator {
    fn open<'a>(&'a self, input: Rows<'a>, run: RunContext<'a>) -> Result<Rows<'a>> {
        let partitions = self.partitions(input, run)?.into_iter().map(move |rows| self.sort(rows, run.query));
        Ok(self.stage.rows(Box::new(partitions), run))
    }

    fn is_blocking(&self) -> bool {
        true
    }
}

/// A partition whose rows are held in memory.
struct RowPartition<'a> {
    rows: Vec<Value>,
    keys: Vec<SortKey>,
    sort_path: Option<&'a FieldPath>,
    is_sorted: bool,
    /// The number of bytes that the query is charged for the rows and the keys.
    charged: usize,
    query: &'a Context<'a>,
}

impl Drop for RowPartition<'_> {
    fn drop(&mut self) {
        self.query.give_back(self.charged);
    }
}

impl PartitionRows for RowPartition<'_> {
    fn len(&self) -> usize {
        self.rows.len()
    }

    fn input(&self, row: usize) -> Result<Cow<'_, Value>> {
        Ok(Cow::Borrowed(&self.rows[row]))
    }

    fn output(&self, row: usize) -> Result<Cow<'_, Value>> {
        self.input(row)
    }

    fn sort_value(&self, row: usize) -> Result<Option<Value>> {
        let Some(path) = self.sort_path else { return Ok(None) };
        self.query.uncharged(|| path.eval(&self.rows[row], self.query))
    }

    fn equals_next(&self, row: usize) -> Result<bool> {
        let (Some(Some(a)), Some(Some(b))) =
            (self.keys.get(row).map(|key| key.first()), self.keys.get(row + 1).map(|key| key.first()))
        else {
            return Ok(!self.is_sorted);
        };
        measure_all([a, b].into_iter().flatten(), self.query)?;
        Ok(a == b)
    }
}
