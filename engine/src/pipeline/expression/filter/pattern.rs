//! A pattern in a filter: `$regex` with its `$options`, in either order, or a regular expression in Extended JSON.

use std::sync::Arc;

use crate::model::value::{Object, Value};
use crate::pipeline::value::context::Context;
use crate::pipeline::value::error::{Error, Result};
use crate::pipeline::value::extended_json;
use crate::pipeline::value::regex::Regex;

/// A pattern with its options, as in the client's request.
pub struct FilterPattern<'s> {
    pattern: &'s str,
    options: &'s str,
}

impl<'s> FilterPattern<'s> {
    /// Returns the pattern that `$regex` and `$options` specify among the operators of a field.
    pub fn of(operators: &'s Object) -> Result<FilterPattern<'s>> {
        let (pattern, own) = match operators.get("$regex") {
            Some(Value::String(pattern)) => (&**pattern, ""),
            Some(value) => extended_json::regex(value).ok_or_else(|| Error::new(2, "$regex has to be a string"))?,
            None => return Err(Error::new(2, "$regex has to be a string")),
        };
        let options = match operators.get("$options") {
            None => own,
            Some(Value::String(_)) if !own.is_empty() => {
                return Err(Error::new(51075, "options set in both $regex and $options"));
            }
            Some(Value::String(options)) => options,
            Some(_) => return Err(Error::new(2, "$options has to be a string")),
        };
        Ok(FilterPattern { pattern, options })
    }

    /// Returns the pattern of a `$regularExpression`, or `None` for any other value.
    pub fn of_value(value: &'s Value) -> Option<FilterPattern<'s>> {
        extended_json::regex(value).map(|(pattern, options)| FilterPattern { pattern, options })
    }

    pub fn compile(&self, query: &Context) -> Result<Arc<Regex>> {
        Ok(Arc::new(Regex::new(self.pattern, self.options, query)?))
    }
}
