//! Where a pipeline stands, which says what may be written there.

use std::sync::Arc;

use crate::model::value::Value;
use crate::pipeline::expression::expr::Scope;
use crate::pipeline::language::ast::Pipeline;
use crate::pipeline::value::context::Context;
use crate::pipeline::value::error::{Error, Result};

/// Levels that sub-pipelines may nest (MongoDB's own limit).
const MAX_DEPTH: usize = 20;

/// Where a pipeline stands, and what is visible there.
#[derive(Clone)]
pub struct Surroundings<'q> {
    /// What reading the pipeline costs counts here.
    pub query: &'q Context<'q>,
    /// Variables of the surrounding `$lookup`s, outermost first.
    pub variables: Vec<Arc<str>>,
    pub within: Within,
    /// Whether a `$facet` surrounds it, however far out.
    pub facet: bool,
    depth: usize,
    /// Index of the top-level stage, once inside one.
    pub index: Option<usize>,
    /// Reads the stages of a pipeline that stands here: what reads one stage must not know what reads all of them.
    read: Read,
}

/// What reads the stages of a pipeline at this depth.
pub type Read = fn(&[Value], &Surroundings) -> Result<Pipeline>;

/// What a pipeline stands in.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Within {
    Request,
    Facet,
    Lookup,
    UnionWith,
}

impl<'q> Surroundings<'q> {
    /// That of a request's own pipeline.
    pub fn top(read: Read, query: &'q Context<'q>) -> Surroundings<'q> {
        Surroundings {
            query,
            variables: Vec::new(),
            within: Within::Request,
            facet: false,
            depth: 0,
            index: None,
            read,
        }
    }

    /// What expressions of its stages may name.
    pub fn scope(&self) -> Scope<'q> {
        Scope::root(self.query).with(self.variables.iter().cloned())
    }

    /// As [`scope`](Surroundings::scope), in `$redact`.
    pub fn redact_scope(&self) -> Scope<'q> {
        // Plain paths start from the part of the row that is looked at.
        Scope::redact(self.query).with(self.variables.iter().cloned()).with([Arc::from("CURRENT")])
    }

    /// Those of a sub-pipeline.
    pub fn inside(&self, within: Within) -> Result<Surroundings<'q>> {
        if self.depth >= MAX_DEPTH {
            return Err(Error::new(
                51,
                format!("Maximum number of nested sub-pipelines exceeded. Limit is {MAX_DEPTH}"),
            ));
        }
        let facet = self.facet || within == Within::Facet;
        Ok(Surroundings { within, facet, depth: self.depth + 1, ..self.clone() })
    }

    /// The same, in the top-level stage of this index.
    pub fn of_stage(&self, index: usize) -> Surroundings<'q> {
        Surroundings { index: Some(index), ..self.clone() }
    }

    /// Reads the stages of a pipeline that stands here.
    pub fn pipeline(&self, stages: &[Value]) -> Result<Pipeline> {
        (self.read)(stages, self)
    }
}
