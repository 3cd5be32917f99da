//! Every operation and status of the document occurs in a scenario. What no scenario can reach is listed: the faults that
//! any operation may meet once each, anything else a line of its own. The list only shrinks.

use std::collections::BTreeSet;

use foldwork_server::{API, Config};
use foldwork_tests::expectation::{all_well, compare, files, read, root};
use foldwork_tests::scenario::{Exchange, exchanges};
use serde_json::Value;

use crate::faults::Fault;

/// What depends on who calls: `matrix` calls every operation as everybody.
const OF_CALLERS: [&str; 3] = ["401", "402", "403"];

/// An operation of the document.
pub struct Operation {
    pub id: String,
    pub method: String,
    /// With its parameters in braces.
    pub path: String,
    statuses: BTreeSet<String>,
}

/// All of them, those whose paths have the fewest parameters first.
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

/// Where the operations of a path are reached: those that name no server of their own, below the API.
fn base(item: &Value) -> &str {
    item["servers"][0]["url"].as_str().unwrap_or(API)
}

fn operation_of(base: &str, path: &str, method: &str, operation: &Value) -> Option<Operation> {
    Some(Operation {
        id: operation["operationId"].as_str()?.to_owned(),
        method: method.to_ascii_uppercase(),
        path: format!("{base}{path}"),
        statuses: operation["responses"].as_object()?.keys().cloned().collect(),
    })
}

#[test]
fn every_operation_and_status_occurs_in_a_scenario() {
    let operations = operations();
    let (reached, mut failures) = reached(&operations);
    let mut missing = BTreeSet::new();
    for operation in &operations {
        for status in &operation.statuses {
            let line = format!("{} {status}", operation.id);
            if OF_CALLERS.contains(&status.as_str()) {
                continue;
            }
            if Fault::ALL.iter().any(|fault| fault.status().as_str() == status) {
                missing.insert(format!("* {status}"));
            } else if !reached.contains(&line) {
                missing.insert(line);
            }
        }
    }
    let path = root().join("tests/coverage.txt");
    let listed = read(&path);
    let listed: BTreeSet<String> = listed.lines().map(str::to_owned).collect();
    failures.extend(missing.difference(&listed).map(|line| format!("no scenario shows {line}")));
    // What is rewritten is never longer than what is there.
    let kept: String = missing.intersection(&listed).map(|line| format!("{line}\n")).collect();
    failures.extend(compare(&path, &kept).err());
    all_well(failures);
}

/// What the scenarios reach, and what they show that the document does not know.
fn reached(operations: &[Operation]) -> (BTreeSet<String>, Vec<String>) {
    let (mut reached, mut failures) = (BTreeSet::new(), Vec::new());
    for file in files("api", "yaml") {
        for exchange in exchanges(&file) {
            let Some(operation) = meant(operations, &exchange) else { continue };
            let line = format!("{} {}", operation.id, exchange.status);
            // A method that the path does not know is no operation, even where another path would fit.
            if !operation.statuses.contains(&exchange.status) && exchange.status != "405" {
                failures.push(format!("{}: {line} is not in the document", file.display()));
            }
            reached.insert(line);
        }
    }
    (reached, failures)
}

/// The operation that a request asks for.
pub fn meant<'a>(operations: &'a [Operation], exchange: &Exchange) -> Option<&'a Operation> {
    // Where a fixed path and one with a parameter fit, the fixed one is meant.
    operations.iter().find(|operation| operation.method == exchange.method && fits(&operation.path, &exchange.path))
}

fn fits(path: &str, asked: &str) -> bool {
    let (path, asked): (Vec<_>, Vec<_>) = (path.split('/').collect(), asked.split('/').collect());
    path.len() == asked.len()
        && path.iter().zip(asked).all(|(part, asked)| (part.starts_with('{') && !asked.is_empty()) || *part == asked)
}
