//! The pipeline language: parses JSON into checked stages, and lists all names of the language.

pub mod ast;
pub mod catalogue;
mod granularity;
pub mod parse;
pub mod rows;
