//! Everything that is tested without a socket. What the tests are is in files beside this one.

mod coverage;
mod generated;
mod pipelines;
mod replay;
mod scenarios;
mod shared_store;
mod tidy;
