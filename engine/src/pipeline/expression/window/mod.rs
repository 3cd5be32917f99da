//! Window functions, which compute a value for each row from the rows around it.

mod bounds;
mod function;
mod operator;
mod parse;

pub use bounds::{Bound, Bounds};
pub use function::{Function, Ranking, Scale};
pub use operator::catalogue;
pub use parse::{Output, Sorting, parse};
