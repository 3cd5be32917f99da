//! Planning: turns stages into an optimized program of scans and operators.

pub mod explain;
pub mod logical;
pub mod lower;
pub mod optimize;
pub mod options;
pub mod preview;
pub mod read_types;
mod vectorize;
