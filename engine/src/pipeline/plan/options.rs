//! How a pipeline is to be prepared.

/// How a pipeline is to be prepared.
#[derive(Debug, Clone)]
pub struct Options {
    pub source: SourceChoice,
    /// Without it every row is read and every stage is an operator. Filters are moved and ordered nevertheless, since that
    /// decides whose errors are spared.
    pub push_down: bool,
    /// Whether the source's columns are made use of, where it keeps any. Part of pushing down.
    pub columns: bool,
    /// Whether a run measures each operator.
    pub explain: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options { source: SourceChoice::Auto, push_down: true, columns: true, explain: false }
    }
}

/// Where states are to be read, as far as the pipeline allows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SourceChoice {
    #[default]
    Auto,
    Resident,
    Nodes,
    Log,
}
