//! Runs programs: passes rows through operators, or reads columns instead of rows where a table has columns.

pub mod meter;
pub mod operator;
pub mod program;
pub mod rows;
pub mod vectorized;
