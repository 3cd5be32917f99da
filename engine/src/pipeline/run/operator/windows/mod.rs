//! `$setWindowFields`: computes fields of a row from the rows around this row.
//!
//! The rows are gathered into partitions and sorted. Then the rows are returned, one partition after the other. A
//! function updates a data structure as its window moves, instead of reading the whole window for each row.
//!
//! The data structure depends on the function. Two stacks compute sums, deviations and merged objects, because these
//! results can be merged, but a value cannot be taken out again. A monotone deque finds extremes, a tree of ranks finds
//! medians and the first values in an order, and prefix sums compute areas. A sum keeps no rounding error of rows that
//! have left the window. `$fill` is translated into such windows and a `$set`. A filter on the partition key moves
//! before the stage.

mod computation;
mod ends;
mod extremes;
mod frames;
mod function;
mod integral;
mod moments;
mod partition;
mod ranks;
mod sets;
mod single_pass;
mod slide;
mod stacks;

use rustc_hash::FxHashMap;

use crate::model::value::Value;
use crate::pipeline::expression::window::Bounds;
use crate::pipeline::language::ast;
use crate::pipeline::run::rows::{Operator, RowOwner, Rows, RunContext};
use crate::pipeline::value::error::{Error, Result};
use crate::pipeline::value::memory::{self, measure, measure_all};
use crate::pipeline::value::sort_key::{SortKey, SortOrder};
use crate::pipeline::value::sorting::sorted;

use computation::Computation;
use frames::Frames;
use partition::{Keyed, WindowPartition};

/// The operator of `$setWindowFields`.
pub struct WindowsOperator {
    stage: ast::Windows,
    /// The order of the rows in a partition. Equal rows are in the order of their `_id`.
    order: Option<SortOrder>,
    /// The distinct bounds of the functions.
    bounds: Vec<Bounds>,
    /// The index in `bounds` for each function.
    bounds_of: Vec<usize>,
    owner: RowOwner,
}

impl WindowsOperator {
    pub fn new(stage: ast::Windows, owner: RowOwner) -> WindowsOperator {
        let sort = stage.sort.as_deref().filter(|keys| !keys.is_empty());
        let order = sort.map(|keys| SortOrder::then_by_id(keys.iter().map(|key| (&**key.path.text(), key.descending))));
        let mut bounds: Vec<Bounds> = Vec::new();
        let bounds_of = stage.outputs.iter().map(|output| {
            bounds.iter().position(|known| *known == output.bounds).unwrap_or_else(|| {
                bounds.push(output.bounds.clone());
                bounds.len() - 1
            })
        });
        let bounds_of = bounds_of.collect();
        WindowsOperator { stage, order, bounds, bounds_of, owner }
    }

    /// Gathers the rows of each partition, in the order of the partitions' keys.
    fn partitions(&self, input: Rows, run: RunContext) -> Result<Vec<Vec<Keyed>>> {
        let mut numbers: FxHashMap<Value, usize> = FxHashMap::default();
        let mut partitions: Vec<(Value, Vec<Keyed>)> = Vec::new();
        for row in input {
            let row = row?;
            let key = self.key(&row, run)?;
            let sort_key = match &self.order {
                Some(order) => order.key(&row)?,
                None => SortKey::new(),
            };
            self.owner.hold(&row, run.query)?;
            run.query.charge(size_of::<Keyed>() + size_of_val(sort_key.as_slice()))?;
            let number = match numbers.get(&key) {
                Some(number) => *number,
                None => {
                    memory::hold(&key, run.query)?;
                    partitions.push((key.clone(), Vec::new()));
                    numbers.insert(key, partitions.len() - 1);
                    partitions.len() - 1
                }
            };
            partitions[number].1.push((sort_key, row));
        }
        let partitions = sorted(partitions, run.query, |(key, _)| measure(key, run.query), |(a, _), (b, _)| a.cmp(b))?;
        Ok(partitions.into_iter().map(|(_, rows)| rows).collect())
    }

