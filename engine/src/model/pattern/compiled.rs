//! A compiled pattern, whichever engine searches with it.

use std::fmt;

use super::backtracking::Backtracking;
use super::dialect;
use super::linear::Linear;
use super::search::{Match, Tick, Unfinished};

/// Classes of Unicode, such as `\p{L}`, that a pattern may name: each has hundreds of ranges before anything is compiled.
const MOST_UNICODE_CLASSES: usize = 256;

/// How a pattern is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Syntax {
    /// As MongoDB's PCRE reads it; it may backtrack.
    Query,
    /// As the `regex` crate reads it; a pattern of a type is of a regular language.
    Type,
}

impl Syntax {
    /// Bytes that a pattern may have. That of queries is MongoDB's own limit.
    pub const fn longest_bytes(self) -> usize {
        match self {
            Syntax::Query => 32_764,
            Syntax::Type => 2_000,
        }
    }
}

/// A compiled pattern.
pub struct Compiled {
    engine: Engine,
}

enum Engine {
    Linear(Box<Linear>),
    Backtracking(Box<Backtracking>),
}

impl Compiled {
    /// Compiles a pattern with those of the options `imsxu` that are known; the error says what is wrong with it.
    pub fn new(pattern: &str, options: &str, syntax: Syntax) -> Result<Compiled, String> {
        if pattern.len() > syntax.longest_bytes() {
            return Err("regular expression is too large".into());
        }
        match syntax {
            Syntax::Type => {
                if dialect::unicode_classes(pattern) > MOST_UNICODE_CLASSES {
                    return Err(too_many_classes());
                }
                let linear = Linear::new(pattern.into(), options.into()).map_err(|refused| refused.reason)?;
                Ok(Compiled { engine: Engine::Linear(Box::new(linear)) })
            }
            Syntax::Query => Compiled::of_query(pattern, options),
        }
    }

    fn of_query(pattern: &str, options: &str) -> Result<Compiled, String> {
        let translated = dialect::translate(pattern);
        if dialect::unicode_classes(&translated.pattern) > MOST_UNICODE_CLASSES {
            return Err(too_many_classes());
        }
        if !translated.backtracks {
            match Linear::new(translated.pattern.as_str().into(), options.into()) {
                Ok(linear) => return Ok(Compiled { engine: Engine::Linear(Box::new(linear)) }),
                Err(refused) if refused.too_large => return Err(refused.reason),
                // What this engine does not know the other one may.
                Err(_) => {}
            }
        }
        let backtracking = Backtracking::new(translated.pattern, options.to_owned())?;
        Ok(Compiled { engine: Engine::Backtracking(Box::new(backtracking)) })
    }

    /// Bytes that the pattern takes, and what searching with it may add to them.
    pub fn size_bytes(&self) -> usize {
        match &self.engine {
            Engine::Linear(linear) => linear.size_bytes(),
            Engine::Backtracking(backtracking) => backtracking.size_bytes(),
        }
    }

    /// Bytes of the pattern itself, without what searching with it may add.
    pub fn program_bytes(&self) -> usize {
        match &self.engine {
            Engine::Linear(linear) => linear.program_bytes(),
            Engine::Backtracking(backtracking) => backtracking.size_bytes(),
        }
    }

    /// Whether the pattern occurs in the text.
    pub fn is_match<E>(&self, text: &str, tick: Tick<E>) -> Result<bool, Unfinished<E>> {
        match &self.engine {
            Engine::Linear(linear) => linear.is_match(text, tick),
            Engine::Backtracking(backtracking) => Ok(backtracking.find(text, 0, tick)?.is_some()),
        }
    }

    /// The first match at or after a place.
    pub fn find<'t, E>(&self, text: &'t str, from: usize, tick: Tick<E>) -> Result<Option<Match<'t>>, Unfinished<E>> {
        match &self.engine {
            Engine::Linear(linear) => linear.find(text, from, tick),
            Engine::Backtracking(backtracking) => backtracking.find(text, from, tick),
        }
    }
}

impl fmt::Debug for Compiled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Compiled").field("size_bytes", &self.size_bytes()).finish_non_exhaustive()
    }
}

fn too_many_classes() -> String {
    format!("regular expression is too large: more than {MOST_UNICODE_CLASSES} classes of Unicode")
}
