//! The harness: a whole server in memory with a fixed clock, and the formats in which tests are written as data.

#![expect(clippy::panic, reason = "a test that cannot go on says why and ends")]

pub mod agents;
pub mod apart;
pub mod case;
pub mod clock;
pub mod embedded;
pub mod entered;
pub mod expectation;
pub mod issuer;
pub mod json;
pub mod perturbed;
pub mod program;
pub mod recorded;
pub mod scenario;
pub mod server;
