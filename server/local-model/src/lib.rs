//! Models that compute the vectors of texts in the calling process.
//!
//! This crate does not depend on the engine, so that it is built and tested without the database. If another crate
//! contained this code, the additional dependencies would make Cargo compile the database a second time, with other
//! features. Without the feature `candle` the crate is empty.

#[cfg(feature = "candle")]
pub mod bert;
