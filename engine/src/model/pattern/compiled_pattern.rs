//! A compiled pattern, independent of the engine that runs it.

use std::fmt;

use super::backtracking::BacktrackingPattern;
use super::dialect::{self, TranslatedPattern};
use super::linear::LinearPattern;
use super::search::{PatternMatch, SearchFailure, Tick};

/// The maximum number of Unicode classes, such as `\p{L}`, in a pattern. Most classes contain hundreds of character
/// ranges even before compilation.
const MAX_UNICODE_CLASSES: usize = 256;

/// The syntax of a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Syntax {
    /// The syntax of MongoDB's PCRE. A pattern in this syntax may backtrack.
    Query,
    /// The syntax of the `regex` crate, for patterns in type definitions. A pattern in this syntax describes a regular
    /// language.
    Type,
}

impl Syntax {
    /// Returns the maximum length of a pattern, in bytes. The limit for queries is the same as MongoDB's.
    pub const fn longest_bytes(self) -> usize {
        match self {
            Syntax::Query => 32_764,
            Syntax::Type => 2_000,
        }
    }
}

/// A compiled pattern.
pub struct CompiledPattern {
    engine: PatternEngine,
}

enum PatternEngine {
    Linear(Box<LinearPattern>),
    Backtracking(Box<BacktrackingPattern>),
}

impl CompiledPattern {
    /// Compiles a pattern. Ignores options other than `i`, `m`, `s` and `x`. The error describes the mistake in the
    /// pattern or the exceeded limit.
    pub fn new(pattern: &str, options: &str, syntax: Syntax) -> Result<CompiledPattern, String> {
        if pattern.len() > syntax.longest_bytes() {
            let limit = syntax.longest_bytes();
            return Err(format!("regular expression is too large: at most {limit} bytes are allowed"));
        }
        let translated = match syntax {
            Syntax::Query => dialect::translate(pattern),
            Syntax::Type => TranslatedPattern { pattern: pattern.to_owned(), backtracks: false },
        };
        if dialect::unicode_classes(&translated.pattern) > MAX_UNICODE_CLASSES {
            let limit = MAX_UNICODE_CLASSES;
            return Err(format!("regular expression is too large: at most {limit} Unicode classes are allowed"));
        }
        if !translated.backtracks {
            match LinearPattern::new(translated.pattern.as_str().into(), options.into()) {
                Ok(linear) => return Ok(CompiledPattern { engine: PatternEngine::Linear(Box::new(linear)) }),
                Err(refused) if refused.too_large || syntax == Syntax::Type => return Err(refused.reason),
                // The backtracking engine below may support the pattern.
                Err(_) => {}
            }
        }
        let backtracking = BacktrackingPattern::new(translated.pattern, options.to_owned())?;
        Ok(CompiledPattern { engine: PatternEngine::Backtracking(Box::new(backtracking)) })
    }

    /// Returns the approximate size of the compiled pattern in memory, in bytes, including memory that later searches
    /// may allocate.
    pub fn size_bytes(&self) -> usize {
        match &self.engine {
            PatternEngine::Linear(linear) => linear.size_bytes(),
            PatternEngine::Backtracking(backtracking) => backtracking.size_bytes(),
        }
    }

    /// Returns the approximate size of the compiled pattern in memory, in bytes. The memory that searches allocate is
    /// included only for patterns that backtrack.
    pub fn program_bytes(&self) -> usize {
        match &self.engine {
            PatternEngine::Linear(linear) => linear.program_bytes(),
            PatternEngine::Backtracking(backtracking) => backtracking.size_bytes(),
        }
    }

    /// Returns whether the pattern occurs in the text.
    pub fn is_match<E>(&self, text: &str, tick: Tick<E>) -> Result<bool, SearchFailure<E>> {
        match &self.engine {
            PatternEngine::Linear(linear) => linear.is_match(text, tick),
            PatternEngine::Backtracking(backtracking) => Ok(backtracking.find(text, 0, tick)?.is_some()),
        }
    }

    /// Returns the first match in `text` at or after the byte offset `from`.
    pub fn find<'t, E>(
        &self,
        text: &'t str,
        from: usize,
        tick: Tick<E>,
    ) -> Result<Option<PatternMatch<'t>>, SearchFailure<E>> {
        match &self.engine {
            PatternEngine::Linear(linear) => linear.find(text, from, tick),
            PatternEngine::Backtracking(backtracking) => backtracking.find(text, from, tick),
        }
    }
}

impl fmt::Debug for CompiledPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Compiled").field("size_bytes", &self.size_bytes()).finish_non_exhaustive()
    }
}
