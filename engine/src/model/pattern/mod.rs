//! Regular expressions of clients, with limits on compilation and search, and a cache of compiled patterns.
//!
//! For patterns that are regular languages, the time of a search is proportional to the length of the text. Other
//! patterns backtrack. The limit on the backtracking steps of one search depends on the length of the text and the size
//! of the pattern. All searches report their work in ticks.

mod backtracking;
mod cache;
mod compiled_pattern;
mod dialect;
mod linear;
mod matcher;
mod search;

pub use cache::Patterns;
pub use compiled_pattern::{CompiledPattern, Syntax};
pub use matcher::PatternMatcher;
pub use search::{PatternMatch, SearchFailure};
