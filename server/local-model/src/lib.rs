//! Models that make vectors of texts in the process that asks.
//!
//! A crate of its own, because it needs nothing of the engine: it is built and tested without the database, which the
//! features of its dependencies would have compiled a second time. Without the feature `candle` there is nothing in it.

#[cfg(feature = "candle")]
pub mod bert;
