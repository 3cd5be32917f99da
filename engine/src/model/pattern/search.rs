//! What a search is given, and what it answers.

/// Bytes that a compiled pattern may take.
pub const SIZE_BYTES: usize = 1 << 20;

/// One match: where it stands, and each group's text.
pub struct Match<'t> {
    pub start: usize,
    pub end: usize,
    pub groups: Vec<Option<&'t str>>,
}

/// Why a search has no answer.
#[derive(Debug)]
pub enum Unfinished<E> {
    /// The caller's budget ended it.
    Ended(E),
    /// It would take more than any search may.
    Costly(String),
}

/// Counts work; an error ends the search. One tick is a few hundred bytes, or states of the pattern.
pub type Tick<'t, E> = &'t dyn Fn(usize) -> Result<(), E>;
