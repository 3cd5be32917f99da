//! Everything that is tested without a socket. What the tests are is in files beside this one.

mod catalogue;
mod coverage;
mod edge;
mod generated;
mod pages;
mod pipelines;
mod random;
mod reopened;
mod replay;
mod scenarios;
mod scripts;
mod search;
mod shared_store;
mod tidy;
mod vectors;
