//! Evaluation of rows: expressions, filters and projections for single rows, and accumulators and window
//! functions for many rows.

pub mod accumulator;
pub mod expr;
pub mod filter;
pub mod input_value;
pub mod projection;
mod quantifier;
pub mod read_fields;
pub mod window;
