//! `$addToSet` and `$setUnion`: the distinct values of a moving window, in the order of their first appearance in the
//! window.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use rustc_hash::FxHashMap;

use super::ends::array_of;
use super::partition::{InputColumn, WindowPartition};
use super::slide::Slide;
use crate::model::value::Value;
use crate::pipeline::expression::expr::Expr;
use crate::pipeline::value::error::Result;
use crate::pipeline::value::memory::measure;

/// The place of a value: its row, and its index in the row's array.
type SetPlace = (usize, usize);

/// The approximate number of bytes that one place takes in a [`SetWindow`].
const PLACE_BYTES: usize = size_of::<(SetPlace, Value)>() * 2;

/// The window functions `$addToSet` and `$setUnion` over one partition.
pub struct SetWindow<'a> {
    column: InputColumn<'a>,
    is_of_items: bool,
    /// For each value, the places at which the value occurs in the window, in ascending order.
    places: FxHashMap<Value, VecDeque<SetPlace>>,
    /// The distinct values in the window. The key of a value is the first place of the value in the window.
    first: BTreeMap<SetPlace, Value>,
}

impl<'a> SetWindow<'a> {
    /// Creates an empty set. The set collects the values of `input` or, with `is_of_items`, the items of these values,
    /// which must be arrays.
    pub fn new(input: &'a Expr, is_of_items: bool, partition: &WindowPartition) -> Result<SetWindow<'a>> {
        let column = InputColumn::new(input, partition)?;
        Ok(SetWindow { column, is_of_items, places: FxHashMap::default(), first: BTreeMap::new() })
    }

    fn items(&mut self, row: usize, partition: &WindowPartition) -> Result<Option<Value>> {
        let Some(value) = self.column.get(row, partition)?.cloned() else { return Ok(None) };
        if self.is_of_items {
            array_of("$setUnion", &value)?;
            return Ok(Some(value));
        }
        Ok(Some(vec![value].into()))
    }
}

impl Slide for SetWindow<'_> {
    fn add(&mut self, row: usize, partition: &WindowPartition) -> Result<()> {
        let Some(items) = self.items(row, partition)? else { return Ok(()) };
        for (index, item) in items.as_array().unwrap_or_default().iter().enumerate() {
            partition.run.query.tick()?;
            measure(item, partition.run.query)?;
            partition.run.query.charge(PLACE_BYTES)?;
            let place = (row, index);
            let places = self.places.entry(item.clone()).or_default();
            if places.is_empty() {
                self.first.insert(place, item.clone());
            }
            places.push_back(place);
        }
        Ok(())
    }

    fn remove(&mut self, row: usize, partition: &WindowPartition) -> Result<()> {
        let Some(items) = self.items(row, partition)? else { return Ok(()) };
        for (index, item) in items.as_array().unwrap_or_default().iter().enumerate() {
            partition.run.query.tick()?;
            measure(item, partition.run.query)?;
            let Some(places) = self.places.get_mut(item) else { continue };
            partition.run.query.give_back(PLACE_BYTES);
            places.pop_front();
            // Equal values can differ in type, such as 1 and 1.0. The set contains the value that appears first in the
            // window.
            self.first.remove(&(row, index));
            match places.front() {
                Some((row, index)) => {
                    let first = match self.column.get(*row, partition)? {
                        Some(Value::Array(items)) if self.is_of_items => items.get(*index).cloned(),
                        value => value.cloned(),
                    };
                    self.first.insert((*row, *index), first.unwrap_or_default());
                }
                None => {
                    self.places.remove(item);
                }
            }
        }
        Ok(())
    }

    fn value(&mut self, _frame: Range<usize>, partition: &WindowPartition) -> Result<Option<Value>> {
        partition.run.query.tick_many(self.first.len())?;
        partition.check_bytes(self.first.len() * size_of::<Value>())?;
        Ok(Some(self.first.values().cloned().collect::<Vec<_>>().into()))
    }
}
