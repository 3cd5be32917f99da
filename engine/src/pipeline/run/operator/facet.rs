//! `$facet`: returns one row with the results of several pipelines over the same rows.

use std::sync::Arc;

use crate::model::value::Object;
use crate::pipeline::run::program::Program;
use crate::pipeline::run::rows::{Operator, RowOwner, Rows, RunContext, collect};
use crate::pipeline::value::error::Result;

/// The operator of `$facet`.
pub struct FacetOperator {
    pub facets: Vec<(Arc<str>, Program)>,
    pub owner: RowOwner,
}

impl Operator for FacetOperator {
    fn open<'a>(&'a self, input: Rows<'a>, run: RunContext<'a>) -> Result<Rows<'a>> {
        let rows = collect(input, self.owner, run.query)?;
        let mut row = Object::with_capacity(self.facets.len());
        for (name, program) in &self.facets {
            let input: Rows = Box::new(rows.iter().cloned().map(|row| {
                run.query.tick()?;
                Ok(row)
            }));
            row.push(name.clone(), collect(program.over(input, run)?, RowOwner::Pipeline, run.query)?);
        }
        Ok(Box::new(std::iter::once(Ok(row.into()))))
    }

    fn is_blocking(&self) -> bool {
        true
    }
}
