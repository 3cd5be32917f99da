//! Pipeline cases.
