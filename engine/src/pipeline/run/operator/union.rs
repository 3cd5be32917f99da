//! `$unionWith`: appends the rows of another pipeline.

use crate::pipeline::run::program::Program;
use crate::pipeline::run::rows::{Operator, Rows, RunContext};
use crate::pipeline::value::error::Result;

/// The operator of `$unionWith`.
pub struct UnionOperator {
    pub program: Program,
}

impl Operator for UnionOperator {
    fn open<'a>(&'a self, input: Rows<'a>, run: RunContext<'a>) -> Result<Rows<'a>> {
        // The second pipeline opens when the first pipeline has ended, because a later limit may make the second
        // pipeline unnecessary.
        let more = std::iter::once_with(move || match self.program.rows(run) {
            Ok(rows) => rows,
            Err(error) => Box::new(std::iter::once(Err(error))),
        });
        Ok(Box::new(input.chain(more.flatten())))
    }
}
