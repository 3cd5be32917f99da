//! The parameters and results of a search.

/// The maximum size of a compiled pattern, in bytes. For a pattern that backtracks, the maximum size of each part that
/// is a regular language.
pub const SIZE_BYTES: usize = 1 << 20;

/// A match in a text: the byte offsets of its start and its end, and the text of each group. The text is `None` for a
/// group that is not part of the match. `groups` does not contain the whole match.
pub struct PatternMatch<'t> {
    pub start: usize,
    pub end: usize,
    pub groups: Vec<Option<&'t str>>,
}

/// The reason why a search has no result.
#[derive(Debug)]
pub enum SearchFailure<E> {
    /// The caller's budget ended the search.
    Ended(E),
    /// The search would exceed the limits that apply to every search. The text describes the limit.
    Costly(String),
}

/// A function that charges a number of ticks to the caller's budget. One tick is the work for 64 to 256 bytes of the
/// text, or for 256 states of the pattern. A backtracking search is charged 256 ticks, regardless of its work. An error
/// ends the search.
pub type Tick<'t, E> = &'t dyn Fn(usize) -> Result<(), E>;
