//! Runs programs: passes rows through operators, and uses columns instead of rows where a table keeps them.

pub mod meter;
pub mod operator;
pub mod program;
pub mod rows;
pub mod vectorized;
