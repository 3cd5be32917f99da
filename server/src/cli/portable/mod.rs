//! The format of exports: a file with one JSON object per line, and a folder with the bytes of files.
//!
//! The first line contains the version of the format. Members and keys follow, if they are exported, then the projects,
//! and then the events in the order of the log. Each definition of a type precedes the events to which it applies. A
//! project that was created during the export precedes its first event. The last line contains the number of events.
//! Files of events without such a first line can be imported as well.

pub mod folder;
mod import_errors;
pub mod lines;
pub mod people;
mod recorded_fields;
pub mod restore;
mod slugs;
pub mod source;
pub mod store;
