//! The language: from JSON to stages that are checked whole, and the list of all its names.

pub mod ast;
pub mod catalogue;
mod granularity;
pub mod parse;
