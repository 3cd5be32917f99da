//! Matches the strings of a payload against the patterns of the payload's type.

use std::cell::Cell;
use std::sync::Arc;

use super::cache::Patterns;
use super::compiled_pattern::{CompiledPattern, Syntax};
use super::search::SearchFailure;

/// The maximum number of ticks for all patterns of one payload together. Ticks measure the cost of a match. In the
/// worst case, this number of ticks takes about half a second.
const MAX_TICKS: usize = 100_000;
/// The maximum length, in bytes, of a string whose match takes negligible time.
const QUICK_BYTES: usize = 4 << 10;

/// A matcher for the strings of one payload, or for the default values in one type definition. All matches share one
/// budget.
pub struct PatternMatcher<'p> {
    patterns: &'p Patterns,
    remaining_ticks: Cell<usize>,
}

impl<'p> PatternMatcher<'p> {
    pub fn new(patterns: &'p Patterns) -> PatternMatcher<'p> {
        PatternMatcher { patterns, remaining_ticks: Cell::new(MAX_TICKS) }
    }

    /// Returns whether a string matches a pattern. The error gives the reason why the pattern could not be applied.
    pub fn matches(&self, pattern: &str, text: &str) -> Result<bool, String> {
        let compiled = self.compiled(pattern)?;
        let tick = |count| {
            let remaining_ticks = self.remaining_ticks.get().checked_sub(count);
            self.remaining_ticks.set(remaining_ticks.unwrap_or_default());
            remaining_ticks.map(drop).ok_or(())
        };
        compiled.is_match(text, &tick).map_err(|unfinished| match unfinished {
            SearchFailure::Ended(()) => "matching takes too long: the text is too long for its pattern".into(),
            SearchFailure::Costly(reason) => reason,
        })
    }

    /// Returns the compiled pattern, from the cache if possible. The error describes the mistake in the pattern or the
    /// exceeded limit.
    pub fn compiled(&self, pattern: &str) -> Result<Arc<CompiledPattern>, String> {
        self.patterns.compiled(pattern, "", Syntax::Type)
    }

    /// Returns whether a match takes negligible time, because the pattern is compiled and the string is short.
    pub fn is_quick(&self, pattern: &Arc<str>, text: &str) -> bool {
        text.len() <= QUICK_BYTES && self.patterns.cached(pattern, Syntax::Type).is_some()
    }
}
