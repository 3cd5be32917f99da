//! The interface between a pipeline and the holders of rows: what a pipeline requests and what a source returns.

mod describe;
pub mod positions;
pub mod scan;
pub mod streams;
pub mod surrealql;
pub mod table;
