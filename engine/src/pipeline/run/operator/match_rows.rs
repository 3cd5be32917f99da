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
            let matched = row.and_then(|row| {
                let matches = run.query.uncharged(|| self.filter.matches(&run.env(&row)))?;
                Ok(matches.then_some(row))
            });
            matched.transpose()
        })))
    }
}
