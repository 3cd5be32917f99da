//! Replays pipeline cases: a few cases from this repository, and many recorded cases from the folder that
//! `FOLDWORK_SHARED` names. Recorded cases that differ are listed in `tests/replay/known.txt` with their reasons. The
//! list may only shrink.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use foldwork_engine::Error;
use foldwork_engine::model::json;
use foldwork_engine::model::value::{Object, Value};
use foldwork_engine::pipeline::error::PipelineErrorCode;
use foldwork_engine::workspace::query::Query;
use foldwork_tests::expectation::{all_well, compare, read, root};
use foldwork_tests::handles::Handles;
use foldwork_tests::server::Server;
use serde::Deserialize;

/// The placeholder of a foreign source in a recorded pipeline.
const FOREIGN: &str = "__FOREIGN__";
/// The names of the files without their extension. A case is identified by its file and its line.
const FILES: [&str; 2] = ["cases", "lookup_cases"];

#[derive(Deserialize)]
struct Recorded {
    docs: Value,
    pipeline: Value,
    expected: Option<Value>,
    error_code: Option<i32>,
    #[serde(default)]
    unordered: bool,
    foreign_docs: Option<Value>,
}

#[tokio::test(flavor = "multi_thread")]
async fn replayed_cases_of_this_repository_return_the_expected_results() {
    let server = Server::start().await.expect("a server");
    let workspace = server.workspace("owner").await.expect("a workspace");
    let mut wrong = Vec::new();
    for (line, text) in read(&root().join("tests/replay/own.ndjson")).lines().enumerate() {
        wrong.extend(replayed(&workspace, text).await.err().map(|difference| format!("own:{} {difference}", line + 1)));
    }
    all_well(wrong);
}

#[tokio::test(flavor = "multi_thread")]
async fn recorded_pipelines_match_except_for_known_differences() {
    let Ok(shared) = std::env::var("FOLDWORK_SHARED") else {
        eprintln!("skipped: FOLDWORK_SHARED names no folder of recorded pipelines");
        return;
    };
    let folder = Path::new(&shared).join("corpus/pipeline");
    let server = Server::start().await.expect("a server");
    let workspace = server.workspace("owner").await.expect("a workspace");
    let mut different = BTreeMap::new();
    for file in FILES {
        for (line, text) in read(&folder.join(format!("{file}.ndjson"))).lines().enumerate() {
            if let Err(difference) = replayed(&workspace, text).await {
                different.insert((file.to_owned(), line + 1), difference);
            }
        }
    }
    let text = read(&list());
    let known: Vec<((String, usize), &str)> = text.lines().map(known).collect();
    let mut wrong: Vec<String> = different
        .iter()
        .filter(|(case, _)| !known.iter().any(|(listed, _)| listed == *case))
        .map(|((file, line), difference)| format!("{file}:{line} {difference}"))
        .collect();
    // An update only removes cases that no longer differ.
    let remaining: String = known
        .iter()
        .filter(|(case, _)| different.contains_key(case))
        .map(|((file, line), reason)| format!("{file}:{line} {reason}\n"))
        .collect();
    wrong.extend(compare(&list(), &remaining).err());
    all_well(wrong);
}

#[test]
fn every_known_difference_has_a_reason() {
    let text = read(&list());
    let known: Vec<((String, usize), &str)> = text.lines().map(known).collect();
    let in_order = |pair: &[((String, usize), &str)]| pair[0].0 < pair[1].0;
    assert!(known.windows(2).all(in_order), "the list is in order, and names no case twice");
    for ((file, _), reason) in &known {
        assert!(FILES.contains(&&**file) && reason.split_whitespace().count() > 1, "{file} {reason}");
    }
}

fn list() -> PathBuf {
    root().join("tests/replay/known.txt")
}

/// Parses a line of the list into the case and the reason for its difference.
fn known(line: &str) -> ((String, usize), &str) {
    let (case, reason) = line.split_once(' ').expect("a case and its reason");
    let (file, number) = case.split_once(':').expect("a file and a line of it");
    ((file.to_owned(), number.parse().expect("a line's number")), reason)
}

