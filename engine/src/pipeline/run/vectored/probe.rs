//! The other side of a `$lookup`, asked by column for the rows that hold a value.

use std::sync::Arc;

use super::filter::Asked;
use super::mask::Mask;
use super::segment::Cells;
use super::select::Selection;
use super::{Column, SEGMENT};
use crate::model::value::Value;
use crate::pipeline::context::Context;
use crate::pipeline::error::Result;
use crate::pipeline::filter::{Members, Test};

/// Rows that are asked for one after the other, until an index of the whole column is cheaper.
const SINGLE: usize = 4;
const NONE: u32 = u32::MAX;

/// Rows of a table by what they hold at a path.
pub struct Probe<'a> {
    selection: Selection<'a>,
    column: &'a Column,
    /// The rows selected, by segment.
    masks: Vec<Mask>,
    asked: usize,
    /// Once many were asked for.
    index: Option<Index>,
}

/// The rows that hold each text, as chains of places.
struct Index {
    /// The first place by the text's number.
    first: Vec<u32>,
    /// The next place with the same text.
    next: Vec<u32>,
}

impl<'a> Probe<'a> {
    /// `None` where no column of the path is kept, or it cannot tell.
    pub fn new(selection: Selection<'a>, path: &str) -> Result<Option<Probe<'a>>> {
        let Some(column) = selection.columns.column(path).filter(|column| column.is_clear()) else { return Ok(None) };
        if selection.is_limited() {
            return Ok(None);
        }
        let masks = (0..selection.segments()).map(|segment| selection.mask(segment)).collect::<Result<_>>()?;
        Ok(Some(Probe { selection, column, masks, asked: 0, index: None }))
    }

    /// The rows that hold one of the values, in order; null asks for those without one, too.
    pub fn rows(&mut self, values: Vec<Value>, query: &Context) -> Result<Vec<Value>> {
        self.asked += 1;
        let texts: Option<Vec<u32>> = match self.asked > SINGLE && self.is_of_texts() {
            true => values.iter().map(|value| self.column.texts().code(value.as_str()?)).collect(),
            false => None,
        };
        let places = match texts {
            Some(codes) => self.indexed(&codes, query)?,
            None => self.found(values, query)?,
        };
        let rows = places.into_iter().filter_map(|place| self.selection.columns.row(place));
        Ok(rows.collect())
    }

    fn found(&self, values: Vec<Value>, query: &Context) -> Result<Vec<usize>> {
        let test = Test::In(Arc::new(Members::new(values)));
        let asked = Asked::new(self.column, &test, query)?;
        let mut places = Vec::new();
        for (number, (segment, selected)) in self.column.segments().iter().zip(&self.masks).enumerate() {
            query.tick_many(segment.len())?;
            let mut mask = asked.mask(segment, query)?;
            mask.and(selected);
            places.extend(mask.rows().map(|row| number * SEGMENT + row as usize));
        }
        Ok(places)
    }

    /// Whether every segment holds texts or nothing.
    fn is_of_texts(&self) -> bool {
        self.column.segments().iter().all(|segment| matches!(segment.cells(), Cells::Texts(_) | Cells::Empty))
    }

    fn indexed(&mut self, codes: &[u32], query: &Context) -> Result<Vec<usize>> {
        let index = match &self.index {
            Some(index) => index,
            None => {
                let index = self.make_index(query)?;
                self.index.insert(index)
            }
        };
        let mut places = Vec::new();
        for code in codes {
            let mut place = index.first.get(*code as usize).copied().unwrap_or(NONE);
            while place != NONE {
                places.push(place as usize);
                place = index.next.get(place as usize).copied().unwrap_or(NONE);
            }
        }
        places.sort_unstable();
        places.dedup();
        Ok(places)
    }

    fn make_index(&self, query: &Context) -> Result<Index> {
        let segments = self.column.segments();
        let rows = segments.len() * SEGMENT;
        query.charge((rows + self.column.texts().len()) * size_of::<u32>())?;
        let mut index = Index { first: vec![NONE; self.column.texts().len()], next: vec![NONE; rows] };
        for (number, (segment, selected)) in segments.iter().zip(&self.masks).enumerate().rev() {
            query.tick_many(segment.len())?;
            let Cells::Texts(cells) = segment.cells() else { continue };
            let mut rows = Vec::new();
            selected.write_rows(&mut rows);
            for row in rows.into_iter().rev() {
                // What is null or missing has no text's number.
                let Some(first) = index.first.get_mut(cells[row as usize] as usize) else { continue };
                let place = (number * SEGMENT) as u32 + row;
                index.next[place as usize] = std::mem::replace(first, place);
            }
        }
        Ok(index)
    }
}
