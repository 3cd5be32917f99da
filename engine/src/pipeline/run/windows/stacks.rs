//! Two stacks that merge the values of a moving window and never subtract a value from a result.
//!
//! One stack receives the values that enter the window. The other stack contains the values that leave the window next,
//! each merged with the later values of this stack. Each value is merged a constant number of times, and a sum keeps no
//! rounding error of values that have left.
//!
//! Source: Tangwongsan, Hirzel, Schneider, "In-order sliding-window aggregation in worst-case constant time"
//! (<https://arxiv.org/abs/2009.13768>).

use std::ops::Range;
use std::sync::Arc;

use super::partition::{InputColumn, WindowPartition};
use super::slide::Slide;
use crate::model::excerpt::excerpt;
use crate::model::value::{Object, Value};
use crate::pipeline::expression::expr::Expr;
use crate::pipeline::value::context::Context;
use crate::pipeline::value::error::{Result, err};
use crate::pipeline::value::sum::Sum;

/// Values that can be merged in the order of their rows.
pub trait Merge: Clone + Default {
    /// Merges the values of later rows into this value.
    fn merge(&mut self, later: &Self, query: &Context) -> Result<()>;

    /// Returns the approximate number of bytes on the heap that the value does not share with `other`.
    fn bytes_beside(&self, _other: &Self) -> usize {
        0
    }
}

/// The merged values of a window.
pub struct TwoStacks<T> {
    /// The first rows of the window, in descending order, so the first row of the window is the last entry. Each entry
    /// contains a merged value, and the number of bytes that the query is charged for the merged value. The merged
    /// value of a row combines the row's value with the values of all later rows in `front`.
    front: Vec<(T, usize)>,
    back: Vec<T>,
    /// If rows leave the window, the merged values of `back`. Otherwise, `back` is empty, and `total` contains the
    /// merged values of all rows in the window.
    total: T,
    /// The number of bytes that the query is charged for `total`.
    total_bytes: usize,
    /// Whether `back` keeps values. `false` if no row ever leaves the window.
    keeps: bool,
}

impl<T: Merge> TwoStacks<T> {
    /// Creates the stacks of an empty window. If `keeps` is `false`, only the merged value of all rows is kept, so no
    /// row can leave the window.
    pub fn new(keeps: bool, partition: &WindowPartition) -> Result<TwoStacks<T>> {
        if keeps {
            partition.run.query.charge(partition.len() * size_of::<(T, usize)>())?;
        }
        Ok(TwoStacks { front: Vec::new(), back: Vec::new(), total: T::default(), total_bytes: 0, keeps })
    }

    pub fn push(&mut self, value: T, query: &Context) -> Result<()> {
        self.total.merge(&value, query)?;
        let bytes = self.total.bytes_beside(&value);
        query.charge(bytes)?;
        query.give_back(std::mem::replace(&mut self.total_bytes, bytes));
        if self.keeps {
            self.back.push(value);
        }
        Ok(())
    }

    /// Removes the value of the first row.
    pub fn pop(&mut self, query: &Context) -> Result<()> {
        if self.front.is_empty() {
            let mut merged = T::default();
            while let Some(mut value) = self.back.pop() {
                query.tick()?;
                value.merge(&merged, query)?;
                let bytes = value.bytes_beside(&merged);
                query.charge(bytes)?;
                merged = value.clone();
                self.front.push((value, bytes));
            }
            self.total = T::default();
            query.give_back(std::mem::take(&mut self.total_bytes));
        }
        query.give_back(self.front.pop().map_or(0, |(_, bytes)| bytes));
        Ok(())
    }

    /// Returns the merged values of all rows.
    pub fn total(&self, query: &Context) -> Result<T> {
        match self.front.last() {
            Some((front, _)) => {
                let mut total = front.clone();
                total.merge(&self.total, query)?;
                Ok(total)
            }
            None => Ok(self.total.clone()),
        }
    }
}

/// A sum, with the number of its summands.
#[derive(Clone, Default)]
struct SumTotal {
    sum: Sum,
    count: u64,
}

impl Merge for SumTotal {
    fn merge(&mut self, later: &SumTotal, _query: &Context) -> Result<()> {
        self.sum.merge(&later.sum);
        self.count += later.count;
        Ok(())
    }
}

/// The window functions `$sum` and `$avg`.
pub struct SumWindow<'a> {
    column: InputColumn<'a>,
    total: WindowTotal,
    is_average: bool,
}

/// The sum of the values in the window.
enum WindowTotal {
    /// The sum of integers, from which the integers that leave the window are subtracted exactly.
    Ints(SumTotal),
    Stacks(TwoStacks<SumTotal>),
}

