//! The data model, and the rules that do not depend on a database.
//!
//! The model has no async code, I/O, clock or randomness. Functions take times and random ids as arguments.

pub mod access;
pub mod address;
pub mod agent;
pub mod aggregate;
pub mod article;
pub mod builtin;
pub mod closed_set;
pub mod date;
pub mod decimal;
pub mod declaration;
pub mod definition;
pub mod depth;
pub mod derivation;
pub mod event;
pub mod exact;
pub mod excerpt;
pub mod facts;
pub mod facts_value;
pub mod feed;
pub mod fields;
pub mod file;
pub mod file_path;
pub mod fold;
pub mod graph;
pub mod id;
pub mod json;
pub mod json_schema;
pub mod license;
pub mod number;
pub mod object;
pub mod pattern;
pub mod payload;
pub mod plan;
pub mod plugin;
pub mod project;
pub mod slug;
pub mod sums;
pub mod task;
pub mod value;
pub mod view;
pub mod violation;
pub mod written;
