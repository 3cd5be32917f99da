//! The wire types of requests and responses: bodies, pages, closed sets of strings, and one file for each resource that
//! several operations return.
//!
//! The schema of each type in the OpenAPI document describes the JSON that the server parses or serializes. The
//! engine's data, such as `TaskView` and `Event`, defines no wire format. Therefore the types of responses that show
//! such data declare their fields together with their values (`shown.rs`). `request_body.rs` reads fields with several
//! names.

pub mod activation;
pub mod append_result;
pub mod article;
pub mod backup;
pub mod body;
pub mod closed_sets;
pub mod delivery;
pub mod event;
pub mod exact_numbers;
pub mod faults;
pub mod idempotency;
pub mod json;
pub mod key;
pub mod list;
pub mod names;
pub mod new_event;
pub mod page;
pub mod parked;
pub mod patch;
pub mod plan;
pub mod plugin;
pub mod project;
pub mod raw_body;
pub mod request_body;
pub mod response;
pub mod shown;
pub mod successor;
pub mod task;
pub mod trial;
pub mod workspace;
