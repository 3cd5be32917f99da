//! Tests the shipped plugins with a small handbook, and with recorded articles if `FOLDWORK_SHARED` names their folder.
//! Each article that is not deleted must have statistics. The open edges must equal the mentions that a separate search
//! of the bodies finds.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use foldwork_engine::model::event::NewEvent;
use foldwork_engine::model::graph::Direction;
use foldwork_engine::model::value::{Object, Value};
use foldwork_server::Config;
use foldwork_tests::articles::{self, Articles};
use foldwork_tests::expectation::root;
use foldwork_tests::handles::Handles;
use foldwork_tests::server::{Server, worked};

const KIND: &str = "links_to";
/// The texts that precede the number of an article in a mention.
const PREFIXES: [&str; 2] = ["rust-lang/rfcs#", "rfcs/pull/"];
/// The number of events per append.
const BATCH: usize = 20;
/// The deadline of a call. A debug build takes much longer than a release build.
const DEADLINE_MS: u64 = 30_000;

/// The links between articles of the handbook.
const HANDBOOK: [(&str, &str); 16] = [
    ("boats", "signal"),
    ("engine", "horn"),
    ("horn", "engine"),
    ("lamp", "oil"),
    ("lamp", "watch"),
    ("lamp", "wick"),
    ("logbook", "watch"),
    ("relief", "weather"),
    ("signal", "lamp"),
    ("watch", "horn"),
    ("watch", "lamp"),
    ("watch", "logbook"),
    ("watch", "relief"),
    ("weather", "horn"),
    ("weather", "logbook"),
    ("wick", "oil"),
];

type Edges = BTreeSet<(String, String)>;

fn config() -> Config {
    let mut config = Config::default();
    config.plugins.folder = root().join("tests/plugins").to_string_lossy().into_owned();
    config.plugins.limits.deadline_ms = DEADLINE_MS;
    let patterns: Vec<_> = PREFIXES
        .iter()
        .map(|before| serde_json::json!({ "regex": format!("{before}([0-9]+)"), "field": "number" }))
        .collect();
    let settings = serde_json::json!({ "kind": KIND, "patterns": patterns });
    config.plugins.settings.insert("linker".into(), serde_json::from_value(settings).expect("settings"));
    config
}

fn event(id: &str, verb: &str, payload: Object) -> NewEvent {
    NewEvent {
        aggregate_id: id.into(),
        aggregate_type: "article".into(),
        event_type: format!("article.{verb}"),
        payload,
        ..NewEvent::default()
    }
}

