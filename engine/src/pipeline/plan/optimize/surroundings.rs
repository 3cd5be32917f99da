//! The context of a plan, which some optimization rules need.

use crate::pipeline::plan::options::Options;

/// The context of a plan.
pub struct Surroundings<'o> {
    pub options: &'o Options,
    /// The foreign path by which a `$lookup` selects rows before the plan's steps read them.
    pub join: Option<String>,
}
