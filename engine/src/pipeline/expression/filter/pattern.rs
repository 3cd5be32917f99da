//! `$regex` with its `$options`, whichever of them is written first.

use std::sync::Arc;

use crate::model::value::{Object, Value};
use crate::pipeline::value::error::{Error, Result};
use crate::pipeline::value::regex::Regex;

/// A pattern as it was written.
pub struct Pattern<'s> {
    pattern: &'s str,
    options: &'s str,
}

impl<'s> Pattern<'s> {
    /// The pattern among a field's operators.
    pub fn of(operators: &'s Object) -> Result<Pattern<'s>> {
        let pattern = match operators.get("$regex") {
            Some(Value::String(pattern)) => pattern,
            _ => return Err(Error::new(2, "$regex has to be a string")),
        };
        let options = match operators.get("$options") {
            None => "",
            Some(Value::String(options)) => options,
            Some(_) => return Err(Error::new(2, "$options has to be a string")),
        };
        Ok(Pattern { pattern, options })
    }

    pub fn compile(&self) -> Result<Arc<Regex>> {
        Ok(Arc::new(Regex::new(self.pattern, self.options)?))
    }
}
