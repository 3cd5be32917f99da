//! The interface between a pipeline and its sources: the scans that a pipeline requests, and the tables that sources
//! return.

mod describe;
pub mod positions;
pub mod scan;
pub mod streams;
pub mod surrealql;
pub mod table;
