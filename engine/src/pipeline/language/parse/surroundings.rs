//! The position of a pipeline in the request, which determines the stages and variables that the pipeline may use.

use std::sync::Arc;

use crate::model::value::Value;
use crate::pipeline::expression::expr::ParseScope;
use crate::pipeline::language::ast::Pipeline;
use crate::pipeline::language::rows::constants::ConstantPlace;
use crate::pipeline::language::rows::{RowFields, ValueKind};
use crate::pipeline::value::context::Context;
use crate::pipeline::value::error::{Result, err};

/// The maximum depth of nested sub-pipelines (MongoDB's own limit).
const MAX_DEPTH: usize = 20;

/// The position of a pipeline, and the names that are visible there.
#[derive(Clone)]
pub struct PipelineSurroundings<'q> {
    /// The query whose time and memory limits apply to the parsing.
    pub query: &'q Context<'q>,
    /// The names of the variables of the enclosing `$lookup` stages, the outermost first.
    pub variables: Vec<Arc<str>>,
    /// The kinds of the values of `variables`, in the same order.
    pub kinds: Vec<ValueKind>,
    pub within: ContainingStage,
    /// Whether a `$facet` encloses the pipeline at any level.
    pub facet: bool,
    depth: usize,
    /// The known fields of the rows that enter the pipeline. While a stage is parsed, the known fields of the rows
    /// before this stage.
    pub rows: RowFields,
    /// The position of the current stage in its pipeline.
    pub position: usize,
    /// The index of the enclosing top-level stage, if any.
    pub index: Option<usize>,
    /// The function that parses the stages of a pipeline. A field holds the function, because the parser of a single
    /// stage must not depend on the parser of all stages.
    read: Read,
}

/// A function that parses the stages of a pipeline.
pub type Read = fn(&[Value], &PipelineSurroundings) -> Result<Pipeline>;

/// The stage that contains a pipeline, or `Request` for the top-level pipeline.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum ContainingStage {
    Request,
    Facet,
    Lookup,
    /// A `$lookup` along edges. The input rows of its sub-pipeline are the reached states, so the sub-pipeline has no
    /// source of its own.
    LookupEdges,
    UnionWith,
}

impl<'q> PipelineSurroundings<'q> {
    /// Returns the position of the top-level pipeline of a request.
    pub fn top(read: Read, query: &'q Context<'q>) -> PipelineSurroundings<'q> {
        PipelineSurroundings {
            query,
            variables: Vec::new(),
            kinds: Vec::new(),
            within: ContainingStage::Request,
            facet: false,
            depth: 0,
            rows: RowFields::events(),
            position: 0,
            index: None,
            read,
        }
    }

    /// Returns the scope of the expressions in the pipeline's stages.
    pub fn scope(&self) -> ParseScope<'q> {
        ParseScope::root(self.query).with(self.variables.iter().cloned())
    }

    /// Returns the context in which the constants of a stage over `rows` are converted.
    pub fn place<'s>(&'s self, rows: &'s RowFields) -> ConstantPlace<'s, 'q> {
        ConstantPlace::new(rows, self.query, &self.variables, &self.kinds)
    }

    /// Returns the scope of the expression of a `$redact` stage.
    pub fn redact_scope(&self) -> ParseScope<'q> {
        // Plain paths start from the object that `$redact` currently visits.
        ParseScope::redact(self.query).with(self.variables.iter().cloned()).with([Arc::from("CURRENT")])
    }

    /// Returns the position of a sub-pipeline. `within` is the kind of the stage that contains the sub-pipeline, and
    /// `rows` contains the known fields of the sub-pipeline's input rows. Fails if sub-pipelines are nested too deeply.
    pub fn inside(&self, within: ContainingStage, rows: RowFields) -> Result<PipelineSurroundings<'q>> {
        if self.depth >= MAX_DEPTH {
            return err!(51, "Maximum number of nested sub-pipelines exceeded. Limit is {MAX_DEPTH}");
        }
        let facet = self.facet || within == ContainingStage::Facet;
        Ok(PipelineSurroundings { within, facet, depth: self.depth + 1, rows, ..self.clone() })
    }

    /// Returns the surroundings of the stage at `position` in this pipeline. `rows` contains the known fields of the
    /// stage's input rows, and `index` is the index of the enclosing top-level stage.
    pub fn of_stage(&self, position: usize, index: usize, rows: RowFields) -> PipelineSurroundings<'q> {
        PipelineSurroundings { position, index: Some(index), rows, ..self.clone() }
    }

    /// Parses the stages of a pipeline at this position.
    pub fn pipeline(&self, stages: &[Value]) -> Result<Pipeline> {
        (self.read)(stages, self)
    }
}
