//! What a pipeline asks of those who hold the rows, and what they hand over.

mod describe;
pub mod positions;
pub mod scan;
pub mod streams;
pub mod surrealql;
pub mod table;
