//! The input values of accumulators, and whether the query is charged for them.

use crate::model::value::Value;
use crate::pipeline::expression::expr::{Env, Expr};
use crate::pipeline::value::error::Result;

/// The value of an accumulator's input for one row.
pub struct InputValue {
    pub value: Option<Value>,
    /// Whether the value was built for the query. If the state keeps the value, the query is charged for all of it.
    pub is_built: bool,
}

impl InputValue {
    /// Evaluates the input over the row of `env`. `is_built` is whether the row was built for the query.
    pub fn of_row(input: &Expr, is_built: bool, env: &Env) -> Result<InputValue> {
        let (value, bytes) = env.query.charged(|| input.eval(env))?;
        env.query.give_back(bytes);
        Ok(InputValue { value, is_built: is_built || bytes > 0 })
    }
}
