//! The test harness: a server in memory with a fixed clock, and runners for test cases that are stored in files.

#![expect(clippy::panic, reason = "a test that cannot continue panics with the reason")]

pub mod agents;
pub mod apart;
pub mod articles;
pub mod case;
pub mod clock;
pub mod embedded;
pub mod events;
pub mod expectation;
pub mod handles;
pub mod issuer;
pub mod json;
pub mod misspellings;
pub mod program;
pub mod scenario;
pub mod server;
