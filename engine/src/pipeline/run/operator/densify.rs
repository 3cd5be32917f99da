//! `$densify`: adds rows so that the values of a field have no gaps.

use rustc_hash::FxHashMap;

use super::nested_fields;
use crate::model::number;
use crate::model::value::{Object, Value};
use crate::pipeline::expression::expr::add_units;
use crate::pipeline::language::ast;
use crate::pipeline::language::ast::{DensifyStep, Range};
use crate::pipeline::run::rows::{Operator, RowOwner, Rows, RunContext};
use crate::pipeline::value::error::{Error, Result, err};
use crate::pipeline::value::memory::{self, measure_all};
use crate::pipeline::value::sorting::sorted;

/// The maximum number of rows that the stage adds (MongoDB's own limit).
const MAX_ADDED: usize = 500_000;

/// The operator of `$densify`.
pub struct DensifyOperator {
    pub densify: ast::Densify,
    pub owner: RowOwner,
}

/// A row with its partition and its value at the densified field. Null and missing values are `None`.
struct PartitionedRow {
    partition: usize,
    value: Option<Value>,
    row: Value,
}

/// A partition: the values of its partition fields, and the next value at which a row is added.
struct DensifyPartition {
    key: Vec<Option<Value>>,
    next: Option<Value>,
}

impl Operator for DensifyOperator {
    fn open<'a>(&'a self, input: Rows<'a>, run: RunContext<'a>) -> Result<Rows<'a>> {
        let mut numbers: FxHashMap<Vec<Option<Value>>, usize> = FxHashMap::default();
        let mut partitions: Vec<DensifyPartition> = Vec::new();
        let mut rows = Vec::new();
        for row in input {
            let row = row?;
            let value = self.value(&row)?;
            let paths = self.densify.partition.iter();
            let key: Vec<Option<Value>> =
                run.query.uncharged(|| paths.map(|path| path.eval(&row, run.query)).collect())?;
            measure_all(key.iter().flatten(), run.query)?;
            self.owner.hold(&row, run.query)?;
            run.query.charge(size_of::<PartitionedRow>())?;
            let partition = match numbers.get(&key) {
                Some(partition) => *partition,
                None => {
                    key.iter().flatten().try_for_each(|value| memory::hold(value, run.query))?;
                    partitions.push(DensifyPartition { key: key.clone(), next: None });
                    numbers.insert(key, partitions.len() - 1);
                    partitions.len() - 1
                }
            };
            rows.push(PartitionedRow { partition, value, row });
        }
        self.begin_series(&mut partitions);
        let is_full = matches!(self.densify.range, Range::Full);
        let rows = sorted(
            rows,
            run.query,
            |keyed| measure_all(keyed.value.iter().chain(partitions[keyed.partition].key.iter().flatten()), run.query),
            |a, b| {
                let of_partitions = match is_full || a.partition == b.partition {
                    true => std::cmp::Ordering::Equal,
                    false => compare_keys(&partitions[a.partition].key, &partitions[b.partition].key),
                };
                of_partitions.then_with(|| a.value.cmp(&b.value))
            },
        )?;
        let known = || rows.iter().filter_map(|keyed| keyed.value.as_ref());
        let (least, greatest) = (known().next().cloned(), rows.last().and_then(|keyed| keyed.value.clone()));
        let order = partitions_in_order(&rows, partitions.len());
        Ok(Box::new(DensifiedRows {
            densify: &self.densify,
            run,
            rows: rows.into_iter(),
            partitions,
            least,
            greatest,
            rest: order.into_iter(),
            goal: None,
            waiting: None,
            added: 0,
        }))
    }

    fn is_blocking(&self) -> bool {
        true
    }
}

/// Compares the keys of partitions. A missing field sorts like null.
fn compare_keys(a: &[Option<Value>], b: &[Option<Value>]) -> std::cmp::Ordering {
    let null = Value::Null;
    let values =
        |key: &[Option<Value>]| key.iter().map(|value| value.clone().unwrap_or(null.clone())).collect::<Vec<_>>();
    values(a).cmp(&values(b))
}

