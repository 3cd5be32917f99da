//! Everything that is tested without a socket. What the tests are is in files beside this one.

mod catalogue;
mod coverage;
mod edge;
mod generated;
mod memory;
mod pages;
mod pipelines;
mod reopened;
mod replay;
mod scenarios;
mod shared_store;
mod tidy;
