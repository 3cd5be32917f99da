//! Measures search over many labels in memory, and the cost of changing labels.

use std::time::Instant;

use foldwork_engine::Store;
use foldwork_engine::model::event::NewEvent;
use foldwork_engine::model::value::Value;
use foldwork_engine::workspace::search::SearchRequest;
use foldwork_tests::embedded::{engine, first};
use foldwork_tests::handles::Handles;
use foldwork_tests::misspellings::{Chance, Change};
use strum::VariantArray;

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

const QUERIES: usize = 2_000;
const CHANGES: usize = 2_000;
/// The syllables of words in the Latin script.
const SYLLABLES: [&str; 24] = [
    "ka", "to", "mi", "re", "lu", "sen", "dor", "val", "qui", "nex", "bra", "pli", "gon", "tur", "esh", "ond", "al",
    "fe", "ro", "stu", "win", "cho", "per", "yt",
];
/// The number of different words. The number is small, so that many labels are similar.
const WORDS: usize = 20_000;

/// On average, one of this number of labels is Chinese, and one is Hindi.
const OTHER_SCRIPTS: usize = 10;
/// The number of different characters in Chinese labels.
const HAN: usize = 3_000;
/// The syllables of Hindi words.
const DEVANAGARI: [&str; 16] =
    ["का", "मि", "रे", "लो", "सं", "दृ", "वल", "क्य", "ने", "ब्र", "पि", "गौ", "तु", "है", "ष्ट", "र्म"];

/// Returns a label of several words. The label is Chinese with a probability of one in [`OTHER_SCRIPTS`], and Hindi
/// with the same probability.
fn label(chance: &mut Chance) -> String {
    match chance.below(OTHER_SCRIPTS) {
        0 => han_label(chance),
        1 => syllables_label(chance, &DEVANAGARI),
        _ => syllables_label(chance, &SYLLABLES),
    }
}

/// Returns a label of two to six Chinese words of two or three characters, without spaces.
fn han_label(chance: &mut Chance) -> String {
    let word = |chance: &mut Chance| {
        let bound = 1 + chance.below(WORDS);
        let mut word = Chance::new(chance.below(bound) as u64);
        let characters = (0..2 + word.below(2)).map(|_| 0x4E00 + word.below(HAN) as u32);
        characters.filter_map(char::from_u32).collect::<String>()
    };
    (0..2 + chance.below(5)).map(|_| word(chance)).collect()
}

/// Returns a label of two to seven words. Some words are far more frequent than others.
fn syllables_label(chance: &mut Chance, syllables: &[&str]) -> String {
    let word = |chance: &mut Chance| {
        let bound = 1 + chance.below(WORDS);
        let mut word = Chance::new(chance.below(bound) as u64);
        (0..2 + word.below(3)).map(|_| syllables[word.below(syllables.len())]).collect::<String>()
    };
    let words: Vec<String> = (0..2 + chance.below(6)).map(|_| word(chance)).collect();
    words.join(" ")
}

fn event(number: usize, verb: &str, label: &str) -> NewEvent {
    NewEvent {
        aggregate_id: format!("a-{number}"),
        aggregate_type: "article".into(),
        event_type: format!("article.{verb}"),
        payload: [("title", Value::from(label)), ("slug", Value::from(format!("slug-{number}")))].into_iter().collect(),
        ..NewEvent::default()
    }
}

async fn open(labels: &[String]) -> Handles {
    let store = Store::connect("mem://").await.expect("a store");
    let (workspace, _) = first(&engine(store).await).await.expect("a workspace");
    for (page, labels) in labels.chunks(1_000).enumerate() {
        let events = labels.iter().enumerate();
        let events = events.map(|(number, label)| event(page * 1_000 + number, "created", label)).collect();
        workspace.writer.append_events(events).await.expect("appended");
    }
    workspace
}

async fn ask(workspace: &Handles, query: String) -> f64 {
    let began = Instant::now();
    workspace.reader.search(SearchRequest { query, ..SearchRequest::default() }).await.expect("an answer");
    began.elapsed().as_secs_f64() * 1e3
}

/// Returns the resident memory of the process in bytes.
fn memory() -> usize {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    pages.split(' ').nth(1).and_then(|pages| pages.parse::<usize>().ok()).unwrap_or_default() * 4_096
}

fn percentile(times: &mut [f64], share: f64) -> f64 {
    times.sort_by(f64::total_cmp);
    let place = (times.len() as f64 * share) as usize;
    times.get(place.min(times.len().saturating_sub(1))).copied().unwrap_or_default()
}

fn main() {
    let count = std::env::args().filter_map(|argument| argument.parse().ok()).next().unwrap_or(100_000);
    let mut chance = Chance::new(1);
    let labels: Vec<String> = (0..count).map(|_| label(&mut chance)).collect();
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let workspace = open(&labels).await;
        let before = memory();
        println!("{count} labels, first search: {:.0} ms", ask(&workspace, labels[0].clone()).await);
        println!("memory: {:.0} bytes a label", memory().saturating_sub(before) as f64 / count as f64);
        for change in Change::VARIANTS.iter().copied() {
            let mut times = Vec::new();
            for _ in 0..QUERIES / Change::VARIANTS.len() {
                let query = change.of(&labels[chance.below(count)], &mut chance);
                times.push(ask(&workspace, query).await);
            }
            let (half, most) = (percentile(&mut times, 0.5), percentile(&mut times, 0.99));
            println!("{change:?}: p50 {half:.1} ms, p99 {most:.1} ms");
        }
        let mut times = Vec::new();
        let began = Instant::now();
        for _ in 0..CHANGES {
            let number = chance.below(count);
            let changed = label(&mut chance);
            workspace.writer.append_events(vec![event(number, "updated", &changed)]).await.expect("appended");
            times.push(ask(&workspace, changed).await);
        }
        let (half, most) = (percentile(&mut times, 0.5), percentile(&mut times, 0.99));
        println!("after one change each: p50 {half:.1} ms, p99 {most:.1} ms");
        println!("changes, each with a search: {:.0}/s", CHANGES as f64 / began.elapsed().as_secs_f64());
    });
}