/// Runs one case. The error describes the difference.
async fn replayed(workspace: &Handles, line: &str) -> Result<(), String> {
    let recorded: Recorded = serde_json::from_str(line).expect("a recorded case");
    let first = Value::from(Object::from_iter([("$documents", recorded.docs)]));
    let foreign = recorded.foreign_docs.unwrap_or_else(|| Value::from(Vec::new()));
    let rest = with_foreign(&recorded.pipeline, &foreign);
    let stages: Vec<Value> = std::iter::once(first).chain(rest.as_array().unwrap_or_default().to_vec()).collect();
    let pipeline = Value::from(stages);
    let answer = workspace.reader.query(Query::new(pipeline.clone())).await;
    let expected = recorded.expected.unwrap_or_default();
    let (pipeline, expected_text) = (json::text(&pipeline), json::text(&expected));
    match (recorded.error_code, answer) {
        (Some(code), Err(Error::Pipeline(error))) if error.code == PipelineErrorCode::Number(code) => Ok(()),
        (Some(code), Err(error)) => {
            Err(format!("should be rejected with {code}, but is rejected with {error:?}\n{pipeline}"))
        }
        (Some(code), Ok(answer)) => {
            Err(format!("should be rejected with {code}, but gives {}\n{pipeline}", json::text(&answer.rows)))
        }
        (None, Ok(answer)) => {
            // Compares the values in their serialized form.
            let text = serde_json::to_string(&answer.rows).expect("rows");
            let rows: Value = serde_json::from_str(&text).expect("rows");
            match same_rows(
                rows.as_array().unwrap_or_default(),
                expected.as_array().unwrap_or_default(),
                recorded.unordered,
            ) {
                true => Ok(()),
                false => Err(format!("should give {expected_text}, but gives {}\n{pipeline}", json::text(&rows))),
            }
        }
        (None, Err(error)) => Err(format!("should give {expected_text}, but is rejected with {error:?}\n{pipeline}")),
    }
}

/// Replaces a foreign source with inline documents: removes `from`, and puts the documents at the beginning of the
/// sub-pipeline.
fn with_foreign(value: &Value, documents: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(|item| with_foreign(item, documents)).collect::<Vec<_>>().into(),
        Value::Object(fields) => {
            // Leaves fields unchanged if the sub-pipeline is invalid, or is missing although there is a `let`.
            let fits = match fields.get("pipeline") {
                Some(pipeline) => pipeline.as_array().is_some(),
                None => !fields.contains("let"),
            };
            let is_foreign = fits && fields.get("from").and_then(Value::as_str) == Some(FOREIGN);
            let kept = fields.iter().filter(|(name, _)| !is_foreign || !matches!(&***name, "from" | "pipeline"));
            let mut made: Object = kept.map(|(name, value)| (name.clone(), with_foreign(value, documents))).collect();
            if is_foreign {
                let first = Value::from(Object::from_iter([("$documents", documents.clone())]));
                let rest = fields.get("pipeline").and_then(Value::as_array).unwrap_or_default();
                let rest = rest.iter().map(|stage| with_foreign(stage, documents));
                made.push("pipeline", std::iter::once(first).chain(rest).collect::<Vec<_>>());
            }
            made.into()
        }
        other => other.clone(),
    }
}

fn same_rows(got: &[Value], expected: &[Value], unordered: bool) -> bool {
    if got.len() != expected.len() {
        return false;
    }
    if got.iter().zip(expected).all(|(got, expected)| same(got, expected)) {
        return true;
    }
    let mut unmatched: Vec<&Value> = got.iter().collect();
    unordered
        && expected.iter().all(|expected| match unmatched.iter().position(|got| same(got, expected)) {
            Some(place) => {
                unmatched.remove(place);
                true
            }
            None => false,
        })
}

/// Returns whether two values are equal. Ignores the last bits of floats and the order of fields.
fn same(got: &Value, expected: &Value) -> bool {
    match (got, expected) {
        (Value::Array(got), Value::Array(expected)) => {
            got.len() == expected.len() && got.iter().zip(expected.iter()).all(|(got, expected)| same(got, expected))
        }
        (Value::Object(got), Value::Object(expected)) => {
            let fits = |name: &str, value: &Value| got.get(name).is_some_and(|got| same(got, value));
            got.len() == expected.len() && expected.iter().all(|(name, value)| fits(name, value))
        }
        (got, expected) => match (got.as_f64(), expected.as_f64()) {
            (Some(a), Some(b)) => a == b || (a - b).abs() <= 1e-12 * a.abs().max(b.abs()).max(1.0),
            _ => got == expected,
        },
    }
}
