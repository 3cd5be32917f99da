//! Regular expressions of clients, with limits on compilation and search, and a cache of compiled patterns.
//!
//! For patterns that are regular languages, the time of a search is proportional to the length of the text. Such
//! searches report their work by ticks. Other patterns backtrack. The limit on the backtracking steps of one search
//! depends on the length of the text and the size of the pattern.

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
