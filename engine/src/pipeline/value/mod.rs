//! What is known of single values: how they are reached, compared, counted and written, what working on them may take,
//! and how it fails.

pub mod context;
pub mod error;
pub mod extended;
pub mod hint;
pub mod memory;
pub mod number;
pub mod path;
pub mod query_path;
pub mod regex;
pub mod sort_by;
pub mod sort_key;
pub mod sorting;
pub mod statistics;
pub mod sum;
pub mod word;
