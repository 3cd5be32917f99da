//! Search over real titles, where `FOLDWORK_SHARED` says they are: how often what was meant comes first.

use std::collections::BTreeMap;
use std::io::BufRead;
use std::path::Path;

use foldwork_engine::model::event::NewEvent;
use foldwork_engine::model::value::Object;
use foldwork_engine::workspace::search::Search;
use foldwork_tests::perturbed::{Chance, Change};
use foldwork_tests::server::Server;
use serde::Deserialize;

const QUERIES: usize = 200;
const SEED: u64 = 2026;

#[derive(Deserialize)]
struct Line {
    aggregate_id: String,
    event_type: String,
    payload: Object,
}

/// The articles at the end of the recorded history: their titles and bodies by id.
fn articles(path: &Path) -> BTreeMap<String, Object> {
    let file = std::fs::File::open(path).expect("the recorded history");
    let mut decoder = zstd::Decoder::new(file).expect("a zstd file");
    decoder.window_log_max(27).expect("a window");
    let mut articles: BTreeMap<String, Object> = BTreeMap::new();
    for line in std::io::BufReader::new(decoder).lines() {
        let line: Line = serde_json::from_str(&line.expect("a line")).expect("an event");
        if line.event_type == "article.deleted" {
            articles.remove(&line.aggregate_id);
            continue;
        }
        let article = articles.entry(line.aggregate_id).or_default();
        for (name, value) in line.payload.into_iter().filter(|(name, _)| matches!(&**name, "title" | "body")) {
            article.insert(name, value);
        }
    }
    articles
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_meant_is_found_first() {
    let Ok(shared) = std::env::var("FOLDWORK_SHARED") else {
        eprintln!("skipped: FOLDWORK_SHARED does not say where titles are");
        return;
    };
    let articles = articles(&Path::new(&shared).join("data/rfcs.ndjson.zst"));
    let server = Server::start().await.expect("a server");
    let workspace = server.workspace("owner").await.expect("a workspace");
    let mut titles: Vec<String> = Vec::new();
    for (id, payload) in articles {
        titles.push(payload.get("title").and_then(|title| title.as_str()).unwrap_or_default().to_owned());
        let event = NewEvent {
            aggregate_id: id,
            aggregate_type: "article".into(),
            event_type: "article.created".into(),
            payload,
            ..NewEvent::default()
        };
        workspace.append_events(vec![event]).await.expect("appended");
    }
    let mut chance = Chance::new(SEED);
    let (mut first, mut in_five, mut missed) = (0, 0, Vec::new());
    for number in 0..QUERIES {
        let title = &titles[chance.below(titles.len())];
        let change = Change::ALL[number % Change::ALL.len()];
        let query = change.of(title, &mut chance);
        let found = workspace.search(Search { query: query.clone(), ..Search::default() }).await.expect("an answer");
        let place = found.results.iter().position(|found| *found.label == **title);
        first += usize::from(place == Some(0));
        in_five += usize::from(place.is_some_and(|place| place < 5));
        if place != Some(0) {
            missed.push(format!("{change:?} '{query}' for '{title}': {place:?}"));
        }
    }
    let share = |count: usize| 100.0 * count as f64 / QUERIES as f64;
    eprintln!("first {:.1} %, in five {:.1} %\n{}", share(first), share(in_five), missed.join("\n"));
    assert!(share(first) >= 95.0 && share(in_five) >= 99.0, "first {first}, in five {in_five} of {QUERIES}");
}
