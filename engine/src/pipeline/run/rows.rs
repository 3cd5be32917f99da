//! Rows on their way, and what an operator is given beside them.

use crate::model::value::Value;
use crate::pipeline::expression::expr::{Env, Frame};
use crate::pipeline::source::table::Table;
use crate::pipeline::value::context::Context;
use crate::pipeline::value::error::Result;
use crate::pipeline::value::memory;

/// Rows on their way.
pub type Rows<'a> = Box<dyn Iterator<Item = Result<Value>> + 'a>;

/// One step of a lowered pipeline.
pub trait Operator: Send + Sync {
    /// Puts the operator over its input. An operator that needs all rows before its first takes them here.
    fn open<'a>(&'a self, input: Rows<'a>, run: Run<'a>) -> Result<Rows<'a>>;

    /// Whether [`open`](Operator::open) takes all rows.
    fn is_blocking(&self) -> bool {
        false
    }
}

/// What operators are given beside rows.
#[derive(Clone, Copy)]
pub struct Run<'a> {
    pub query: &'a Context<'a>,
    pub tables: &'a [&'a dyn Table],
    /// Variables of the surrounding `$lookup`s.
    pub variables: Option<&'a Frame<'a>>,
}

impl<'a> Run<'a> {
    /// What expressions see of one row.
    pub fn env<'r>(&'r self, row: &'r Value) -> Env<'r> {
        Env { query: self.query, root: row, variables: self.variables }
    }

    /// Runs `work` and gives back the memory that it took: what it makes is gone with the row, or is held by an
    /// operator that counts it.
    pub fn passing<T>(&self, work: impl FnOnce() -> Result<T>) -> Result<T> {
        let before = self.query.bytes_left.get();
        let made = work()?;
        self.query.bytes_left.set(before);
        Ok(made)
    }
}

/// Whose rows they are, which says what it costs to keep them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    /// The source holds them anyway.
    Source,
    Pipeline,
}

impl Owner {
    /// Counts a row that is kept.
    pub fn hold(self, row: &Value, query: &Context) -> Result<()> {
        match self {
            Owner::Source => memory::hold_shared(query),
            Owner::Pipeline => memory::hold(row, query),
        }
    }
}

/// Takes all rows and counts what they hold.
pub fn collect(rows: Rows, owner: Owner, query: &Context) -> Result<Vec<Value>> {
    let mut held = Vec::new();
    for row in rows {
        let row = row?;
        owner.hold(&row, query)?;
        held.push(row);
    }
    Ok(held)
}
