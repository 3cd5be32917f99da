//! All tests that need no socket. The tests themselves are in the modules.

mod admission;
mod admitted;
mod catalogue;
mod consumer;
mod content;
mod contract;
mod coverage;
mod crashed;
mod depth;
mod edge;
mod examples;
mod exports;
mod faults;
mod files;
mod first_start;
mod generated;
mod hostile;
mod idempotent;
mod kept;
mod linked;
mod log;
mod mailbox;
mod matrix;
mod mcp;
mod memory;
mod mounted;
mod numbers;
mod operations;
mod pages;
mod pipelines;
mod random;
mod reads;
mod redefined;
mod removed;
mod reopened;
mod replay;
mod retried_steps;
mod scenarios;
mod scripts;
mod search;
mod shared_store;
mod tidy;
mod tokens;
mod uploads;
mod vectors;

use foldwork_plugins::memory::Counting;

/// Counts the memory that scripts allocate, as the program does.
#[global_allocator]
static ALLOCATOR: Counting<tikv_jemallocator::Jemalloc> = Counting(tikv_jemallocator::Jemalloc);
