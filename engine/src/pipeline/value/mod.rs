//! Operations on single values: access by path, comparison, arithmetic and conversion to text, with their limits and
//! errors.

pub mod arithmetic;
pub mod context;
pub mod conversion;
pub mod documentation;
pub mod error;
pub mod extended_json;
pub mod known_types;
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

pub use crate::model::hint;
