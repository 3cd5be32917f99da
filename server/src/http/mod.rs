//! HTTP code that all parts of the server share, such as errors, tokens, entity tags, bodies, streams, the archiver and
//! the shutdown. Apart from the paths in `bodies.rs` and `routes.rs`, no code in this module depends on a particular
//! operation.

pub mod archiving;
pub mod bearer;
pub mod bodies;
pub mod client_address;
pub mod error;
pub mod etag;
pub mod offloading;
pub mod public_url;
pub mod request_fault;
pub mod routes;
pub mod shutdown;
pub mod streams;
mod upload_rate;
