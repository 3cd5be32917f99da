//! Options for preparing a pipeline.

/// Options for preparing a pipeline.
#[derive(Debug, Clone)]
pub struct Options {
    pub source: SourceChoice,
    /// Whether to push work to the source. Without push-down, the source evaluates only `$documents`, `$fold` and the
    /// `$match` stages before `$fold`, and every other stage becomes an operator. With and without push-down, filters
    /// are moved and ordered in the same way, so that the same rows cause errors.
    pub push_down: bool,
    /// Whether to use the columns of the source, if the source has columns. Requires `push_down`.
    pub columns: bool,
    /// Whether a run measures each operator and returns the explanation.
    pub explain: bool,
    /// The number of rows to show after every stage. `None` if the run does not show the rows after its stages.
    pub preview: Option<usize>,
}

impl Default for Options {
    fn default() -> Options {
        Options { source: SourceChoice::Auto, push_down: true, columns: true, explain: false, preview: None }
    }
}

/// The preferred source of states. If the preferred source does not contain the requested states, the pipeline folds
/// the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SourceChoice {
    #[default]
    Auto,
    Resident,
    Nodes,
    Log,
}

/// The context of a plan, which some rules of the optimization need.
pub struct Surroundings<'o> {
    pub options: &'o Options,
    /// The foreign path of the `$lookup` that contains the plan. The `$lookup` selects rows by this path before the
    /// steps of the plan read the rows.
    pub join: Option<String>,
}
