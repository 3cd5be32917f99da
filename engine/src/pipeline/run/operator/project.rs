//! `$project`, `$set` and `$unset`: apply a projection to each row.

use std::sync::Arc;

use crate::pipeline::expression::projection::Projection;
use crate::pipeline::run::rows::{Operator, Rows, RunContext};
use crate::pipeline::value::error::Result;

/// The operator of `$project`, `$set` and `$unset`.
pub struct ProjectOperator {
    pub projection: Arc<Projection>,
}

impl Operator for ProjectOperator {
    fn open<'a>(&'a self, input: Rows<'a>, run: RunContext<'a>) -> Result<Rows<'a>> {
        Ok(Box::new(input.map(move |row| {
            let row = row?;
            run.query.uncharged(|| self.projection.apply(&run.env(&row)))
        })))
    }
}
