//! Search over the labels of aggregates: an index in memory that is built for the first search and then kept current.
//!
//! The index does not exist before the first search. Later, each append marks the changed aggregates. The next search
//! indexes the marked aggregates again, unless the follower of the log has already done so.
//!
//! * **What is searched**: the first 512 bytes of each label, and at most 20 kB of the other searched texts of an
//!   aggregate. If these texts are longer together, the longest texts are cut. Within these limits, a search finds
//!   everything that was appended before the search, unless indexing the changed aggregates takes longer than the time
//!   limit of queries; the response then contains a warning. If a definition changes its label or its searched fields,
//!   the aggregates of its type are marked.
//! * **Candidates**: texts are converted to lower case, and Latin, Greek and Cyrillic letters lose their accents. In
//!   scripts without spaces, each pair of neighboring characters is a word. Only entries that pass the filter become
//!   candidates: up to 250 entries that share the most trigrams with the query, and up to 250 entries that share words
//!   with the query. An entry also shares a word with the query if a word of the label is similar to a word of the
//!   query, or begins with a word of the query that has at least two letters. Similar words differ in at most one
//!   letter if the longer word has four letters, and in at most two letters if the longer word has more letters.
//! * **Scores**: every candidate is measured by `exact`, `prefix`, `trigram`, `token_set` and `bm25`. The highest of
//!   these scores is the score of the candidate. Among equal scores, the label that equals the query comes first, then
//!   the latest change, then the id. Only `exact` reaches a score of 1. Tasks are found only if `type` requests tasks,
//!   because tasks repeat the labels of their subjects.
//! * **Meaning**, if `[search.embedding]` is on: a follower of the log embeds changed labels, detected by a hash, and
//!   stores the vectors next to the log with an HNSW index. A search merges two rankings by reciprocal rank: the labels
//!   whose vectors are nearest to the query, and the text hits that have a BM25 score or a score of at least 0.5. The
//!   first place in a ranking gives a score of 0.5, so a hit that is first in both rankings has a score of 1. If the
//!   model fails or takes too long, the search returns the text hits with a warning. After a change of the model, all
//!   labels are embedded again.

pub mod candidates;
pub mod fold;
pub mod index;
pub mod scores;
mod script;
mod words;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::{Mutex, RwLock};
use rustc_hash::{FxHashMap, FxHashSet};

use candidates::LabelQuery;
pub use candidates::SearchFilter;
use index::{BODY_BYTES, LabelIndex, SearchText, TextPart, beginning};
use scores::{Scorer, Scores};

use crate::model::aggregate::Aggregate;
use crate::model::definition::Definition;
use crate::model::id::AggregateId;
use crate::model::value::Value;

/// The number of aggregates that are indexed under one lock of the index. A concurrent search waits for at most one
/// such batch.
const BATCH_SIZE: usize = 256;
/// The maximum number of marked aggregates that one update indexes.
const MAX_INDEXED_PER_UPDATE: usize = 2_048;

/// The search index over the labels of one workspace.
#[derive(Default)]
pub struct Labels {
    // A panic during a write may leave an index with missing entries. Such an index is still better than no search at
    // all.
    index: RwLock<Option<LabelIndex>>,
    /// Whether a first search has started to build the index. Until then, changes are not marked.
    used: AtomicBool,
    changed: Mutex<FxHashSet<AggregateId>>,
    further: Mutex<FxHashMap<AggregateId, Arc<[Arc<str>]>>>,
}

/// An aggregate that a search found.
#[derive(Debug, Clone, PartialEq)]
pub struct LabelHit {
    pub id: AggregateId,
    pub scores: Scores,
    /// The highest of the scores.
    pub score: f64,
    /// Whether the label equals the query, including accents and case. Whitespace at the ends does not count.
    pub as_written: bool,
    pub last_event_at: i64,
}

