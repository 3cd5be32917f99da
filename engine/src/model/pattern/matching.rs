//! Texts of payloads against the patterns of their type.

use std::cell::Cell;
use std::sync::Arc;

use super::compiled::{Compiled, Syntax};
use super::kept::Patterns;
use super::search::Unfinished;

/// Ticks that the patterns of one payload may take together, about half a second at worst.
const TICKS: usize = 100_000;
/// Bytes of a text that takes no time worth moving other work away for.
const QUICK_BYTES: usize = 4 << 10;

/// Checks the texts of one payload.
pub struct Matching<'p> {
    patterns: &'p Patterns,
    left: Cell<usize>,
}

impl<'p> Matching<'p> {
    pub fn new(patterns: &'p Patterns) -> Matching<'p> {
        Matching { patterns, left: Cell::new(TICKS) }
    }

    /// Whether a text matches; the error says why that cannot be told.
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

    /// The pattern, compiled.
    pub fn compiled(&self, pattern: &str) -> Result<Arc<Compiled>, String> {
        self.patterns.compiled(pattern, "", Syntax::Type)
    }

    /// Whether matching is no work to speak of: the pattern is compiled, and the text is short.
    pub fn is_quick(&self, pattern: &Arc<str>, text: &str) -> bool {
        text.len() <= QUICK_BYTES && self.patterns.kept(pattern, Syntax::Type).is_some()
    }
}
