//! The test harness: a whole server in memory with a fixed clock, and parsers for tests written as data.

#![expect(clippy::panic, reason = "a test that cannot continue panics with the reason")]

pub mod agents;
pub mod apart;
pub mod case;
pub mod clock;
pub mod embedded;
pub mod expectation;
pub mod handles;
pub mod issuer;
pub mod json;
pub mod perturbed;
pub mod program;
pub mod recorded;
pub mod scenario;
pub mod server;