impl<'a> SumWindow<'a> {
    pub fn new(input: &'a Expr, is_average: bool, keeps: bool, partition: &WindowPartition) -> Result<SumWindow<'a>> {
        let column = InputColumn::new(input, partition)?;
        let total = match column.ints() {
            Some(_) => WindowTotal::Ints(SumTotal::default()),
            None => WindowTotal::Stacks(TwoStacks::new(keeps, partition)?),
        };
        Ok(SumWindow { column, total, is_average })
    }
}

impl Slide for SumWindow<'_> {
    fn add(&mut self, row: usize, partition: &WindowPartition) -> Result<()> {
        let mut added = SumTotal::default();
        if let Some(number) = self.column.number(row, partition)? {
            added.sum.take(number);
            added.count = 1;
        }
        match &mut self.total {
            WindowTotal::Ints(total) => total.merge(&added, partition.run.query),
            WindowTotal::Stacks(stacks) => stacks.push(added, partition.run.query),
        }
    }

    fn remove(&mut self, row: usize, partition: &WindowPartition) -> Result<()> {
        match &mut self.total {
            WindowTotal::Ints(total) => {
                total.sum.remove_int(self.column.ints().map_or(0, |ints| ints[row]));
                total.count -= 1;
                Ok(())
            }
            WindowTotal::Stacks(stacks) => stacks.pop(partition.run.query),
        }
    }

    fn value(&mut self, _frame: Range<usize>, partition: &WindowPartition) -> Result<Option<Value>> {
        let total = match &self.total {
            WindowTotal::Ints(total) => total.clone(),
            WindowTotal::Stacks(stacks) => stacks.total(partition.run.query)?,
        };
        Ok(Some(if self.is_average { total.sum.average(total.count) } else { total.sum.total() }))
    }
}

/// The approximate number of bytes that a field takes in a merged object.
const FIELD_BYTES: usize = 48;

/// The result of merging objects. `None` if no object was merged.
#[derive(Clone, Default)]
struct MergedFields(Option<Arc<Object>>);

impl Merge for MergedFields {
    fn merge(&mut self, later: &MergedFields, query: &Context) -> Result<()> {
        match (&mut self.0, &later.0) {
            (_, None) => {}
            (own @ None, Some(later)) => *own = Some(later.clone()),
            (Some(own), Some(later)) => {
                query.tick_many(own.len() + later.len())?;
                // The caller charges the query for the merged object.
                let bytes = (own.len() + later.len()) * FIELD_BYTES;
                query.charge(bytes)?;
                query.give_back(bytes);
                let own = Arc::make_mut(own);
                let mut index = crate::model::object::FieldIndex::default();
                later.iter().for_each(|(name, value)| index.insert(own, name.clone(), value.clone()));
            }
        }
        Ok(())
    }

    fn bytes_beside(&self, other: &MergedFields) -> usize {
        match (&self.0, &other.0) {
            (None, _) => 0,
            (Some(own), Some(other)) if Arc::ptr_eq(own, other) => 0,
            (Some(own), _) => own.len() * FIELD_BYTES,
        }
    }
}

/// The window function `$mergeObjects`.
pub struct MergeObjectsWindow<'a> {
    column: InputColumn<'a>,
    stacks: TwoStacks<MergedFields>,
}

impl<'a> MergeObjectsWindow<'a> {
    pub fn new(input: &'a Expr, keeps: bool, partition: &WindowPartition) -> Result<MergeObjectsWindow<'a>> {
        Ok(MergeObjectsWindow {
            column: InputColumn::new(input, partition)?,
            stacks: TwoStacks::new(keeps, partition)?,
        })
    }
}

impl Slide for MergeObjectsWindow<'_> {
    fn add(&mut self, row: usize, partition: &WindowPartition) -> Result<()> {
        let fields = match self.column.get(row, partition)? {
            None | Some(Value::Null) => MergedFields(None),
            Some(Value::Object(object)) => MergedFields(Some(object.clone())),
            Some(other) => {
                let (shown, found) = (excerpt(other), other.type_name());
                return err!(40400, "$mergeObjects requires object inputs, but input {shown} is of type {found}");
            }
        };
        self.stacks.push(fields, partition.run.query)
    }

    fn remove(&mut self, _row: usize, partition: &WindowPartition) -> Result<()> {
        self.stacks.pop(partition.run.query)
    }

    fn value(&mut self, _frame: Range<usize>, partition: &WindowPartition) -> Result<Option<Value>> {
        let object = self.stacks.total(partition.run.query)?.0.unwrap_or_default();
        Ok(Some(Value::Object(object)))
    }
}
