//! What is asked of one row: expressions, filters and projections; and of many, accumulators.

pub mod accumulator;
pub mod expr;
pub mod filter;
pub mod projection;
