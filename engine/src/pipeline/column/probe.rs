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
use rustc_hash::FxHashMap;

/// Rows that are asked for one after the other, until an index of the whole column is cheaper.
const SINGLE: usize = 32;

/// Rows of a table by what they hold at a path.
pub struct Probe<'a> {
    selection: Selection<'a>,
    column: &'a Column,
    /// The rows selected, by segment.
    masks: Vec<Mask>,
    asked: usize,
    /// Places by text, once many were asked for.
    index: Option<FxHashMap<u32, Vec<u32>>>,
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
        if self.index.is_none() {
            let mut index: FxHashMap<u32, Vec<u32>> = FxHashMap::default();
            for (number, (segment, selected)) in self.column.segments().iter().zip(&self.masks).enumerate() {
                query.tick_many(segment.len())?;
                let Cells::Texts(cells) = segment.cells() else { continue };
                for row in selected.rows() {
                    let place = (number * SEGMENT) as u32 + row;
                    index.entry(cells[row as usize]).or_default().push(place);
                }
                query.charge(selected.count() * size_of::<(u32, Vec<u32>)>())?;
            }
            self.index = Some(index);
        }
        let found = self.index.iter().flat_map(|index| codes.iter().filter_map(|code| index.get(code)));
        let mut places: Vec<usize> = found.flatten().map(|place| *place as usize).collect();
        places.sort_unstable();
        places.dedup();
        Ok(places)
    }
}
