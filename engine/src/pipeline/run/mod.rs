//! Runs compiled programs. Rows pass through the operators one by one. If a table is also stored by column, the first
//! operators read the columns instead of the rows.

pub mod meter;
pub mod operator;
pub mod preview;
pub mod program;
pub mod rows;
mod stopwatch;
pub mod vectorized;
pub mod windows;
