//! `$unionWith`: the rows, then those of another pipeline.

use super::{Operator, Rows, Run};
use crate::pipeline::error::Result;
use crate::pipeline::program::Program;

pub struct Union {
    pub program: Program,
}

impl Operator for Union {
    fn open<'a>(&'a self, input: Rows<'a>, run: Run<'a>) -> Result<Rows<'a>> {
        // The second pipeline is opened when the first has ended: a limit above may spare it.
        let more = std::iter::once_with(move || match self.program.rows(run) {
            Ok(rows) => rows,
            Err(error) => Box::new(std::iter::once(Err(error))),
        });
        Ok(Box::new(input.chain(more.flatten())))
    }
}
