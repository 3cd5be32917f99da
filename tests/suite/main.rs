//! All tests that need no socket, in modules by subject.

mod admission;
mod admitted;
mod backed_up;
mod catalogue;
mod closed;
mod consumer;
mod content;
mod contract;
mod coverage;
mod crashed;
mod dashboard;
mod deleted;
mod depth;
mod edge;
mod examples;
mod exports;
mod faults;
mod file_links;
mod files;
mod first_start;
mod generated;
mod hostile;
mod idempotent;
mod imported_slugs;
mod invitations;
mod kept;
mod linked;
mod listings;
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
mod reloaded;
mod removed;
mod reopened;
mod replay;
mod retried_steps;
mod scenarios;
mod scripts;
mod search;
mod shared_store;
mod succession;
mod tidy;
mod tokens;
mod uploads;
mod vectors;

use foldwork_plugins::memory::CountingAllocator;

/// The allocator of the tests, which counts the memory that scripts allocate, like the allocator of the program.
#[global_allocator]
static ALLOCATOR: CountingAllocator<tikv_jemallocator::Jemalloc> = CountingAllocator(tikv_jemallocator::Jemalloc);