/// Returns the partitions in the order of their first rows with a value. Partitions whose rows all lack a value come
/// last.
fn partitions_in_order(rows: &[PartitionedRow], count: usize) -> Vec<usize> {
    let mut is_seen = vec![false; count];
    let mut order = Vec::with_capacity(count);
    for keyed in rows.iter().filter(|keyed| keyed.value.is_some()) {
        if !std::mem::replace(&mut is_seen[keyed.partition], true) {
            order.push(keyed.partition);
        }
    }
    order.extend((0..count).filter(|partition| !is_seen[*partition]));
    order
}

impl DensifyOperator {
    /// If the range is between two values, starts one series of added rows at the lower bound, in either of two cases:
    /// the stage has no partition fields, or the stage has no input rows. The stage then adds the series even if no row
    /// has a value.
    fn begin_series(&self, partitions: &mut Vec<DensifyPartition>) {
        let Range::Between(lower, _) = &self.densify.range else { return };
        if partitions.is_empty() {
            let key = vec![None; self.densify.partition.len()];
            partitions.push(DensifyPartition { key, next: Some(lower.clone()) });
        } else if self.densify.partition.is_empty() {
            partitions.iter_mut().for_each(|partition| partition.next = Some(lower.clone()));
        }
    }

    /// Returns the value of a row at the densified field. Rejects values that cannot be densified.
    fn value(&self, row: &Value) -> Result<Option<Value>> {
        let path = self.densify.field.segments();
        let mut value = row;
        for (depth, name) in path.iter().enumerate() {
            value = match value {
                Value::Object(object) => match object.get(name) {
                    Some(value) => value,
                    None => return Ok(None),
                },
                Value::Array(_) => {
                    let above = path[..depth].join(".");
                    return err!(5_733_307, "Cannot densify a field below '{above}', which is an array");
                }
                Value::Null => return Ok(None),
                _ => {
                    let above = path[..depth].join(".");
                    return err!(5_733_308, "Cannot densify a field below '{above}', which is not an object");
                }
            };
        }
        match (value, &self.densify.step) {
            (Value::Null, _) => Ok(None),
            (Value::Date(_), DensifyStep::Time(..)) => Ok(Some(value.clone())),
            (Value::Date(_), DensifyStep::Number(_)) => {
                Err(Error::new(6_053_600, "Encountered date value in collection when step does not have a date unit."))
            }
            (value, DensifyStep::Number(_)) if value.is_number() => Ok(Some(value.clone())),
            (value, DensifyStep::Time(..)) if value.is_number() => {
                Err(Error::new(6_053_600, "Encountered numeric value in collection when step has a date unit."))
            }
            (other, _) => {
                err!(5_733_201, "Densify field type must be numeric or a date, but found {}", other.type_name())
            }
        }
    }
}

/// An iterator over the input rows and the added rows.
struct DensifiedRows<'a> {
    densify: &'a ast::Densify,
    run: RunContext<'a>,
    rows: std::vec::IntoIter<PartitionedRow>,
    partitions: Vec<DensifyPartition>,
    /// The least value of all rows. Valid only for [`Range::Full`], for which the rows are sorted only by their values.
    least: Option<Value>,
    /// The greatest value of all rows. Valid only for [`Range::Full`].
    greatest: Option<Value>,
    /// The partitions to which rows may still be added after the last input row.
    rest: std::vec::IntoIter<usize>,
    goal: Option<Goal>,
    /// The input row to return after the rows that are being added.
    waiting: Option<PartitionedRow>,
    added: usize,
}

/// The partition to which rows are being added, and the value up to which rows are added.
struct Goal {
    partition: usize,
    end: Value,
    /// Whether a row is also added at the value `end`.
    is_included: bool,
}

