//! What every part of the server needs of HTTP: errors, tokens, entity tags, bodies, streams and the shutdown. Nothing here
//! knows an operation.

pub mod bearer;
pub mod bodies;
pub mod error;
pub mod etag;
pub mod offloading;
mod pace;
pub mod public_url;
pub mod routes;
pub mod shutdown;
pub mod streams;
