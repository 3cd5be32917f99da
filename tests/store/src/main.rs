//! Runs SurrealDB, with the command line of the program `surreal`.

#![recursion_limit = "256"]

use std::process::ExitCode;

fn main() -> ExitCode {
    surrealdb_server::init(surrealdb_core::CommunityComposer())
}
