//! The rows that a scan gives, found by columns: as masks, or made into rows one by one.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::filter::{Predicate, paths};
use crate::model::value::Value;
use crate::pipeline::column::Mask;
use crate::pipeline::column::SEGMENT;
use crate::pipeline::expression::filter::Filter;
use crate::pipeline::source::table::Columns;
use crate::pipeline::value::context::Context;
use crate::pipeline::value::error::Result;

/// What is known of a scan's filter before there are columns.
#[derive(Debug, Default)]
pub struct Selects {
    conjuncts: Vec<Filter>,
    limit: Option<u64>,
}

/// A scan's filter over the columns of one table.
pub struct Selection<'a> {
    pub columns: &'a dyn Columns,
    query: &'a Context<'a>,
    predicates: Vec<Predicate<'a>>,
    /// What is asked of the rows that are left, one by one.
    residual: Vec<Residual<'a>>,
    limit: Option<u64>,
}

/// A filter that is asked of single rows.
enum Residual<'a> {
    /// Of their cells.
    Cells(Predicate<'a>),
    /// Of the rows themselves, made with the fields that it reads.
    Row(&'a Filter, Option<BTreeSet<Arc<str>>>),
}

impl Selects {
    pub fn new(filter: Option<&Filter>, limit: Option<u64>) -> Selects {
        Selects { conjuncts: filter.map(Filter::conjuncts).unwrap_or_default(), limit }
    }

    /// The paths that the filter wants columns of.
    pub fn paths(&self) -> BTreeSet<Arc<str>> {
        let mut wanted = BTreeSet::new();
        for conjunct in &self.conjuncts {
            let mut found = Vec::new();
            if paths(conjunct.node(), &mut |path| found.push(Arc::from(path))) {
                wanted.extend(found);
            }
        }
        wanted
    }

    /// `None` where columns would not help: no part of the filter can be asked of them, and nobody else needs them.
    pub fn bind<'a>(&'a self, columns: &'a dyn Columns, query: &'a Context<'a>) -> Result<Selection<'a>> {
        let mut selection =
            Selection { columns, query, predicates: Vec::new(), residual: Vec::new(), limit: self.limit };
        for conjunct in &self.conjuncts {
            match Predicate::of_filter(conjunct, columns, query)? {
                Some(predicate) if Predicate::is_of_rows(conjunct) => {
                    selection.residual.push(Residual::Cells(predicate));
                }
                Some(predicate) => selection.predicates.push(predicate),
                None => selection.residual.push(Residual::Row(conjunct, conjunct.fields())),
            }
        }
        Ok(selection)
    }
}

impl<'a> Selection<'a> {
    /// Whether columns spare any row.
    pub fn is_useful(&self) -> bool {
        let by_cells = |residual: &Residual| matches!(residual, Residual::Cells(_));
        !self.predicates.is_empty() || self.residual.iter().any(by_cells)
    }

    /// Whether the scan gives no more than some of the rows that it selects.
    pub fn is_limited(&self) -> bool {
        self.limit.is_some()
    }

    pub fn segments(&self) -> usize {
        self.columns.count().div_ceil(SEGMENT)
    }

    /// The rows of a segment that are selected.
    pub fn mask(&self, segment: usize) -> Result<Mask> {
        let mut mask = self.candidates(segment)?;
        if !self.residual.is_empty() {
            let rows: Vec<u32> = mask.rows().collect();
            for row in rows {
                if !self.admits(segment * SEGMENT + row as usize)? {
                    mask.clear(row as usize);
                }
            }
        }
        Ok(mask)
    }

    /// The rows of a segment that columns select.
    fn candidates(&self, segment: usize) -> Result<Mask> {
        let len = self.columns.count().saturating_sub(segment * SEGMENT).min(SEGMENT);
        self.query.tick_many(len)?;
        let mut mask = Mask::all(len);
        self.columns.restrict(segment, &mut mask)?;
        for predicate in &self.predicates {
            if mask.is_empty() {
                break;
            }
            mask.and(&predicate.mask(segment, len, self.query)?);
        }
        Ok(mask)
    }

    fn admits(&self, row_index: usize) -> Result<bool> {
        for residual in &self.residual {
            self.query.tick()?;
            let holds = match residual {
                Residual::Cells(predicate) => predicate.holds(row_index, self.query)?,
                Residual::Row(filter, fields) => match self.columns.part(row_index, fields.as_ref()) {
                    Some(row) => filter.matches_row(&row, self.query)?,
                    None => false,
                },
            };
            if !holds {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The rows selected; segments are looked at as they are needed. After an error comes none.
    pub fn rows(self) -> impl Iterator<Item = Result<Value>> + 'a {
        let limit = self.limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX);
        let mut walk = Walk { selection: self, segment: 0, waiting: Vec::new() };
        let rows = std::iter::from_fn(move || walk.next_row().transpose());
        rows.take(limit)
    }
}

/// A walk over the rows selected.
struct Walk<'a> {
    selection: Selection<'a>,
    /// The one whose rows come after those that wait.
    segment: usize,
    /// Last row first.
    waiting: Vec<u32>,
}

impl Walk<'_> {
    fn next_row(&mut self) -> Result<Option<Value>> {
        loop {
            let Some(row) = self.waiting.pop() else {
                if self.segment >= self.selection.segments() {
                    return Ok(None);
                }
                let segment = self.segment;
                self.segment += 1;
                self.selection.candidates(segment)?.write_rows(&mut self.waiting);
                self.waiting.reverse();
                continue;
            };
            let row_index = (self.segment - 1) * SEGMENT + row as usize;
            if self.selection.admits(row_index)?
                && let Some(row) = self.selection.columns.row(row_index)
            {
                return Ok(Some(row));
            }
        }
    }
}
