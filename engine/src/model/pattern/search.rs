//! The parameters and results of a search.

/// Maximum size of a compiled pattern, in bytes.
pub const SIZE_BYTES: usize = 1 << 20;

/// A match: its position, and the text of each group.
pub struct Match<'t> {
    pub start: usize,
    pub end: usize,
    pub groups: Vec<Option<&'t str>>,
}

/// The reason why a search has no result.
#[derive(Debug)]
pub enum Unfinished<E> {
    /// The caller's budget ended the search.
    Ended(E),
    /// The search would exceed the limits for any search.
    Costly(String),
}

/// Counts work. An error ends the search. One tick stands for a few hundred bytes of text or states of the pattern.
pub type Tick<'t, E> = &'t dyn Fn(usize) -> Result<(), E>;
