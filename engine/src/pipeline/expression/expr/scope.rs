//! The variables an expression can name, and the values they have for one row.

use std::sync::Arc;

use crate::model::value::Value;
use crate::pipeline::context::Context;
use crate::pipeline::error::{Error, Result};

/// Levels to which an expression may nest.
pub(super) const MAX_DEPTH: usize = 180;

/// Names visible while an expression is parsed, and the slots their values stand in.
#[derive(Debug, Clone, Default)]
pub struct Scope {
    names: Arc<Vec<Arc<str>>>,
    redact: bool,
    depth: usize,
}

impl Scope {
    /// Only the system variables.
    pub fn root() -> Scope {
        Scope::default()
    }

    /// The system variables with `$$DESCEND`, `$$PRUNE` and `$$KEEP`.
    pub fn redact() -> Scope {
        Scope { redact: true, ..Scope::default() }
    }

    /// Appends user variables; a later one hides an earlier one of the same name.
    pub fn with(&self, names: impl IntoIterator<Item = Arc<str>>) -> Scope {
        let names = self.names.iter().cloned().chain(names).collect();
        Scope { names: Arc::new(names), ..*self }
    }

    pub(super) fn slot(&self, name: &str) -> Option<usize> {
        self.names.iter().rposition(|known| &**known == name)
    }

    pub(super) fn names(&self) -> &[Arc<str>] {
        &self.names
    }

    pub(super) fn has_redact(&self) -> bool {
        self.redact
    }

    /// The scope one level further down.
    pub(super) fn deeper(&self) -> Result<Scope> {
        if self.depth == MAX_DEPTH {
            return Err(Error::new(15, format!("expression nests more than {MAX_DEPTH} levels deep")));
        }
        Ok(Scope { names: self.names.clone(), redact: self.redact, depth: self.depth + 1 })
    }
}

/// Values of variables bound together, and those bound before them.
#[derive(Debug)]
pub struct Frame<'a> {
    first: usize,
    values: &'a [Option<Value>],
    outer: Option<&'a Frame<'a>>,
}

/// What an expression is evaluated against.
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

    /// Values for the next user variables, in the order of [`Scope::with`].
    pub fn frame(&self, values: &'a [Option<Value>]) -> Frame<'a> {
        let first = self.variables.map_or(0, |frame| frame.first + frame.values.len());
        Frame { first, values, outer: self.variables }
    }

    /// The same surroundings with the variables of `frame`.
    pub fn bind<'b>(&self, frame: &'b Frame<'b>) -> Env<'b>
    where
        'a: 'b,
    {
        Env { query: self.query, root: self.root, variables: Some(frame) }
    }

    /// The same variables over another row.
    pub fn over<'b>(&self, root: &'b Value) -> Env<'b>
    where
        'a: 'b,
    {
        Env { query: self.query, root, variables: self.variables }
    }

    pub(super) fn variable(&self, slot: usize) -> Option<&'a Value> {
        let mut frame = self.variables;
        while let Some(current) = frame {
            if slot >= current.first {
                return current.values.get(slot - current.first)?.as_ref();
            }
            frame = current.outer;
        }
        None
    }
}
