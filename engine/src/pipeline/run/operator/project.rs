//! `$project`, `$set` and `$unset`: rows with other fields.

use super::{Operator, Rows, Run};
use crate::pipeline::error::Result;
use crate::pipeline::projection::Projection;

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
