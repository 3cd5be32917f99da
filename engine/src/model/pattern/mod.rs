//! Regular expressions of clients: compiling one and searching with one have bounds, and equal ones are compiled once.
//!
//! Patterns of regular languages take time in proportion to the text, and tick while they do. Other patterns backtrack: the
//! steps back of one search are bounded by the length of its text and the size of the pattern.

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
