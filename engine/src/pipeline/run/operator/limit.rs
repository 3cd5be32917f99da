//! The operators of `$limit` and `$skip`.

use crate::pipeline::run::rows::{Operator, Rows, RunContext};
use crate::pipeline::value::error::Result;

/// The operator of `$limit`.
pub struct LimitOperator {
    pub rows: u64,
}

impl Operator for LimitOperator {
    fn open<'a>(&'a self, input: Rows<'a>, _run: RunContext<'a>) -> Result<Rows<'a>> {
        Ok(Box::new(input.take(usize::try_from(self.rows).unwrap_or(usize::MAX))))
    }
}

/// The operator of `$skip`.
pub struct SkipOperator {
    pub rows: u64,
}

impl Operator for SkipOperator {
    fn open<'a>(&'a self, input: Rows<'a>, _run: RunContext<'a>) -> Result<Rows<'a>> {
        let mut remaining = self.rows;
        Ok(Box::new(input.filter(move |row| {
            if remaining == 0 || row.is_err() {
                return true;
            }
            remaining -= 1;
            false
        })))
    }
}
