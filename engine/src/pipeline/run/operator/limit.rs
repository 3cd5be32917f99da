//! `$limit` and `$skip`.

use crate::pipeline::run::rows::{Operator, Rows, Run};
use crate::pipeline::value::error::Result;

/// The operator of `$limit`.
pub struct Limit {
    pub rows: u64,
}

impl Operator for Limit {
    fn open<'a>(&'a self, input: Rows<'a>, _run: Run<'a>) -> Result<Rows<'a>> {
        Ok(Box::new(input.take(usize::try_from(self.rows).unwrap_or(usize::MAX))))
    }
}

/// The operator of `$skip`.
pub struct Skip {
    pub rows: u64,
}

impl Operator for Skip {
    fn open<'a>(&'a self, input: Rows<'a>, _run: Run<'a>) -> Result<Rows<'a>> {
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