    /// Returns the key of a row's partition. A missing key counts as null.
    fn key(&self, row: &Value, run: RunContext) -> Result<Value> {
        let Some(expr) = &self.stage.partition else { return Ok(Value::Null) };
        match run.passing(|| expr.eval(&run.env(row)))? {
            Some(Value::Array(_)) => Err(Error::new(14, "Cannot 'partitionBy' an expression of type array")),
            Some(key) => {
                measure(&key, run.query)?;
                Ok(key)
            }
            None => Ok(Value::Null),
        }
    }

    /// Sorts the rows of a partition and prepares the functions.
    fn open_partition<'a>(&'a self, rows: Vec<Keyed>, run: RunContext<'a>) -> Result<CurrentPartition<'a>> {
        let before = run.query.remaining_bytes();
        let rows = match &self.order {
            Some(order) => {
                let weigh = |(key, _): &Keyed| measure_all(key.iter().flatten(), run.query);
                sorted(rows, run.query, weigh, |(a, _), (b, _)| order.compare(a, b))?
            }
            None => rows,
        };
        let partition = WindowPartition::new(rows, self.stage.sort_path.as_ref(), self.order.is_some(), run);
        let frames = self.bounds.iter().map(|bounds| Frames::new(bounds, &partition)).collect::<Result<_>>()?;
        let computations = self
            .stage
            .outputs
            .iter()
            .map(|output| function::computation(output, &partition))
            .collect::<Result<Vec<_>>>()?;
        let charged = before.saturating_sub(run.query.remaining_bytes());
        Ok(CurrentPartition { partition, frames, computations, next: 0, charged })
    }
}

impl Operator for WindowsOperator {
    fn open<'a>(&'a self, input: Rows<'a>, run: RunContext<'a>) -> Result<Rows<'a>> {
        let partitions = self.partitions(input, run)?.into_iter();
        Ok(Box::new(WindowRows { operator: self, run, partitions, current: None }))
    }

    fn is_blocking(&self) -> bool {
        true
    }
}

/// An iterator over the rows with their computed fields.
struct WindowRows<'a> {
    operator: &'a WindowsOperator,
    run: RunContext<'a>,
    partitions: std::vec::IntoIter<Vec<Keyed>>,
    current: Option<CurrentPartition<'a>>,
}

/// The partition whose rows are being returned.
struct CurrentPartition<'a> {
    partition: WindowPartition<'a>,
    frames: Vec<Frames>,
    computations: Vec<Box<dyn Computation<'a> + 'a>>,
    next: usize,
    /// The bytes that the query was charged for the functions of the partition.
    charged: usize,
}

impl Iterator for WindowRows<'_> {
    type Item = Result<Value>;

    fn next(&mut self) -> Option<Result<Value>> {
        loop {
            if let Some(current) = &mut self.current {
                if current.next < current.partition.len() {
                    return Some(current.row(self.operator));
                }
                self.run.query.give_back(current.charged);
                self.current = None;
            }
            match self.operator.open_partition(self.partitions.next()?, self.run) {
                Ok(current) => self.current = Some(current),
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

impl CurrentPartition<'_> {
    /// Returns the next row with its computed fields.
    fn row(&mut self, operator: &WindowsOperator) -> Result<Value> {
        let (index, run) = (self.next, self.partition.run);
        self.next += 1;
        let before = run.query.remaining_bytes();
        let mut frames = Vec::with_capacity(self.frames.len());
        for frame in &mut self.frames {
            frames.push(frame.of(index)?);
        }
        let mut values = Vec::with_capacity(self.computations.len());
        for (computation, bounds) in self.computations.iter_mut().zip(&operator.bounds_of) {
            run.query.tick()?;
            values.push(computation.value(index, frames[*bounds].clone(), &self.partition)?);
        }
        self.charged += before.saturating_sub(run.query.remaining_bytes());
        let env = run.env(&self.partition.rows[index]);
        let frame = env.frame(&values);
        run.passing(|| operator.stage.write.apply(&env.bind(&frame)))
    }
}
