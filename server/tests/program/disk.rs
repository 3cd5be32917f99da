//! Tests the readiness check while the disk is full. The tests limit the size of the process's files instead of filling
//! a disk: a write beyond the limit fails in the same way, and no other process is affected.

use std::path::Path;
use std::process::Command;

use crate::process::{Program, foldwork, key, until};

/// Sets the limit on the size of a file that the process may write.
fn limit(program: &Program, bytes: &str) {
    let limit = format!("--fsize={bytes}:");
    let status = Command::new("prlimit").args(["--pid", &program.id(), &limit]).status().expect("prlimit");
    assert!(status.success());
}

/// Returns the size of the largest file in a folder.
fn largest(folder: &Path) -> u64 {
    let size = |entry: std::fs::DirEntry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => largest(&entry.path()),
        metadata => metadata.map_or(0, |metadata| metadata.len()),
    };
    std::fs::read_dir(folder).expect("a folder").flatten().map(size).max().unwrap_or(0)
}

#[test]
fn a_server_that_cannot_commit_is_not_ready_until_the_disk_accepts_commits() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = foldwork(folder.path(), &["serve"]);
    let program = Program::start(command.env("FOLDWORK_BOOTSTRAP_KEY", key('7')));
    let bearer = format!("Bearer {}", key('7'));
    let append = |bytes: usize| {
        let payload = format!(r#"{{"title": "t", "body": "{}"}}"#, "x".repeat(bytes));
        let event =
            format!(r#"{{"aggregate_type": "article", "event_type": "article.created", "payload": {payload}}}"#);
        let path = format!("/api/v1/aggregates/{}/events", uuid::Uuid::now_v7());
        program.status("POST", &path, &[("authorization", &bearer)], &event)
    };
    let ready = || program.status("GET", "/readyz", &[], "");
    assert_eq!((append(10), ready()), (201, 200));
    // A small record still fits, as on a disk that is almost full.
    limit(&program, &(largest(folder.path()) + 3_000).to_string());
    assert_eq!(append(100_000), 503);
    assert_eq!(ready(), 503, "the readiness right after a refused commit");
    let unready = program.ask("GET", "/readyz", &[], "");
    assert!(unready.contains("\"reason\":\"store\""), "{unready}");
    limit(&program, "unlimited");
    until("readiness", || ready() == 200);
    assert_eq!(append(100_000), 201);
}
