//! Models that compute the vectors of texts in the calling process.
//!
//! The crate is separate because it does not depend on the engine. It is built and tested without the database.
//! Otherwise, the database would be compiled a second time, with the features of this crate's dependencies. Without the
//! feature `candle` the crate is empty.

#[cfg(feature = "candle")]
pub mod bert;
