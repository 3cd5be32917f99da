//! Selects the rows that match the filter of a scan. The filter is evaluated on columns where possible. The result is a
//! mask for each segment, or an iterator over the rows.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::filter::{Predicate, is_costly, paths};
use crate::model::value::Value;
use crate::pipeline::column::{Mask, SEGMENT};
use crate::pipeline::expression::filter::Filter;
use crate::pipeline::source::table::Columns;
use crate::pipeline::value::context::Context;
use crate::pipeline::value::error::Result;

/// A scan's filter before it is bound to columns.
#[derive(Debug, Default)]
pub struct Selects {
    conjuncts: Vec<Filter>,
    limit: Option<u64>,
}

/// A scan's filter bound to the columns of a table.
pub struct RowSelection<'a> {
    pub columns: &'a dyn Columns,
    query: &'a Context<'a>,
    predicates: Vec<Predicate<'a>>,
    /// The conditions that are evaluated row by row, for the rows that satisfy the predicates.
    residual: Vec<ResidualCondition<'a>>,
    limit: Option<u64>,
}

/// A condition that is evaluated row by row.
enum ResidualCondition<'a> {
    /// A condition on the cells of a row.
    Cells(Predicate<'a>),
    /// A condition on the row itself. The row is built with the fields that the condition reads.
    Row(&'a Filter, Option<BTreeSet<Arc<str>>>),
}

impl Selects {
    pub fn new(filter: Option<&Filter>, limit: Option<u64>) -> Selects {
        Selects { conjuncts: filter.map(Filter::conjuncts).unwrap_or_default(), limit }
    }

    /// Returns the paths whose columns the filter can use.
    pub fn paths(&self) -> BTreeSet<Arc<str>> {
        let mut column_paths = BTreeSet::new();
        for conjunct in &self.conjuncts {
            let mut found = Vec::new();
            if paths(conjunct.node(), &mut |path| found.push(Arc::from(path))) {
                column_paths.extend(found);
            }
        }
        column_paths
    }

    /// Binds the filter to the columns of a table. A condition is evaluated row by row if columns cannot evaluate the
    /// condition, or if the condition may fail or take a long time.
    pub fn bind<'a>(&'a self, columns: &'a dyn Columns, query: &'a Context<'a>) -> Result<RowSelection<'a>> {
        let mut selection =
            RowSelection { columns, query, predicates: Vec::new(), residual: Vec::new(), limit: self.limit };
        for conjunct in &self.conjuncts {
            match Predicate::bind(conjunct.node(), columns, query)? {
                Some(predicate) if is_costly(conjunct.node()) => {
                    selection.residual.push(ResidualCondition::Cells(predicate));
                }
                Some(predicate) => selection.predicates.push(predicate),
                None => selection.residual.push(ResidualCondition::Row(conjunct, conjunct.fields())),
            }
        }
        Ok(selection)
    }
}

impl<'a> RowSelection<'a> {
    /// Returns whether columns evaluate at least one condition of the filter.
    pub fn is_useful(&self) -> bool {
        let by_cells = |residual: &ResidualCondition| matches!(residual, ResidualCondition::Cells(_));
        !self.predicates.is_empty() || self.residual.iter().any(by_cells)
    }

    /// Returns whether the scan has a limit, so that it may return only some of the selected rows.
    pub fn is_limited(&self) -> bool {
        self.limit.is_some()
    }

    pub fn segments(&self) -> usize {
        self.columns.count().div_ceil(SEGMENT)
    }

    /// Returns the selected rows of a segment.
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

    /// Returns the rows of a segment that satisfy the predicates.
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
                ResidualCondition::Cells(predicate) => predicate.holds(row_index, self.query)?,
                ResidualCondition::Row(filter, fields) => match self.columns.part(row_index, fields.as_ref()) {
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

    /// Returns the selected rows, up to the limit of the scan. A segment is read when the first of its rows is needed.
    /// Callers must stop at the first error.
    pub fn rows(self) -> impl Iterator<Item = Result<Value>> + 'a {
        let limit = self.limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX);
        let mut walk = SelectionWalk { selection: self, segment: 0, waiting: Vec::new() };
        let rows = std::iter::from_fn(move || walk.next_row().transpose());
        rows.take(limit)
    }
}

/// An iterator over the selected rows.
struct SelectionWalk<'a> {
    selection: RowSelection<'a>,
    /// The index of the next segment to read.
    segment: usize,
    /// The rows of the current segment that are not yet returned, in reverse order.
    waiting: Vec<u32>,
}

impl SelectionWalk<'_> {
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
