//! Programs at work: rows through operators, and columns in the place of rows where a table keeps them.

pub mod meter;
pub mod operator;
pub mod program;
pub mod rows;
pub mod vectorized;
