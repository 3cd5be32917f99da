//! The environment in which an expression is evaluated: the query, the row, and the values of user variables.

use crate::model::value::Value;
use crate::pipeline::value::context::Context;

/// The values of variables that are bound together, with a link to the variables of the enclosing expressions.
#[derive(Debug)]
pub struct Frame<'a> {
    values: &'a [Option<Value>],
    outer: Option<&'a Frame<'a>>,
}

/// The environment in which an expression is evaluated.
#[derive(Clone, Copy)]
pub struct Env<'a> {
    pub query: &'a Context<'a>,
    pub root: &'a Value,
    pub variables: Option<&'a Frame<'a>>,
}

impl<'a> Env<'a> {
    pub fn new(query: &'a Context<'a>, root: &'a Value) -> Env<'a> {
        Env { query, root, variables: None }
    }

    /// Returns a frame that binds `values` to additional user variables, in the order of the names passed to
    /// `ParseScope::with`.
    pub fn frame(&self, values: &'a [Option<Value>]) -> Frame<'a> {
        Frame { values, outer: self.variables }
    }

    /// Returns the same environment with the variables of `frame`.
    pub fn bind<'b>(&self, frame: &'b Frame<'b>) -> Env<'b>
    where
        'a: 'b,
    {
        Env { query: self.query, root: self.root, variables: Some(frame) }
    }

    /// Returns an environment with the same variables over another row.
    pub fn over<'b>(&self, root: &'b Value) -> Env<'b>
    where
        'a: 'b,
    {
        Env { query: self.query, root, variables: self.variables }
    }

    /// Returns the value of a variable, or `None` if the value is missing. `inner` is the number of variables that were
    /// bound after this variable: 0 for the innermost variable. Variables that were bound before this variable do not
    /// change `inner`.
    pub(super) fn variable(&self, mut inner: usize) -> Option<&'a Value> {
        let mut frame = self.variables;
        while let Some(current) = frame {
            match current.values.iter().rev().nth(inner) {
                Some(value) => return value.as_ref(),
                None => inner -= current.values.len(),
            }
            frame = current.outer;
        }
        None
    }
}