impl Labels {
    /// Marks aggregates that changed, to be indexed again.
    pub fn touch<'a>(&self, ids: impl IntoIterator<Item = &'a AggregateId>) {
        if self.used.load(Ordering::SeqCst) {
            self.changed.lock().extend(ids.into_iter().cloned());
        }
    }

    /// Replaces the labels that plugins found for an aggregate, and marks the aggregate to be indexed again.
    pub fn set_further(&self, id: &AggregateId, labels: Vec<Arc<str>>) {
        {
            let mut further = self.further.lock();
            match labels.is_empty() {
                true => drop(further.remove(id)),
                false => drop(further.insert(id.clone(), labels.into())),
            }
        }
        self.touch([id]);
    }

    /// Returns the approximate size of the index in bytes, or 0 before the first search.
    pub fn size_bytes(&self) -> usize {
        let index = self.index.read();
        index.as_ref().map_or(0, LabelIndex::size_bytes)
    }

    /// Returns whether aggregates are marked to be indexed again.
    pub fn is_behind(&self) -> bool {
        !self.changed.lock().is_empty()
    }

    /// Returns the searchable text of an aggregate, or `None` if the aggregate is deleted or has no text.
    pub fn text(&self, aggregate: &Aggregate, definition: &Definition) -> Option<SearchText> {
        if aggregate.deleted {
            return None;
        }
        let further = self.further.lock().get(&aggregate.id).cloned();
        let own = definition.label_of(&aggregate.state);
        let labels: Vec<_> = own.into_iter().chain(further.iter().flat_map(|labels| labels.iter()).cloned()).collect();
        let mut body = Vec::new();
        for (name, weight) in definition.searched() {
            let text = aggregate.state.get(name).and_then(searchable);
            // The label is in the index already.
            body.extend(text.filter(|text| labels.first() != Some(text)).map(|text| TextPart { text, weight }));
        }
        (!labels.is_empty() || !body.is_empty()).then(|| SearchText {
            id: aggregate.id.clone(),
            aggregate_type: aggregate.aggregate_type.clone(),
            project_id: aggregate.project_id.clone(),
            last_event_at: aggregate.last_event_at,
            labels,
            body,
        })
    }

    /// Builds the index if it does not exist. `each_text` must call its argument with the text of every aggregate.
    pub fn make(&self, each_text: impl FnOnce(&mut dyn FnMut(SearchText))) {
        // Changes must be marked before the texts are read. Otherwise a change during the build could be missing from
        // the index.
        self.used.store(true, Ordering::SeqCst);
        if self.index.read().is_some() {
            return;
        }
        let mut slot = self.index.write();
        if slot.is_none() {
            let mut index = LabelIndex::default();
            each_text(&mut |text| index.set(text));
            *slot = Some(index);
        }
    }

    /// Indexes marked aggregates again. `text` returns the current text of an aggregate. Returns whether marked
    /// aggregates remain.
    pub fn catch_up(&self, text: impl Fn(&AggregateId) -> Option<SearchText>) -> bool {
        for _ in 0..MAX_INDEXED_PER_UPDATE / BATCH_SIZE {
            // A mark is removed while the index is locked. A search that finds no marks therefore reads an index with
            // all changes.
            if !self.is_behind() {
                return false;
            }
            let mut slot = self.index.write();
            let taken: Vec<_> = self.changed.lock().extract_if(|_| true).take(BATCH_SIZE).collect();
            let (Some(index), false) = (slot.as_mut(), taken.is_empty()) else { return false };
            for id in taken {
                match text(&id) {
                    Some(text) => index.set(text),
                    None => index.remove(&id),
                }
            }
        }
        self.is_behind()
    }

    /// Returns up to `limit` aggregates that match a query, sorted by descending score. Among equal scores, aggregates
    /// whose labels equal the query exactly come first. The remaining order is by the last change, newest first, and
    /// then by id.
    pub fn search(&self, query: &str, filter: SearchFilter, limit: usize) -> Vec<LabelHit> {
        let query = LabelQuery::new(query, filter);
        let slot = self.index.read();
        let Some(index) = slot.as_ref() else { return Vec::new() };
        let mut scorer = Scorer::new(index, &query);
        let mut found: FxHashMap<&AggregateId, LabelHit> = FxHashMap::default();
        for number in index.candidates(&query) {
            let Some(entry) = index.entry(number) else { continue };
            let scores = scorer.scores(number, entry);
            let score = scores.best().1;
            let as_written = entry.label.trim() == query.text;
            let is_better = found.get(&entry.id).is_none_or(|hit| (hit.score, hit.as_written) < (score, as_written));
            if scores.is_match() && is_better {
                let hit =
                    LabelHit { id: entry.id.clone(), scores, score, as_written, last_event_at: entry.last_event_at };
                found.insert(&entry.id, hit);
            }
        }
        let mut found: Vec<LabelHit> = found.into_values().collect();
        let newer = |a: &LabelHit, b: &LabelHit| {
            b.last_event_at.cmp(&a.last_event_at).then_with(|| a.id.as_str().cmp(b.id.as_str()))
        };
        let closer = |a: &LabelHit, b: &LabelHit| b.score.total_cmp(&a.score).then(b.as_written.cmp(&a.as_written));
        found.sort_by(|a, b| closer(a, b).then_with(|| newer(a, b)));
        found.truncate(limit);
        found
    }
}

