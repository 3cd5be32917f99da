//! Streams of rows, and the context in which operators process them.

use crate::model::value::Value;
use crate::pipeline::expression::expr::{Env, Frame};
use crate::pipeline::source::table::Table;
use crate::pipeline::value::context::Context;
use crate::pipeline::value::error::Result;
use crate::pipeline::value::memory;

/// A stream of rows.
pub type Rows<'a> = Box<dyn Iterator<Item = Result<Value>> + 'a>;

/// One step of a lowered pipeline.
pub trait Operator: Send + Sync {
    /// Applies the operator to the rows of `input`. An operator that needs all input rows reads the rows in this call.
    /// Other operators read an input row when the caller reads their output.
    fn open<'a>(&'a self, input: Rows<'a>, run: RunContext<'a>) -> Result<Rows<'a>>;

    /// Returns whether [`open`](Operator::open) reads all input rows.
    fn is_blocking(&self) -> bool {
        false
    }
}

/// The context in which operators process rows.
#[derive(Clone, Copy)]
pub struct RunContext<'a> {
    pub query: &'a Context<'a>,
    pub tables: &'a [&'a dyn Table],
    /// The values of the variables of the enclosing `$lookup` stages.
    pub variables: Option<&'a Frame<'a>>,
}

impl<'a> RunContext<'a> {
    /// Returns the environment in which expressions over one row are evaluated.
    pub fn env<'r>(&'r self, row: &'r Value) -> Env<'r> {
        Env { query: self.query, root: row, variables: self.variables }
    }
}

/// The owner of rows. The owner determines how much memory a kept row costs the query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowOwner {
    /// The source of the rows. The values of the fields belong to the source, so the query is not charged for these
    /// values.
    Source,
    Pipeline,
}

impl RowOwner {
    /// Returns an upper limit for the number of bytes of a row that were built for the query.
    pub fn built_bytes(self) -> usize {
        match self {
            RowOwner::Source => 0,
            RowOwner::Pipeline => usize::MAX,
        }
    }

    /// Charges the query for rows that an operator keeps in an array.
    pub fn hold_all(self, rows: &[Value], query: &Context) -> Result<()> {
        query.charge(size_of_val(rows))?;
        rows.iter().try_for_each(|row| self.hold(row, query))
    }

    /// Charges the query for a row that an operator keeps.
    pub fn hold(self, row: &Value, query: &Context) -> Result<()> {
        match self {
            RowOwner::Source => memory::hold_shared(row, query),
            RowOwner::Pipeline => memory::hold(row, query),
        }
    }
}

/// A row that an operator keeps, with the number of bytes that the query is charged for the row.
pub struct KeptRow {
    pub row: Value,
    pub charged: usize,
}

impl KeptRow {
    /// Charges the query for a row that belongs to `owner`.
    pub fn new(row: Value, owner: RowOwner, query: &Context) -> Result<KeptRow> {
        let ((), charged) = query.charged(|| owner.hold(&row, query))?;
        Ok(KeptRow { row, charged })
    }

    /// Collects all rows and charges the query for the rows.
    pub fn collect(rows: Rows, owner: RowOwner, query: &Context) -> Result<Vec<KeptRow>> {
        rows.map(|row| KeptRow::new(row?, owner, query)).collect()
    }
}

/// A stream of rows that an operator has kept. Reading a row cancels the charge for the row. If the reader also keeps
/// the row, the reader charges the query again. Dropping the stream cancels the charges for the unread rows.
pub struct KeptRows<'a> {
    rows: std::vec::IntoIter<KeptRow>,
    query: &'a Context<'a>,
}

impl<'a> KeptRows<'a> {
    pub fn new(rows: Vec<KeptRow>, query: &'a Context<'a>) -> KeptRows<'a> {
        KeptRows { rows: rows.into_iter(), query }
    }
}

impl Iterator for KeptRows<'_> {
    type Item = Result<Value>;

    fn next(&mut self) -> Option<Result<Value>> {
        let KeptRow { row, charged } = self.rows.next()?;
        self.query.give_back(charged);
        Some(Ok(row))
    }
}

impl Drop for KeptRows<'_> {
    fn drop(&mut self) {
        self.query.give_back(self.rows.as_slice().iter().map(|kept| kept.charged).sum());
    }
}

/// Returns the rows as a stream that counts each row as work of the query.
pub fn ticked<'a>(rows: impl Iterator<Item = Value> + 'a, query: &'a Context<'a>) -> Rows<'a> {
    Box::new(rows.map(move |row| {
        query.tick()?;
        Ok(row)
    }))
}

/// Collects all rows and charges the query for the rows.
pub fn collect(rows: Rows, owner: RowOwner, query: &Context) -> Result<Vec<Value>> {
    let held = rows.map(|row| {
        let row = row?;
        owner.hold(&row, query)?;
        Ok(row)
    });
    held.collect()
}
