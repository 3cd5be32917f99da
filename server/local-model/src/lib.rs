//! Models that compute the vectors of texts in the calling process.
//!
//! This crate does not depend on the engine, so the crate is built and tested without the database. The code must not
//! move to a crate that depends on the engine: the additional dependencies would make Cargo compile the database a
//! second time, with other features. Without the feature `candle`, this crate is empty.

#[cfg(feature = "candle")]
pub mod bert;
