//! `$unwind` over a column: repeats each row for the items of its array, and lists the items.

use super::keys::InputValues;
use crate::model::value::Value;
use crate::pipeline::column::{CellKind, Cells, Column, Segment, TextCode};
use crate::pipeline::value::context::Context;
use crate::pipeline::value::error::Result;
use crate::pipeline::value::path::FieldPath;

/// The rows of one segment after `$unwind`.
#[derive(Default)]
pub struct UnwoundSegment {
    pub rows: Vec<u32>,
    codes: Vec<TextCode>,
    values: Vec<Option<Value>>,
    are_texts: bool,
}

impl UnwoundSegment {
    /// Unwinds the rows of a segment. `preserve` keeps rows without items.
    pub fn fill(&mut self, column: &Column, segment: &Segment, rows: &[u32], preserve: bool) {
        self.rows.clear();
        self.codes.clear();
        self.values.clear();
        self.are_texts = !preserve && matches!(segment.cells(), Cells::Lists(_));
        match segment.cells() {
            Cells::Lists(lists) if self.are_texts => {
                for row in rows {
                    // Null and missing cells hold an empty list.
                    let codes = lists.get(*row as usize);
                    self.rows.extend(std::iter::repeat_n(*row, codes.len()));
                    self.codes.extend_from_slice(codes);
                }
            }
            _ => rows.iter().for_each(|row| self.unwind(column, segment, *row, preserve)),
        }
    }

    fn unwind(&mut self, column: &Column, segment: &Segment, row: u32, preserve: bool) {
        let value = match segment.kind(row as usize) {
            CellKind::Value | CellKind::Int => segment.value(row as usize, column.texts()),
            CellKind::Null => Some(Value::Null),
            CellKind::Missing | CellKind::Opaque => None,
        };
        match value {
            Some(Value::Array(items)) if !items.is_empty() => {
                self.rows.extend(std::iter::repeat_n(row, items.len()));
                self.values.extend(items.iter().cloned().map(Some));
            }
            // With `preserve`, a row with an empty array is kept without an item.
            Some(Value::Array(_)) if preserve => self.push(row, None),
            None | Some(Value::Null) if preserve => self.push(row, value),
            None | Some(Value::Null | Value::Array(_)) => {}
            Some(scalar) => self.push(row, Some(scalar)),
        }
    }

    fn push(&mut self, row: u32, value: Option<Value>) {
        self.rows.push(row);
        self.values.push(value);
    }

    /// Returns the items, one for each row.
    pub fn items(&self) -> InputValues<'_> {
        if self.are_texts { InputValues::Codes(&self.codes) } else { InputValues::Values(&self.values) }
    }

    /// Returns the value that a path reads in each of the items. Charges the query for the arrays that the path builds.
    pub fn read(&self, path: &FieldPath, query: &Context) -> Result<Vec<Option<Value>>> {
        if self.are_texts {
            // A string has no value at a path.
            return Ok(vec![None; self.codes.len()]);
        }
        let read = |item: &Option<Value>| item.as_ref().map_or(Ok(None), |item| path.eval(item, query));
        self.values.iter().map(read).collect()
    }
}
