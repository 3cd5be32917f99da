//! Every operation and status of the document occurs in a scenario; those that do not are listed, and the list may
//! only shrink.

use std::collections::BTreeSet;

use foldwork_server::{API, Config};
use foldwork_tests::expectation::{all_well, files, root, settle};
use foldwork_tests::scenario::exchanges;

#[test]
fn every_operation_and_status_occurs_in_a_scenario() {
    let document = foldwork_server::openapi(&Config::default());
    let mut missing = BTreeSet::new();
    let mut routes: Vec<(String, String, String)> = Vec::new();
    for (path, item) in document["paths"].as_object().into_iter().flatten() {
        for (method, operation) in item.as_object().into_iter().flatten() {
            let Some(id) = operation["operationId"].as_str() else { continue };
            routes.push((method.to_ascii_uppercase(), format!("{API}{path}"), id.to_owned()));
            let statuses = operation["responses"].as_object().into_iter().flatten();
            missing.extend(statuses.map(|(status, _)| format!("{id} {status}")));
        }
    }
    // Where a fixed path and one with a parameter fit, the fixed one is meant.
    routes.sort_by_key(|(_, path, _)| path.matches('{').count());
    let mut strange = Vec::new();
    for file in files("api", "yaml") {
        for exchange in exchanges(&file) {
            let fitting =
                routes.iter().find(|(method, path, _)| *method == exchange.method && fits(path, &exchange.path));
            let Some((_, _, id)) = fitting else { continue };
            let reached = format!("{id} {}", exchange.status);
            let declared = document_has(&document, id, &exchange.status);
            // A method that the path does not know is no operation, even where another path would fit.
            if !declared && exchange.status != "405" {
                strange.push(format!("{}: {reached} is not in the document", file.display()));
            }
            missing.remove(&reached);
        }
    }
    let list: String = missing.iter().map(|line| format!("{line}\n")).collect();
    strange.extend(settle(&root().join("tests/coverage.txt"), &list).err());
    all_well(strange);
}

#[test]
fn nothing_is_left_out_that_a_scenario_can_reach() {
    let listed = foldwork_tests::expectation::read(&root().join("tests/coverage.txt"));
    let reachable = |line: &&str| !["402", "429", "500", "503"].iter().any(|status| line.ends_with(status));
    all_well(listed.lines().filter(reachable).map(|line| format!("no scenario shows {line}")).collect());
}

fn document_has(document: &serde_json::Value, id: &str, status: &str) -> bool {
    let operations = document["paths"].as_object().into_iter().flatten();
    let mut operations = operations.flat_map(|(_, item)| item.as_object().into_iter().flatten());
    operations.any(|(_, operation)| operation["operationId"] == *id && operation["responses"].get(status).is_some())
}

fn fits(path: &str, asked: &str) -> bool {
    let (path, asked): (Vec<_>, Vec<_>) = (path.split('/').collect(), asked.split('/').collect());
    path.len() == asked.len()
        && path.iter().zip(asked).all(|(part, asked)| (part.starts_with('{') && !asked.is_empty()) || *part == asked)
}
