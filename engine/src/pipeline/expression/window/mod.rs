//! Window functions, which compute a value for each row from the rows around the row.

mod bounds;
mod function;
mod operator;
mod parse;

pub use bounds::{Bounds, WindowBound};
pub use function::{Ranking, Scale, WindowFunction};
pub use operator::catalogue;
pub use parse::{WindowOrder, WindowOutput, parse};
