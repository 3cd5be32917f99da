//! Articles for tests: a small handbook that is part of the repository, and a recorded history in the folder that
//! `FOLDWORK_SHARED` names.

use std::collections::BTreeMap;
use std::io::BufRead;
use std::path::Path;

use foldwork_engine::model::value::{Object, Value};
use serde::Deserialize;

use crate::expectation::root;

/// The largest accepted window size of the compressed history, as a power of two: 27 means 2^27 bytes.
const WINDOW_LOG: u32 = 27;

#[derive(Deserialize)]
struct Line {
    aggregate_id: String,
    event_type: String,
    payload: Object,
}

/// The state of an article at the end of the history.
#[derive(Default)]
pub struct Article {
    pub payload: Object,
    pub deleted: bool,
}

impl Article {
    /// Returns the text of a field, or an empty text if the field is missing or not a text.
    pub fn text(&self, name: &str) -> &str {
        self.payload.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    /// Returns the integer in the field `number` as text.
    pub fn number(&self) -> Option<String> {
        self.payload.get("number").and_then(Value::as_int).map(|number| number.to_string())
    }
}

/// Articles by id.
pub type Articles = BTreeMap<String, Article>;

/// Returns the handbook. The links between its articles have every supported form.
pub fn handbook() -> Articles {
    let file = std::fs::File::open(root().join("tests/articles/handbook.ndjson")).expect("the handbook");
    read(std::io::BufReader::new(file))
}

/// Returns the recorded articles. Without `FOLDWORK_SHARED`, prints a note to standard error and returns `None`.
pub fn articles() -> Option<Articles> {
    let Ok(shared) = std::env::var("FOLDWORK_SHARED") else {
        eprintln!("skipped: FOLDWORK_SHARED names no folder of recorded articles");
        return None;
    };
    let file = std::fs::File::open(Path::new(&shared).join("data/rfcs.ndjson.zst")).expect("the recorded history");
    let mut decoder = zstd::Decoder::new(file).expect("a zstd file");
    decoder.window_log_max(WINDOW_LOG).expect("a window");
    Some(read(std::io::BufReader::new(decoder)))
}

/// Returns the articles by id, in their state after the last event.
fn read(events: impl BufRead) -> Articles {
    let mut articles = Articles::new();
    for line in events.lines() {
        let line: Line = serde_json::from_str(&line.expect("a line")).expect("an event");
        let article = articles.entry(line.aggregate_id).or_default();
        article.deleted = line.event_type == "article.deleted";
        for (name, value) in line.payload {
            article.payload.insert(name, value);
        }
    }
    articles
}