impl Iterator for DensifiedRows<'_> {
    type Item = Result<Value>;

    fn next(&mut self) -> Option<Result<Value>> {
        loop {
            match self.add() {
                Ok(Some(row)) => return Some(Ok(row)),
                Ok(None) => {}
                Err(error) => return Some(Err(error)),
            }
            if let Some(keyed) = self.waiting.take() {
                return Some(self.pass(&keyed).map(|()| keyed.row));
            }
            match self.rows.next() {
                Some(PartitionedRow { value: None, row, .. }) => return Some(Ok(row)),
                Some(keyed) => {
                    self.goal = keyed.value.clone().map(|value| self.before(keyed.partition, value));
                    self.waiting = Some(keyed);
                }
                None => self.goal = self.completion(self.rest.as_slice().first().copied()?),
            }
            if self.waiting.is_none() {
                self.rest.next();
            }
        }
    }
}

impl DensifiedRows<'_> {
    /// Returns the next row to add, or `None` if there is no goal or all rows up to the goal have been added.
    fn add(&mut self) -> Result<Option<Value>> {
        let Some(goal) = &self.goal else { return Ok(None) };
        let partition = &mut self.partitions[goal.partition];
        let next = partition.next.clone().filter(|next| *next < goal.end || (goal.is_included && *next == goal.end));
        let Some(next) = next else {
            self.goal = None;
            return Ok(None);
        };
        self.run.query.tick()?;
        self.added += 1;
        if self.added > MAX_ADDED {
            let text = format!("$densify adds more than {MAX_ADDED} rows: choose a larger step or narrower bounds");
            return Err(Error::new(5_897_900, text));
        }
        partition.next = Some(after(&next, &self.densify.step)?);
        let mut row = Object::new();
        for (path, value) in self.densify.partition.iter().zip(&partition.key) {
            if let Some(value) = value {
                nested_fields::set(&mut row, path.segments(), value.clone());
            }
        }
        nested_fields::set(&mut row, self.densify.field.segments(), next);
        Ok(Some(row.into()))
    }

    /// Returns the goal up to which rows are added to a partition before an input row. `value` is the value of the
    /// input row. If the value of the partition's next added row is not set yet, sets this value to the start of the
    /// range. With [`Range::Partition`], the range starts at `value`.
    fn before(&mut self, partition: usize, value: Value) -> Goal {
        let start = match &self.densify.range {
            Range::Full => self.least.clone(),
            Range::Partition => Some(value.clone()),
            Range::Between(lower, _) => Some(lower.clone()),
        };
        let next = &mut self.partitions[partition].next;
        *next = next.take().or(start);
        let end = match &self.densify.range {
            Range::Between(_, upper) if *upper < value => upper.clone(),
            _ => value,
        };
        Goal { partition, end, is_included: false }
    }

    /// Records a row of the input, so that no row is added at the value of this row.
    fn pass(&mut self, keyed: &PartitionedRow) -> Result<()> {
        let next = &mut self.partitions[keyed.partition].next;
        if *next == keyed.value
            && let Some(value) = next
        {
            *next = Some(after(value, &self.densify.step)?);
        }
        Ok(())
    }

    /// Returns the partition, and the value up to which rows are added to the partition after the last input row.
    /// Returns `None` if no rows are added after the last input row.
    fn completion(&self, partition: usize) -> Option<Goal> {
        match &self.densify.range {
            Range::Full => self.greatest.clone().map(|end| Goal { partition, end, is_included: true }),
            Range::Partition => None,
            Range::Between(_, upper) => Some(Goal { partition, end: upper.clone(), is_included: false }),
        }
    }
}

/// Returns the value one step after a value.
fn after(value: &Value, step: &DensifyStep) -> Result<Value> {
    match (value, step) {
        (Value::Date(ms), DensifyStep::Time(amount, unit)) => add_units(*ms, *unit, *amount).map(Value::Date),
        (value, DensifyStep::Number(step)) => Ok(number::add(value, step)),
        (value, DensifyStep::Time(..)) => Ok(value.clone()),
    }
}
