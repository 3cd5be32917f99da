//! Tests that the scenarios show every operation of the OpenAPI document with every status of the operation.
//! `tests/coverage.txt` lists exceptions: one line for each status of a fault that any operation may return, and one
//! line for each other exception. The list may become shorter, but not longer.

use std::collections::BTreeSet;

use foldwork_server::{API, Config};
use foldwork_tests::expectation::{all_well, compare, files, read, root};
use foldwork_tests::scenario::{Exchange, exchanges};
use serde_json::Value;
use strum::VariantArray;

use crate::faults::Fault;

/// The statuses that the scenarios need not cover, because other tests cover these statuses. The test `matrix` calls
/// every operation as every kind of caller, and so covers 401, 402 and 403. The socket tests cover 408, the status for a
/// body that does not arrive in time.
const COVERED_ELSEWHERE: [&str; 4] = ["401", "402", "403", "408"];
/// The operations and statuses that need two concurrent requests, each with the test that covers it. Scenarios have no
/// concurrent requests.
const CONCURRENT: [(&str, &str); 1] =
    [("rebuild_graph 409", "tests/suite/consumer.rs:one_of_two_concurrent_rebuilds_fails_and_the_graph_is_complete")];

/// An operation of the document.
pub struct Operation {
    pub id: String,
    pub method: String,
    /// The path with its parameters in braces.
    pub path: String,
    /// Whether the operation takes a body.
    pub has_body: bool,
    statuses: BTreeSet<String>,
}

/// Returns all operations, sorted by the number of parameters in their paths.
pub fn operations() -> Vec<Operation> {
    let document = foldwork_server::openapi(&Config::default());
    let paths = document["paths"].as_object().into_iter().flatten();
    let named = paths.flat_map(|(path, item)| {
        let operations = item.as_object().into_iter().flatten();
        operations.filter_map(|(method, operation)| operation_of(base(item), path, method, operation))
    });
    let mut operations: Vec<Operation> = named.collect();
    operations.sort_by_key(|operation| operation.path.matches('{').count());
    operations
}

/// Returns the base path of a path item: the URL of the item's own server if the item names one, otherwise the base
/// path of the API.
fn base(item: &Value) -> &str {
    item["servers"][0]["url"].as_str().unwrap_or(API)
}

fn operation_of(base: &str, path: &str, method: &str, operation: &Value) -> Option<Operation> {
    Some(Operation {
        id: operation["operationId"].as_str()?.to_owned(),
        method: method.to_ascii_uppercase(),
        path: format!("{base}{path}"),
        has_body: operation.get("requestBody").is_some(),
        statuses: operation["responses"].as_object()?.keys().cloned().collect(),
    })
}

#[test]
fn every_operation_and_status_occurs_in_a_scenario_except_for_listed_ones() {
    let operations = operations();
    let (reached, mut failures) = reached(&operations);
    let mut missing = BTreeSet::new();
    for operation in &operations {
        for status in &operation.statuses {
            let line = format!("{} {status}", operation.id);
            if COVERED_ELSEWHERE.contains(&status.as_str()) {
                continue;
            }
            if Fault::VARIANTS.iter().any(|fault| fault.status().as_str() == status) {
                missing.insert(format!("* {status}"));
            } else if !reached.contains(&line) && !CONCURRENT.iter().any(|(concurrent, _)| *concurrent == line) {
                missing.insert(line);
            }
        }
    }
    for (line, test) in CONCURRENT {
        let (file, name) = test.split_once(':').unwrap_or_default();
        if reached.contains(line) || !read(&root().join(file)).contains(&format!("fn {name}()")) {
            failures.push(format!("the test {test} does not exist, or a scenario covers {line} as well"));
        }
    }
    let path = root().join("tests/coverage.txt");
    let listed = read(&path);
    let listed: BTreeSet<String> = listed.lines().map(str::to_owned).collect();
    failures.extend(missing.difference(&listed).map(|line| format!("no scenario covers {line}")));
    // An update only removes lines, so the new list is never longer than the old one.
    let kept: String = missing.intersection(&listed).map(|line| format!("{line}\n")).collect();
    failures.extend(compare(&path, &kept).err());
    all_well(failures);
}

/// Returns the operations and statuses in the scenarios, and a failure for each operation and status that the document
/// lacks.
fn reached(operations: &[Operation]) -> (BTreeSet<String>, Vec<String>) {
    let (mut reached, mut failures) = (BTreeSet::new(), Vec::new());
    for file in files("api", "yaml") {
        for exchange in exchanges(&file) {
            let Some(operation) = meant(operations, &exchange) else { continue };
            let line = format!("{} {}", operation.id, exchange.status);
            // A request with an unsupported method calls no operation, even if the path of another operation matches.
            if !operation.statuses.contains(&exchange.status) && exchange.status != "405" {
                failures.push(format!("{}: {line} is not in the document", file.display()));
            }
            reached.insert(line);
        }
    }
    (reached, failures)
}

/// Returns the operation that a request calls.
pub fn meant<'a>(operations: &'a [Operation], exchange: &Exchange) -> Option<&'a Operation> {
    // Paths with fewer parameters come first, so a fixed path has precedence over a path with a parameter.
    operations.iter().find(|operation| operation.method == exchange.method && fits(&operation.path, &exchange.path))
}

fn fits(path: &str, requested: &str) -> bool {
    let (path, requested): (Vec<_>, Vec<_>) = (path.split('/').collect(), requested.split('/').collect());
    path.len() == requested.len()
        && path
            .iter()
            .zip(requested)
            .all(|(part, requested)| (part.starts_with('{') && !requested.is_empty()) || *part == requested)
}
