//! The foreign side of a `$lookup` over columns: finds the rows that have a given value at a path.

use std::sync::Arc;

use super::filter::ColumnTest;
use super::select::RowSelection;
use crate::model::value::Value;
use crate::pipeline::column::{Cells, Column, Mask, SEGMENT, TextCode};
use crate::pipeline::expression::filter::{MemberSet, Test};
use crate::pipeline::value::context::Context;
use crate::pipeline::value::error::Result;

/// The number of lookups that scan a column of strings. For later lookups of strings, an index of the whole column is
/// cheaper. Other lookups always scan the column.
const MAX_SCANS: usize = 4;
const NO_ROW: u32 = u32::MAX;

/// A probe, which finds the rows of a table by their value at a path.
pub struct RowProbe<'a> {
    selection: RowSelection<'a>,
    column: &'a Column,
    /// The selected rows of each segment.
    masks: Vec<Mask>,
    requests: usize,
    /// The index of the column, built after [`MAX_SCANS`] lookups.
    index: Option<RowIndex>,
}

/// An index of the rows by their string in the column. The rows with the same string form a chain.
struct RowIndex {
    /// The first row of each string, by the code of the string.
    first: Vec<u32>,
    /// For each row, the next row with the same string.
    next: Vec<u32>,
}

impl<'a> RowProbe<'a> {
    /// Creates a probe. Returns `None` if there is no column for the path, if the column cannot provide all values, or
    /// if the scan has a limit.
    pub fn new(selection: RowSelection<'a>, path: &str) -> Result<Option<RowProbe<'a>>> {
        let Some(column) = selection.columns.column(path).filter(|column| column.is_clear()) else { return Ok(None) };
        if selection.is_limited() {
            return Ok(None);
        }
        let masks = (0..selection.segments()).map(|segment| selection.mask(segment)).collect::<Result<_>>()?;
        Ok(Some(RowProbe { selection, column, masks, requests: 0, index: None }))
    }

    /// Counts one call of [`rows`](RowProbe::rows). After [`MAX_SCANS`] calls, builds an index if the column contains
    /// only strings, and charges the query for the index.
    pub fn count_request(&mut self, query: &Context) -> Result<()> {
        self.requests += 1;
        if self.index.is_none() && self.requests > MAX_SCANS && self.is_of_texts() {
            self.index = Some(self.make_index(query)?);
        }
        Ok(())
    }

    /// Returns, in row order, the rows whose value at the path equals any of the values, or is an array that contains
    /// any of the values. Null also matches rows without a value.
    pub fn rows(&self, values: Vec<Value>, query: &Context) -> Result<impl Iterator<Item = Value> + '_> {
        let code = |value: &Value| self.column.texts().code(value.as_str()?);
        let codes = || values.iter().map(code).collect::<Option<Vec<_>>>();
        let row_indices = match self.index.as_ref().and_then(|index| Some((index, codes()?))) {
            Some((index, codes)) => index.rows(codes, query)?,
            None => self.found(values, query)?,
        };
        Ok(row_indices.into_iter().filter_map(|row_index| self.selection.columns.row(row_index)))
    }

    fn found(&self, values: Vec<Value>, query: &Context) -> Result<Vec<usize>> {
        let test = Test::In(Arc::new(MemberSet::new(values)));
        let column_test = ColumnTest::new(self.column, &test, query)?;
        let mut row_indices = Vec::new();
        for (number, (segment, selected)) in self.column.segments().iter().zip(&self.masks).enumerate() {
            query.tick_many(segment.len())?;
            let mut mask = column_test.mask(segment, query)?;
            mask.and(selected);
            query.charge(mask.count() * size_of::<usize>())?;
            row_indices.extend(mask.rows().map(|row| number * SEGMENT + row as usize));
        }
        Ok(row_indices)
    }

    /// Returns whether every segment contains strings or no values at all.
    fn is_of_texts(&self) -> bool {
        self.column.segments().iter().all(|segment| matches!(segment.cells(), Cells::Texts(_) | Cells::Empty))
    }

    fn make_index(&self, query: &Context) -> Result<RowIndex> {
        let segments = self.column.segments();
        let rows = segments.len() * SEGMENT;
        query.charge((rows + self.column.texts().len()) * size_of::<u32>())?;
        let mut index = RowIndex { first: vec![NO_ROW; self.column.texts().len()], next: vec![NO_ROW; rows] };
        for (number, (segment, selected)) in segments.iter().zip(&self.masks).enumerate().rev() {
            query.tick_many(segment.len())?;
            let Cells::Texts(cells) = segment.cells() else { continue };
            let mut rows = Vec::new();
            selected.write_rows(&mut rows);
            for row in rows.into_iter().rev() {
                let code = cells.get(row as usize).and_then(|code| code.index());
                let Some(first) = code.and_then(|code| index.first.get_mut(code)) else { continue };
                let row_index = (number * SEGMENT) as u32 + row;
                index.next[row_index as usize] = std::mem::replace(first, row_index);
            }
        }
        Ok(index)
    }
}

impl RowIndex {
    /// Returns the indexes of the rows that contain any of the strings, in ascending order.
    fn rows(&self, codes: Vec<TextCode>, query: &Context) -> Result<Vec<usize>> {
        let mut codes: Vec<usize> = codes.into_iter().filter_map(TextCode::index).collect();
        codes.sort_unstable();
        codes.dedup();
        let mut row_indices = Vec::new();
        for code in codes {
            let mut row_index = self.first.get(code).copied().unwrap_or(NO_ROW);
            while row_index != NO_ROW {
                query.tick()?;
                query.charge(size_of::<usize>())?;
                row_indices.push(row_index as usize);
                row_index = self.next.get(row_index as usize).copied().unwrap_or(NO_ROW);
            }
        }
        row_indices.sort_unstable();
        Ok(row_indices)
    }
}
