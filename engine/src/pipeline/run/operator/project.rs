//! `$project`, `$set` and `$unset`: apply a projection to each row.

use crate::pipeline::expression::projection::Projection;
use crate::pipeline::run::rows::{Operator, Rows, Run};
use crate::pipeline::value::error::Result;

/// The operator of `$project`, `$set` and `$unset`.
pub struct Project {
    pub projection: Projection,
}

impl Operator for Project {
    fn open<'a>(&'a self, input: Rows<'a>, run: Run<'a>) -> Result<Rows<'a>> {
        Ok(Box::new(input.map(move |row| {
            let row = row?;
            run.passing(|| self.projection.apply(&run.env(&row)))
        })))
    }
}
