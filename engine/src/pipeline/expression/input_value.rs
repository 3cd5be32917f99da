//! The value of an expression for one row, as the input of accumulators and window functions.

use super::expr::{Env, Expr};
use crate::model::value::Value;
use crate::pipeline::value::context::Context;
use crate::pipeline::value::error::Result;
use crate::pipeline::value::memory;

/// The value of an expression for one row. The query is not charged for the value: a function that keeps the value
/// charges the query.
pub struct InputValue {
    /// The value, or `None` if the value is missing.
    pub value: Option<Value>,
    /// The maximum number of bytes of the value that were built for the query. All other bytes of the value belong to
    /// the source of the rows.
    pub built: usize,
}

impl InputValue {
    /// Evaluates an expression over the row of `env`. `built` is an upper limit for the bytes of the row that were
    /// built for the query.
    pub fn of_row(expr: &Expr, built: usize, env: &Env) -> Result<InputValue> {
        let (value, evaluated) = env.query.charged(|| expr.eval(env))?;
        env.query.give_back(evaluated);
        Ok(InputValue { value, built: built.saturating_add(evaluated) })
    }

    /// Returns the number of bytes that the query must be charged if a function keeps the value. Bytes that belong to
    /// the source of the rows do not count.
    pub fn built_bytes(&self, query: &Context) -> Result<usize> {
        self.value.as_ref().map_or(Ok(0), |value| memory::built_bytes(value, self.built, query))
    }
}