/// Appends `article.created` for each article, and then `article.deleted` for each deleted article.
async fn append(workspace: &Handles, articles: &Articles) {
    let created = articles.iter().map(|(id, article)| event(id, "created", article.payload.clone()));
    let deleted = articles.iter().filter(|(_, article)| article.deleted);
    let deleted = deleted.map(|(id, _)| event(id, "deleted", Object::default()));
    let events: Vec<NewEvent> = created.chain(deleted).collect();
    for events in events.chunks(BATCH) {
        workspace.writer.append_events(events.to_vec()).await.expect("appended");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn edges_of_the_handbook_match_the_known_links() {
    let articles = articles::handbook();
    let known: Edges = HANDBOOK.map(|(from, to)| (from.to_owned(), to.to_owned())).into();
    assert_same(&known, &draw(&articles).await);
    // Checks the function `mentions` as well, because the test with recorded articles uses its result.
    assert_same(&known, &mentions(&articles));
}

#[tokio::test(flavor = "multi_thread")]
async fn edges_of_recorded_articles_match_the_mentions_in_their_bodies() {
    let Some(articles) = articles::articles() else { return };
    let drawn = draw(&articles).await;
    assert_same(&mentions(&articles), &drawn);
    assert!(drawn.len() > 100, "only {} edges", drawn.len());
}

fn assert_same(expected: &Edges, found: &Edges) {
    let missing: Vec<_> = expected.difference(found).collect();
    let invented: Vec<_> = found.difference(expected).collect();
    assert!(missing.is_empty() && invented.is_empty(), "missing edges {missing:?}, wrong edges {invented:?}");
}

/// Appends the articles, waits for the plugins, and returns the open edges.
async fn draw(articles: &Articles) -> Edges {
    let server = Server::start_with(&config()).await.expect("a server");
    let workspace = server.workspace("owner").await.expect("a workspace");
    let began = Instant::now();
    append(&workspace, articles).await;
    worked(&workspace).await.expect("the plugins catch up");
    let took = began.elapsed();
    let parked = workspace.reader.list_parked(None, None, 10).await.expect("parked steps");
    assert!(parked.is_empty(), "parked steps: {parked:?}");

    let mut drawn = Edges::new();
    let mut without_statistics = Vec::new();
    let live = || articles.iter().filter(|(_, article)| !article.deleted);
    for (id, _) in live() {
        let around = workspace.reader.graph(id, 1, Vec::new(), Direction::Out, false, None).await.expect("a graph");
        let facts = &around.nodes[0].aggregate.facts;
        let words = facts.get("reading_stats").and_then(Value::as_object).and_then(|stats| stats.get("words"));
        if words.and_then(Value::as_int).is_none_or(|words| words == 0) {
            without_statistics.push(id);
        }
        assert!(around.edges.iter().all(|edge| &*edge.kind == KIND && edge.valid_to.is_none()), "edges of {id}");
        drawn.extend(around.edges.iter().map(|edge| (edge.from.to_string(), edge.to.to_string())));
    }
    assert!(without_statistics.is_empty(), "without statistics: {without_statistics:?}");
    eprintln!("{} live articles, {} edges, {:.1} s", live().count(), drawn.len(), took.as_secs_f64());
    drawn
}

/// Returns the mentions between articles that are not deleted. If several articles have the same number, a mention of
/// the number refers to the first of these articles in the order of ids.
fn mentions(articles: &Articles) -> Edges {
    let live = || articles.iter().filter(|(_, article)| !article.deleted);
    let by_slug: BTreeMap<&str, &str> = live().map(|(id, article)| (article.text("slug"), id.as_str())).collect();
    let mut by_number: BTreeMap<String, &str> = BTreeMap::new();
    for (id, article) in live() {
        if let Some(number) = article.number() {
            by_number.entry(number).or_insert(id);
        }
    }
    let mut mentions = Edges::new();
    for (id, article) in live() {
        let body = article.text("body");
        // Removes the escapes, because Markdown has `\_` where `_` would begin emphasis.
        let unescaped = body.replace("\\_", "_");
        let named = names(&unescaped).into_iter().filter_map(|name| by_slug.get(name).copied());
        let own = article.number();
        let numbered = numbers(body).into_iter().filter(|number| own.as_deref() != Some(number));
        let numbered = numbered.filter_map(|number| by_number.get(number).copied());
        mentions.extend(named.chain(numbered).filter(|to| to != id).map(|to| (id.clone(), to.to_owned())));
    }
    mentions
}

/// Returns the numbers in a body that follow one of the texts in `PREFIXES`, without leading zeros.
fn numbers(body: &str) -> Vec<&str> {
    let after = PREFIXES.iter().flat_map(|before| body.match_indices(before).map(|(at, _)| &body[at + before.len()..]));
    let digits = after.map(|rest| &rest[..rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len())]);
    let digits = digits.filter(|digits| !digits.is_empty());
    digits.map(|digits| Some(digits.trim_start_matches('0')).filter(|rest| !rest.is_empty()).unwrap_or("0")).collect()
}

/// Returns the names in a body, without `.md`. A name is a file name that ends with `.md`, or the last segment of a
/// path or of a link target.
fn names(body: &str) -> BTreeSet<&str> {
    let mut names = BTreeSet::new();
    let mut rest = body;
    while let Some(begin) = rest.find(in_path) {
        let before = &body[..body.len() - rest.len() + begin];
        let after_query = before.ends_with(['?', '#']);
        let of_link = ["](", "](<", "]: "].iter().any(|mark| before.ends_with(mark));
        rest = &rest[begin..];
        let end = rest.find(|c| !in_path(c)).unwrap_or(rest.len());
        let path = rest[..end].trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
        rest = &rest[end..];
        let is_path = path.contains('/');
        if is_path && rest.starts_with(['?', '#']) {
            rest = rest.trim_start_matches(|c| in_path(c) || c == '?' || c == '#');
        }
        if is_path || of_link || (path.ends_with(".md") && !after_query) {
            let segment = path.rsplit('/').next().unwrap_or(path);
            names.insert(segment.strip_suffix(".md").unwrap_or(segment));
        }
    }
    names
}

fn in_path(c: char) -> bool {
    c.is_ascii_alphanumeric() || "_.~:@&=+%-/".contains(c)
}

#[test]
fn names_and_numbers_of_mentioned_articles_are_found_in_a_body() {
    let body =
        "[a](text/one.md), `b/two`: three.md. [four-4](five#six/seven)\n\n[r]: eight\n\nhttps://h/nine/?q=/x/y and/or";
    let found: Vec<_> = names(body).into_iter().collect();
    assert_eq!(found, ["eight", "five", "nine", "one", "or", "seven", "three", "two"]);
    assert_eq!(numbers("rust-lang/rfcs#0012, rfcs/pull/0000 rfcs/pull/x"), ["12", "0"]);
}
