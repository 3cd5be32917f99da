//! All tests that need no socket, in modules by subject.

mod access_races;
mod admission;
mod catalogue;
mod consumer;
mod content;
mod contract;
mod coverage;
mod crashes;
mod dashboard;
mod depth;
mod edge;
mod examples;
mod exports;
mod faults;
mod file_links;
mod files;
mod first_start;
mod generated;
mod handbook;
mod hostile;
mod idempotency;
mod invitations;
mod listings;
mod log;
mod mailbox;
mod matrix;
mod mcp;
mod memory;
mod numbers;
mod operations;
mod pages;
mod pipelines;
mod plugin_paths;
mod plugin_reload;
mod plugin_removal;
mod query_memory;
mod random;
mod random_states;
mod reads;
mod replay;
mod restarts;
mod restores;
mod scenarios;
mod scripts;
mod search;
mod shared_store;
mod slug_import;
mod step_retries;
mod succession;
mod tidy;
mod tokens;
mod type_redefinition;
mod unknown_fields;
mod uploads;
mod vectors;
mod workspace_deletion;

use foldwork_plugins::memory::CountingAllocator;

/// The allocator of the tests. Like the allocator of the server program, this allocator counts the memory that scripts
/// allocate.
#[global_allocator]
static ALLOCATOR: CountingAllocator<tikv_jemallocator::Jemalloc> = CountingAllocator(tikv_jemallocator::Jemalloc);
