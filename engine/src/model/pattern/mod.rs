//! Regular expressions of clients, with limits on compilation and search, and a cache of compiled patterns.
//!
//! Patterns that are regular languages take time in proportion to the text, and report their work by ticks. Other
//! patterns backtrack: the backtracking steps of one search are limited by the length of the text and the size of the
//! pattern.

mod backtracking;
mod compiled;
mod dialect;
mod kept;
mod linear;
mod matching;
mod search;

pub use compiled::{Compiled, Syntax};
pub use kept::Patterns;
pub use matching::Matching;
pub use search::{Match, Unfinished};