/// Returns the text of a value: a string, or the strings of a list. Returns `None` if the value contains no text.
fn searchable(value: &Value) -> Option<Arc<str>> {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => {
            let mut text = String::new();
            for item in items.iter().filter_map(Value::as_str) {
                text.push_str(beginning(item, BODY_BYTES));
                text.push('\n');
                if text.len() >= BODY_BYTES {
                    break;
                }
            }
            text.into()
        }
        _ => return None,
    };
    (!text.trim().is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::scores::FURTHER;
    use super::*;

    fn text(id: usize, labels: &[String], body: Option<String>, last_event_at: i64) -> SearchText {
        SearchText {
            id: AggregateId::parse(&format!("a{id}")).expect("a valid id"),
            aggregate_type: "note".into(),
            project_id: None,
            last_event_at,
            labels: labels.iter().map(|label| label.as_str().into()).collect(),
            body: body.map(|text| TextPart { text: text.into(), weight: 1 }).into_iter().collect(),
        }
    }

    fn some_words(random: &mut fastrand::Rng) -> String {
        const WORDS: [&str; 12] =
            ["alpha", "alpine", "beta", "Bêta", "gamma", "ga", "delta", "delay", "omega", "東京都庁", "東京", "C++"];
        let words: Vec<&str> = (0..random.usize(0..4)).map(|_| WORDS[random.usize(..WORDS.len())]).collect();
        words.join(" ")
    }

    fn made_of(texts: &[Option<SearchText>]) -> Labels {
        let labels = Labels::default();
        labels.make(|add| texts.iter().flatten().cloned().for_each(add));
        labels
    }

    #[test]
    fn an_updated_index_returns_the_same_results_as_a_new_index() {
        let mut random = fastrand::Rng::with_seed(7);
        let mut texts: Vec<Option<SearchText>> = vec![None; 40];
        let kept = made_of(&texts);
        for round in 0..60 {
            for _ in 0..random.usize(1..12) {
                let id = random.usize(..texts.len());
                let labels: Vec<String> = (0..random.usize(0..3)).map(|_| some_words(&mut random)).collect();
                let body = random.bool().then(|| some_words(&mut random));
                texts[id] = random.bool().then(|| text(id, &labels, body, random.i64(0..5)));
                kept.touch([&text(id, &[], None, 0).id]);
            }
            let now = |id: &AggregateId| texts[id.as_str()[1..].parse::<usize>().expect("a number")].clone();
            assert!(!kept.catch_up(now));
            let new = made_of(&texts);
            for query in ["alpha", "betta gamma", "del", "omega alpine", "都庁", &some_words(&mut random)] {
                let results = |labels: &Labels| labels.search(query, SearchFilter::default(), 100);
                assert_eq!(results(&kept), results(&new), "round {round}, '{query}'");
            }
        }
    }

    #[test]
    fn an_aggregate_is_found_once_by_each_of_its_labels() {
        let labels = made_of(&[Some(text(1, &["Vienna".into(), "Wien".into(), "Vienna city".into()], None, 0))]);
        let found = labels.search("wien", SearchFilter::default(), 10);
        assert_eq!(found.iter().map(|hit| (hit.id.as_str(), hit.score)).collect::<Vec<_>>(), [("a1", FURTHER)]);
        let found = labels.search("vienna", SearchFilter::default(), 10);
        assert_eq!(found.iter().map(|hit| (hit.id.as_str(), hit.score)).collect::<Vec<_>>(), [("a1", 1.0)]);
    }

    fn found(labels: &Labels, query: &str) -> Vec<String> {
        labels.search(query, SearchFilter::default(), 10).into_iter().map(|hit| hit.id.to_string()).collect()
    }

    fn labelled(all: &[&str]) -> Labels {
        let texts = all.iter().enumerate().map(|(id, label)| Some(text(id, &[(*label).to_owned()], None, id as i64)));
        made_of(&texts.collect::<Vec<_>>())
    }

    #[test]
    fn an_exact_label_ranks_before_labels_that_differ_in_symbols_or_diacritics() {
        for all in [["C", "C++", "C#"], ["ガス", "カス", "ガスト"], ["कम", "काम", "कमल"], ["Ä", "A", "Å"]]
        {
            let labels = labelled(&all);
            for (number, label) in all.iter().enumerate() {
                assert_eq!(found(&labels, label)[0], format!("a{number}"), "{label} among {all:?}");
            }
        }
    }

    #[test]
    fn an_exact_label_ranks_before_labels_with_the_same_folded_text() {
        let labels = labelled(&["resume", "Résumé", "RESUME"]);
        for (query, first) in [("resume", "a0"), ("Résumé", "a1"), (" RESUME ", "a2"), ("Resumé", "a2")] {
            let found = labels.search(query, SearchFilter::default(), 10);
            assert_eq!((found.len(), found[0].id.as_str()), (3, first), "{query}");
            assert!(found.iter().all(|hit| hit.score == 1.0), "{query}");
        }
    }

    #[test]
    fn texts_without_spaces_are_found_by_any_part() {
        let labels = labelled(&["東京都庁", "中文搜索引擎", "กรุงเทพมหานคร", "黒猫", "party 🎉", "Handbook"]);
        for (query, first) in [
            ("都庁", "a0"),
            ("京都", "a0"),
            ("東京", "a0"),
            ("東京都庁", "a0"),
            ("搜索", "a1"),
            ("引擎", "a1"),
            ("中文 引擎", "a1"),
            ("เทพ", "a2"),
            ("猫", "a3"),
            ("黒", "a3"),
            ("🎉", "a4"),
        ] {
            assert_eq!(found(&labels, query).first().map(String::as_str), Some(first), "{query}");
        }
        assert!(found(&labels, "🎊").is_empty());
        assert!(found(&labels, "大阪").is_empty());
    }

    #[test]
    fn words_over_64_letters_are_distinguished_by_their_ends() {
        let long = "x".repeat(100);
        let labels = labelled(&[&format!("{long}a"), &format!("{long}b"), &"y".repeat(900)]);
        for (query, first) in [(format!("{long}a"), "a0"), (format!("{long}b"), "a1"), ("y".repeat(900), "a2")] {
            let found = labels.search(&query, SearchFilter::default(), 10);
            assert_eq!((found[0].id.as_str(), found[0].score), (first, 1.0), "{query}");
        }
    }

    #[test]
    fn long_texts_are_indexed_and_unusual_queries_do_not_fail() {
        let long = "word ".repeat(100_000);
        let labels = made_of(&[Some(text(1, &[long.clone(), "é".repeat(2_000)], Some(long.clone()), 0))]);
        for query in [long.as_str(), "\u{0}", "\u{301}\u{301}", "𝔘𝔫𝔦𝔠𝔬𝔡𝔢", "  ", "ﷺﷺﷺ"] {
            labels.search(query, SearchFilter::default(), 10);
        }
        assert_eq!(labels.search("word", SearchFilter::default(), 10).len(), 1);
    }
}
