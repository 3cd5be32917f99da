//! `$match`: returns the rows that satisfy a filter.

use crate::pipeline::expression::filter::Filter;
use crate::pipeline::run::rows::{Operator, Rows, RunContext};
use crate::pipeline::value::error::Result;

/// The operator of `$match`.
pub struct MatchOperator {
    pub filter: Filter,
}

impl Operator for MatchOperator {
    fn open<'a>(&'a self, input: Rows<'a>, run: RunContext<'a>) -> Result<Rows<'a>> {
        Ok(Box::new(input.filter_map(move |row| {
            let row = match row {
                Ok(row) => row,
                Err(error) => return Some(Err(error)),
            };
            match run.query.uncharged(|| self.filter.matches(&run.env(&row))) {
                Ok(true) => Some(Ok(row)),
                Ok(false) => None,
                Err(error) => Some(Err(error)),
            }
        })))
    }
}
