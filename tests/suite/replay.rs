//! Replays pipeline cases: a few cases from this repository, and many recorded cases from the folder that
//! `FOLDWORK_SHARED` names. `tests/replay/known.txt` lists the recorded cases whose results differ from the recorded
//! results, each with the reason. The list may only shrink.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use foldwork_engine::Error;
use foldwork_engine::model::json;
use foldwork_engine::model::value::{Object, Value};
use foldwork_engine::pipeline::error::{EXCEEDED_MEMORY, PipelineErrorCode};
use foldwork_engine::workspace::query::Query;
use foldwork_tests::expectation::{all_well, compare, read, root};
use foldwork_tests::handles::Handles;
use foldwork_tests::server::Server;
use serde::Deserialize;

/// The name by which recorded pipelines refer to the documents of `foreign_docs`.
const FOREIGN: &str = "__FOREIGN__";
/// The files of recorded cases. Each entry contains the name by which `known.txt` refers to the file, and the path of
/// the file without the extension. A case is identified by the name of its file and by its line.
const FILES: [(&str, &str); 3] =
    [("cases", "pipeline/cases"), ("lookup_cases", "pipeline/lookup_cases"), ("windows", "windows/cases")];
/// The tiers of cases that are skipped because the results may differ. These cases depend on the order of equal rows,
/// need more digits than a decimal has, or contain the results of another program.
const SKIPPED: [&str; 4] = ["decimal", "documentdb-only", "unspecified", "unsupported"];
/// The code of the error for an unknown stage. An error with this code does not match a recorded error without a code.
const UNKNOWN_STAGE: i32 = 40324;

