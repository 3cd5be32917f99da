//! Parses `$documents`: rows that the pipeline itself contains.

use crate::model::value::Value;
use crate::pipeline::expression::expr;
use crate::pipeline::expression::expr::ParseScope;
use crate::pipeline::language::ast::Documents;
use crate::pipeline::value::error::{Error, Result};

pub fn parse(value: &Value, position: usize, scope: &ParseScope) -> Result<Documents> {
    if position > 0 {
        return Err(Error::new(40602, "$documents is only valid as the first stage in a pipeline"));
    }
    match value {
        Value::Array(rows) if rows.iter().all(|row| row.as_object().is_some()) => Ok(Documents::Literal(rows.clone())),
        Value::Array(_) => Err(not_objects()),
        computed => Ok(Documents::Computed(expr::parse(computed, scope)?.into())),
    }
}

/// Returns the error for rows that are not objects. If an expression computes the rows, the run checks the rows and
/// returns the same error.
pub fn not_objects() -> Error {
    Error::new(5858203, "an array is expected: $documents must evaluate to an array of objects")
}
