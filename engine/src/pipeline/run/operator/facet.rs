//! `$facet`: returns one row with the results of several pipelines over the same rows.

use std::sync::Arc;

use crate::model::value::Object;
use crate::pipeline::run::program::Program;
use crate::pipeline::run::rows::{KeptRow, KeptRows, Operator, RowOwner, Rows, RunContext, collect, ticked};
use crate::pipeline::value::error::Result;

/// The operator of `$facet`.
pub struct FacetOperator {
    pub facets: Vec<(Arc<str>, Program)>,
    pub owner: RowOwner,
}

impl FacetOperator {
    fn results(&self, rows: &[KeptRow], run: RunContext) -> Result<Object> {
        let mut results = Object::with_capacity(self.facets.len());
        for (name, program) in &self.facets {
            let input = ticked(rows.iter().map(|kept| kept.row.clone()), run.query);
            results.push(name.clone(), collect(program.over(input, run)?, RowOwner::Pipeline, run.query)?);
        }
        Ok(results)
    }
}

impl Operator for FacetOperator {
    fn open<'a>(&'a self, input: Rows<'a>, run: RunContext<'a>) -> Result<Rows<'a>> {
        let rows = KeptRow::collect(input, self.owner, run.query)?;
        // The operator that keeps the row charges the query for the results as well.
        let row = run.query.uncharged(|| self.results(&rows, run))?;
        drop(KeptRows::new(rows, run.query));
        Ok(Box::new(std::iter::once(Ok(row.into()))))
    }

    fn is_blocking(&self) -> bool {
        true
    }
}
