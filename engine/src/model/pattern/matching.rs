//! Matches the texts of a payload against the patterns of the payload's type.

use std::cell::Cell;
use std::sync::Arc;

use super::compiled::{Compiled, Syntax};
use super::kept::Patterns;
use super::search::Unfinished;

/// Maximum number of ticks for all patterns of one payload: about half a second in the worst case.
const TICKS: usize = 100_000;
/// Maximum length of a text, in bytes, that is matched fast enough not to delay other work on the thread.
const QUICK_BYTES: usize = 4 << 10;

/// Matches the texts of one payload, with one budget for all of them.
pub struct Matching<'p> {
    patterns: &'p Patterns,
    left: Cell<usize>,
}

impl<'p> Matching<'p> {
    pub fn new(patterns: &'p Patterns) -> Matching<'p> {
        Matching { patterns, left: Cell::new(TICKS) }
    }

    /// Returns whether a text matches. The error describes why the match could not be decided.
    pub fn matches(&self, pattern: &str, text: &str) -> Result<bool, String> {
        let compiled = self.compiled(pattern)?;
        let tick = |count| {
            let left = self.left.get().checked_sub(count);
            self.left.set(left.unwrap_or_default());
            left.map(drop).ok_or(())
        };
        compiled.is_match(text, &tick).map_err(|unfinished| match unfinished {
            Unfinished::Ended(()) => "matching takes too long: the text is too long for its pattern".into(),
            Unfinished::Costly(reason) => reason,
        })
    }

    /// Returns the compiled pattern.
    pub fn compiled(&self, pattern: &str) -> Result<Arc<Compiled>, String> {
        self.patterns.compiled(pattern, "", Syntax::Type)
    }

    /// Returns whether a match takes negligible time, because the pattern is compiled and the text is short.
    pub fn is_quick(&self, pattern: &Arc<str>, text: &str) -> bool {
        text.len() <= QUICK_BYTES && self.patterns.kept(pattern, Syntax::Type).is_some()
    }
}
