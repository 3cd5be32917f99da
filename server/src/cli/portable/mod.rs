//! The format of exports: one JSON object per line, and beside it a folder with the bytes of files.
//!
//! The first line names the format. Then come projects, the definitions of types at their places, events in the order of
//! the log, and a last line. Files of events without such a first line are imported as well.

pub mod folder;
pub mod lines;
pub mod people;
pub mod restore;
pub mod source;
pub mod store;
