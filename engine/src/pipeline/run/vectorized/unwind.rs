//! `$unwind` over a column: lists each row once for each item of the row's array, together with the item.

use super::keys::InputValues;
use crate::model::value::Value;
use crate::pipeline::column::{CellKind, Cells, Column, Segment, TextCode};
use crate::pipeline::value::context::Context;
use crate::pipeline::value::error::Result;
use crate::pipeline::value::path::FieldPath;

/// The number of bytes that the index of a row and its item take in an [`UnwoundSegment`].
const ITEM_BYTES: usize = size_of::<(u32, Option<Value>)>();

/// The rows of one segment after `$unwind`.
#[derive(Default)]
pub struct UnwoundSegment {
    pub rows: Vec<u32>,
    codes: Vec<TextCode>,
    values: Vec<Option<Value>>,
    are_texts: bool,
    /// The number of bytes that the query is charged for the rows and the items.
    bytes: usize,
}

impl UnwoundSegment {
    /// Unwinds rows of a segment. The result replaces the rows that the previous call has unwound. If `preserve` is
    /// set, the result also contains the rows without items.
    pub fn fill(
        &mut self,
        column: &Column,
        segment: &Segment,
        (rows, preserve): (&[u32], bool),
        query: &Context,
    ) -> Result<()> {
        self.clear(query);
        self.are_texts = !preserve && matches!(segment.cells(), Cells::Lists(_));
        match segment.cells() {
            Cells::Lists(lists) if self.are_texts => {
                for row in rows {
                    // Null and missing cells contain an empty list.
                    let codes = lists.get(*row as usize);
                    self.charge(codes.len() * size_of::<(u32, TextCode)>(), query)?;
                    self.rows.extend(std::iter::repeat_n(*row, codes.len()));
                    self.codes.extend_from_slice(codes);
                }
            }
            _ => {
                for row in rows {
                    self.unwind(column, segment, (*row, preserve), query)?;
                }
            }
        }
        Ok(())
    }

    fn charge(&mut self, bytes: usize, query: &Context) -> Result<()> {
        self.bytes += bytes;
        query.tick()?;
        query.charge(bytes)
    }

    /// Drops the rows, and cancels the charges for the rows.
    pub fn clear(&mut self, query: &Context) {
        query.give_back(std::mem::take(&mut self.bytes));
        self.rows.clear();
        self.codes.clear();
        self.values.clear();
    }

    fn unwind(
        &mut self,
        column: &Column,
        segment: &Segment,
        (row, preserve): (u32, bool),
        query: &Context,
    ) -> Result<()> {
        let value = match segment.kind(row as usize) {
            CellKind::Value | CellKind::Int => segment.value(row as usize, column.texts()),
            CellKind::Null => Some(Value::Null),
            CellKind::Missing | CellKind::Opaque => None,
        };
        let items = match &value {
            Some(Value::Array(items)) if !items.is_empty() => items.as_slice(),
            // With `preserve`, a row with an empty array is kept without an item.
            Some(Value::Array(_)) | None if preserve => return self.push(row, None, query),
            Some(Value::Null) if !preserve => return Ok(()),
            Some(Value::Array(_)) | None => return Ok(()),
            Some(_) => return self.push(row, value, query),
        };
        self.charge(items.len() * ITEM_BYTES, query)?;
        self.rows.extend(std::iter::repeat_n(row, items.len()));
        self.values.extend(items.iter().cloned().map(Some));
        Ok(())
    }

    fn push(&mut self, row: u32, value: Option<Value>, query: &Context) -> Result<()> {
        self.charge(ITEM_BYTES, query)?;
        self.rows.push(row);
        self.values.push(value);
        Ok(())
    }

    /// Returns the items, one for each row.
    pub fn items(&self) -> InputValues<'_> {
        if self.are_texts { InputValues::Codes(&self.codes) } else { InputValues::Values(&self.values) }
    }

    /// Returns the value at a path in each item. Charges the query for the arrays that the path builds.
    pub fn read(&self, path: &FieldPath, query: &Context) -> Result<Vec<Option<Value>>> {
        if self.are_texts {
            // A string has no value at a path.
            return Ok(vec![None; self.codes.len()]);
        }
        let read = |item: &Option<Value>| {
            query.tick()?;
            item.as_ref().map_or(Ok(None), |item| path.eval(item, query))
        };
        self.values.iter().map(read).collect()
    }
}
