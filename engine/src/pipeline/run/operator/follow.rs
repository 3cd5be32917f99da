//! `$lookup` along edges: adds to each row the states that are reached along edges of the knowledge graph.

use std::sync::Arc;

use super::nested_fields;
use crate::model::value::Value;
use crate::pipeline::run::program::Program;
use crate::pipeline::run::rows::{Operator, RowOwner, Rows, RunContext, collect, ticked};
use crate::pipeline::value::error::Result;
use crate::pipeline::value::path::FieldPath;

/// The operator of a `$lookup` along edges.
pub struct FollowOperator {
    /// The index of the scan that follows the edges.
    pub scan: usize,
    pub local: FieldPath,
    pub program: Program,
    pub target: FieldPath,
}

impl Operator for FollowOperator {
    fn open<'a>(&'a self, input: Rows<'a>, run: RunContext<'a>) -> Result<Rows<'a>> {
        Ok(Box::new(input.map(move |row| {
            let row = row?;
            let reached = run.query.uncharged(|| self.reached(&row, run))?;
            Ok(nested_fields::with(row, self.target.segments(), reached))
        })))
    }
}

impl FollowOperator {
    /// Runs the sub-pipeline over the states that are reached from the nodes of a row, and returns the resulting rows
    /// as an array. The row contains the ids of the nodes at the path `self.local`.
    fn reached(&self, row: &Value, run: RunContext) -> Result<Value> {
        let Some(table) = run.tables.get(self.scan) else { return Ok(Vec::new().into()) };
        let ids = match self.local.eval(row, run.query)? {
            Some(Value::Array(items)) => {
                run.query.tick_many(items.len())?;
                run.query.charge(items.len() * size_of::<Arc<str>>())?;
                items.iter().filter_map(Value::shared_str).collect()
            }
            Some(Value::String(id)) => vec![id],
            _ => Vec::new(),
        };
        let input = ticked(table.reached_from(&ids)?.into_iter(), run.query);
        Ok(collect(self.program.over(input, run)?, RowOwner::Pipeline, run.query)?.into())
    }
}
