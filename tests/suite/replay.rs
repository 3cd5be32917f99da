//! Replays recorded pipeline cases from outside of the repository, where `FOLDWORK_SHARED` says they are, and holds
//! how many agree.

use std::path::Path;

use foldwork_engine::Error;
use foldwork_engine::model::value::{Object, Value};
use foldwork_engine::pipeline::error::Code;
use foldwork_engine::workspace::query::Query;
use foldwork_tests::entered::Entered;
use foldwork_tests::server::Server;
use serde::Deserialize;

/// Where a foreign source goes in a recorded pipeline.
const FOREIGN: &str = "__FOREIGN__";

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

/// How many agree, of how many.
#[derive(Debug, Default, Clone, Copy)]
struct Share {
    agree: usize,
    of: usize,
}

impl Share {
    fn count(&mut self, agrees: bool) {
        self.agree += usize::from(agrees);
        self.of += 1;
    }

    fn percent(self) -> f64 {
        100.0 * self.agree as f64 / self.of.max(1) as f64
    }
}

#[derive(Debug, Default)]
struct Tally {
    results: Share,
    raised: Share,
    codes: Share,
}

#[tokio::test(flavor = "multi_thread")]
async fn recorded_pipelines_agree() {
    let Ok(shared) = std::env::var("FOLDWORK_SHARED") else {
        eprintln!("skipped: FOLDWORK_SHARED does not say where recorded pipelines are");
        return;
    };
    let folder = Path::new(&shared).join("corpus/pipeline");
    let server = Server::start().await.expect("a server");
    let workspace = server.workspace("owner").await.expect("a workspace");
    let all = replay(&workspace, &folder.join("cases.ndjson")).await;
    let lookups = replay(&workspace, &folder.join("lookup_cases.ndjson")).await;
    eprintln!("all {all:?}\nlookups {lookups:?}");
    for (what, share, least) in [
        ("results", all.results, 98.0),
        ("errors raised", all.raised, 99.0),
        ("exact codes", all.codes, 98.0),
        ("results of lookups", lookups.results, 94.0),
    ] {
        assert!(share.percent() >= least, "{what}: {share:?} is {:.2} %, below {least} %", share.percent());
    }
}

async fn replay(workspace: &Entered, path: &Path) -> Tally {
    let mut tally = Tally::default();
    for line in foldwork_tests::expectation::read(path).lines() {
        let recorded: Recorded = serde_json::from_str(line).expect("a recorded case");
        let first = Value::from(Object::from_iter([("$documents", recorded.docs)]));
        let foreign = recorded.foreign_docs.unwrap_or_else(|| Value::from(Vec::new()));
        let rest = with_foreign(&recorded.pipeline, &foreign);
        let stages: Vec<Value> = std::iter::once(first).chain(rest.as_array().unwrap_or_default().to_vec()).collect();
        let answer = workspace.reader.query(Query::new(stages.into())).await;
        match (recorded.error_code, answer) {
            (Some(code), Err(Error::Pipeline(error))) => {
                tally.raised.count(true);
                tally.codes.count(error.code == Code::Number(code));
            }
            (Some(_), _) => {
                tally.raised.count(false);
                tally.codes.count(false);
            }
            (None, Ok(answer)) => {
                // What the wire makes of the values is what is compared.
                let text = serde_json::to_string(&answer.rows).expect("rows");
                let rows: Value = serde_json::from_str(&text).expect("rows");
                let wanted = recorded.expected.unwrap_or_default();
                let (rows, wanted) = (rows.as_array().unwrap_or_default(), wanted.as_array().unwrap_or_default());
                tally.results.count(same_rows(rows, wanted, recorded.unordered));
            }
            (None, Err(_)) => tally.results.count(false),
        }
    }
    tally
}

/// A foreign source becomes an inline one: no `from`, and documents first in the sub-pipeline.
fn with_foreign(value: &Value, documents: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(|item| with_foreign(item, documents)).collect::<Vec<_>>().into(),
        Value::Object(fields) => {
            let is_foreign = fields.get("from").and_then(Value::as_str) == Some(FOREIGN);
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

fn same_rows(got: &[Value], wanted: &[Value], unordered: bool) -> bool {
    if got.len() != wanted.len() {
        return false;
    }
    if got.iter().zip(wanted).all(|(got, wanted)| same(got, wanted)) {
        return true;
    }
    let mut left: Vec<&Value> = got.iter().collect();
    unordered
        && wanted.iter().all(|wanted| match left.iter().position(|got| same(got, wanted)) {
            Some(place) => {
                left.remove(place);
                true
            }
            None => false,
        })
}

/// Equal up to the last bits of a float and the order of fields.
fn same(got: &Value, wanted: &Value) -> bool {
    match (got, wanted) {
        (Value::Array(got), Value::Array(wanted)) => {
            got.len() == wanted.len() && got.iter().zip(wanted.iter()).all(|(got, wanted)| same(got, wanted))
        }
        (Value::Object(got), Value::Object(wanted)) => {
            let fits = |name: &str, value: &Value| got.get(name).is_some_and(|got| same(got, value));
            got.len() == wanted.len() && wanted.iter().all(|(name, value)| fits(name, value))
        }
        (got, wanted) => match (got.as_f64(), wanted.as_f64()) {
            (Some(a), Some(b)) => a == b || (a - b).abs() <= 1e-12 * a.abs().max(b.abs()).max(1.0),
            _ => got == wanted,
        },
    }
}