#[derive(Deserialize)]
struct Recorded {
    tier: Option<String>,
    docs: Value,
    pipeline: Value,
    expected: Option<Value>,
    /// The code of the expected error, or zero if the code was not recorded.
    error_code: Option<i32>,
    /// The code of the expected error if `error_code` is zero. If `error_code` is zero and this field is missing, every
    /// numeric code is accepted, except the codes of an unknown stage and of exceeded memory.
    code_by_source: Option<i32>,
    #[serde(default)]
    unordered: bool,
    foreign_docs: Option<Value>,
    /// The documents of further sources.
    #[serde(default)]
    collections: HashMap<String, Value>,
    /// The names of fields whose arrays have no specified order. `*` stands for all fields.
    #[serde(default)]
    sets: Vec<String>,
    /// The maximum difference between two numbers that count as equal. If a number is above 1 or below -1, the
    /// difference is relative to the number with the larger absolute value.
    #[serde(default)]
    tolerance: f64,
    #[serde(skip)]
    has_decimals: bool,
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
async fn recorded_pipelines_return_the_recorded_results_except_for_known_differences() {
    let Ok(shared) = std::env::var("FOLDWORK_SHARED") else {
        eprintln!("skipped: FOLDWORK_SHARED names no folder of recorded pipelines");
        return;
    };
    let folder = Path::new(&shared).join("corpus");
    let server = Server::start().await.expect("a server");
    let workspace = server.workspace("owner").await.expect("a workspace");
    let mut different = BTreeMap::new();
    for (name, path) in FILES {
        for (line, text) in read(&folder.join(format!("{path}.ndjson"))).lines().enumerate() {
            if let Err(difference) = replayed(&workspace, text).await {
                different.insert((name.to_owned(), line + 1), difference);
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
fn every_known_difference_is_listed_in_order_with_a_reason() {
    let text = read(&list());
    let known: Vec<((String, usize), &str)> = text.lines().map(known).collect();
    let in_order = |pair: &[((String, usize), &str)]| pair[0].0 < pair[1].0;
    assert!(known.windows(2).all(in_order), "the list is not in order, or names a case twice");
    for ((file, _), reason) in &known {
        assert!(FILES.iter().any(|(name, _)| name == file) && reason.split_whitespace().count() > 1, "{file} {reason}");
    }
}

fn list() -> PathBuf {
    root().join("tests/replay/known.txt")
}

/// Parses a line of `known.txt`. Returns the case, and the reason why its result differs from the recorded result.
fn known(line: &str) -> ((String, usize), &str) {
    let (case, reason) = line.split_once(' ').expect("a case and its reason");
    let (file, number) = case.split_once(':').expect("a file and its line");
    ((file.to_owned(), number.parse().expect("a line's number")), reason)
}

/// Runs one case. The error describes the difference.
async fn replayed(workspace: &Handles, line: &str) -> Result<(), String> {
    let mut recorded: Recorded = serde_json::from_str(line).expect("a recorded case");
    recorded.has_decimals = line.contains("$numberDecimal");
    if recorded.tier.as_ref().is_some_and(|tier| SKIPPED.contains(&&**tier)) {
        return Ok(());
    }
    let first = Value::from(Object::from_iter([("$documents", recorded.docs.clone())]));
    let mut sources = recorded.collections.clone();
    let foreign = recorded.foreign_docs.clone().unwrap_or_else(|| Value::from(Vec::new()));
    sources.insert(FOREIGN.into(), foreign);
    let rest = with_sources(&recorded.pipeline, &sources);
    let has_documents = rest.as_array().and_then(|stages| stages.first()?.get("$documents")).is_some();
    let first = (!has_documents).then_some(first);
    let stages: Vec<Value> = first.into_iter().chain(rest.as_array().unwrap_or_default().to_vec()).collect();
    let pipeline = Value::from(stages);
    let answer = workspace.reader.query(Query::new(pipeline.clone())).await;
    let is_expected = match &answer {
        Ok(answer) => {
            // Compares the values in their serialized form.
            let text = serde_json::to_string(&answer.rows).expect("rows");
            let rows: Value = serde_json::from_str(&text).expect("rows");
            recorded.error_code.is_none() && recorded.expects(rows.as_array().unwrap_or_default())
        }
        Err(Error::Pipeline(error)) => match (recorded.error_code, recorded.code_by_source) {
            (None, _) => false,
            (Some(0), None) => {
                matches!(error.code, PipelineErrorCode::Number(code) if code != UNKNOWN_STAGE && code != EXCEEDED_MEMORY)
            }
            (Some(0), Some(code)) | (Some(code), _) => error.code == PipelineErrorCode::Number(code),
        },
        Err(_) => false,
    };
    if is_expected {
        return Ok(());
    }
    let expected = match recorded.error_code {
        Some(code) => format!("be rejected with {code}"),
        None => format!("give {}", json::text(recorded.expected.as_ref().unwrap_or(&Value::Null))),
    };
    let found = answer.map(|answer| json::text(&answer.rows));
    Err(format!("should {expected}, but the result is {found:?}\n{}", json::text(&pipeline)))
}

/// Replaces named sources with inline documents: removes `from` or `coll`, and puts the documents at the beginning of
/// the sub-pipeline.
fn with_sources(value: &Value, sources: &HashMap<String, Value>) -> Value {
    let documents_of = |name: &Value| sources.get(name.as_str()?);
    match value {
        Value::Array(items) => items.iter().map(|item| with_sources(item, sources)).collect::<Vec<_>>().into(),
        Value::Object(fields) => {
            if let Some(documents) = fields.get("$unionWith").and_then(documents_of) {
                let first = Value::from(Object::from_iter([("$documents", documents.clone())]));
                let union = Value::from(Object::from_iter([("pipeline", vec![first])]));
                return Value::from(Object::from_iter([("$unionWith", union)]));
            }
            // Leaves fields unchanged if the sub-pipeline is invalid, or is missing although there is a `let`.
            let fits = match fields.get("pipeline") {
                Some(pipeline) => pipeline.as_array().is_some(),
                None => !fields.contains("let"),
            };
            let source = ["from", "coll"].into_iter().find_map(|name| Some((name, documents_of(fields.get(name)?)?)));
            let source = source.filter(|_| fits);
            let is_replaced = |name: &str| source.is_some_and(|(from, _)| name == from || name == "pipeline");
            let kept = fields.iter().filter(|(name, _)| !is_replaced(name));
            let mut made: Object = kept.map(|(name, value)| (name.clone(), with_sources(value, sources))).collect();
            if let Some((_, documents)) = source {
                let first = Value::from(Object::from_iter([("$documents", documents.clone())]));
                let rest = fields.get("pipeline").and_then(Value::as_array).unwrap_or_default();
                let rest = rest.iter().map(|stage| with_sources(stage, sources));
                made.push("pipeline", std::iter::once(first).chain(rest).collect::<Vec<_>>());
            }
            made.into()
        }
        other => other.clone(),
    }
}

impl Recorded {
    /// Returns whether the case expects these rows.
    fn expects(&self, rows: &[Value]) -> bool {
        let expected = self.expected.as_ref().and_then(Value::as_array).unwrap_or_default();
        self.same_items(rows, expected, self.unordered, "")
    }

    /// Returns whether two arrays are equal or, if `unordered` is set, have the same items in any order. `field` is the
    /// field with the arrays.
    fn same_items(&self, got: &[Value], expected: &[Value], unordered: bool, field: &str) -> bool {
        if got.len() != expected.len() {
            return false;
        }
        if got.iter().zip(expected).all(|(got, expected)| self.same(got, expected, field)) {
            return true;
        }
        let mut unmatched: Vec<&Value> = got.iter().collect();
        unordered
            && expected.iter().all(|expected| match unmatched.iter().position(|got| self.same(got, expected, field)) {
                Some(place) => {
                    unmatched.remove(place);
                    true
                }
                None => false,
            })
    }

    /// Returns whether two values of a field are equal. Ignores the last bits of floats and the order of fields.
    fn same(&self, got: &Value, expected: &Value, field: &str) -> bool {
        if let Some(expected) = unwrapped(expected) {
            return match expected {
                Extended::Date(expected) => got.as_str() == Some(expected),
                // JSON has no number that is not finite.
                Extended::Number(expected) if !expected.is_finite() => got.is_null(),
                Extended::Number(expected) => self.number(got).is_some_and(|got| self.same_number(got, expected)),
            };
        }
        match (got, expected) {
            (Value::Array(got), Value::Array(expected)) => {
                let unordered = self.sets.iter().any(|name| name == "*" || name == field);
                self.same_items(got, expected, unordered, field)
            }
            (Value::Object(got), Value::Object(expected)) => {
                let fits = |name: &str, value: &Value| got.get(name).is_some_and(|got| self.same(got, value, name));
                got.len() == expected.len() && expected.iter().all(|(name, value)| fits(name, value))
            }
            (got, expected) => match (expected.as_f64().and_then(|_| self.number(got)), expected.as_f64()) {
                (Some(got), Some(expected)) => self.same_number(got, expected),
                _ => got == expected,
            },
        }
    }

    /// Returns a number in a response. Responses contain decimals as texts.
    fn number(&self, got: &Value) -> Option<f64> {
        match got {
            Value::String(text) if self.has_decimals => text.parse().ok(),
            got => got.as_f64(),
        }
    }

    fn same_number(&self, a: f64, b: f64) -> bool {
        a == b || (a - b).abs() <= self.tolerance.max(1e-12) * a.abs().max(b.abs()).max(1.0)
    }
}

/// A value that a recorded case writes as an object with one field.
enum Extended<'a> {
    Date(&'a str),
    /// A decimal or a double. The number can be infinite or NaN.
    Number(f64),
}

fn unwrapped(value: &Value) -> Option<Extended<'_>> {
    let fields = value.as_object().filter(|fields| fields.len() == 1)?;
    let (name, value) = fields.iter().next()?;
    let text = value.as_str()?;
    match &**name {
        "$date" => Some(Extended::Date(text)),
        "$numberDouble" | "$numberDecimal" => Some(Extended::Number(text.parse().ok()?)),
        _ => None,
    }
}
