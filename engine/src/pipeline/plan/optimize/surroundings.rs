//! What a rule may have to know beside the plan.

use crate::pipeline::plan::options::Options;

/// What is around a plan.
pub struct Surroundings<'o> {
    pub options: &'o Options,
    /// The path by which a `$lookup` picks rows before the plan's steps see them.
    pub join: Option<String>,
}
