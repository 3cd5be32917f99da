//! Selects the entries to score: entries that share trigrams or words with the query.

use std::sync::Arc;

use super::fold::{fold, is_pair, trigrams, words};
use super::index::{LABEL_BYTES, LabelEntry, LabelIndex, beginning};
use super::words::{Sketch, Words};

/// The maximum number of candidates that are found by trigrams. The same limit applies to the candidates that are found
/// by words.
const MAX_CANDIDATES: usize = 250;
/// The maximum number of indexed words that count as similar to one query word.
const MAX_SIMILAR_WORDS: usize = 48;
/// The minimum share of trigrams that an entry must have in common with the query. An entry below this share is not
/// found by trigrams.
const MIN_SHARE: f32 = 0.15;
/// The weight of a word in the body, relative to a word in the label.
pub const BODY_WEIGHT: f64 = 0.5;
/// The minimum length of a prefix that matches longer words, in letters.
const MIN_PREFIX: usize = 2;
/// The maximum length of a word that is compared by edit distance, in letters. Longer words match only exactly or by
/// prefix, because computing the edit distance takes quadratic time.
const MAX_COMPARED_LETTERS: usize = 64;
/// The maximum number of words of a query that are compared as words and by trigrams. Further words count only where
/// the whole query is compared with a label.
const MAX_QUERY_WORDS: usize = 32;

/// A search query, prepared for the search.
pub struct LabelQuery {
    /// The query as it was sent, without surrounding whitespace.
    pub text: String,
    /// The folded form of the query, which is first cut to the maximum length of a label.
    pub folded: String,
    pub words: Vec<String>,
    pub trigrams: Vec<u64>,
    /// The filter that results must match.
    pub filter: SearchFilter,
}

/// A filter on the aggregates that a search may return.
#[derive(Debug, Clone, Default)]
pub struct SearchFilter {
    pub aggregate_type: Option<Arc<str>>,
    /// The types that are left out if `aggregate_type` is `None`.
    pub without_types: &'static [&'static str],
    pub project_id: Option<Arc<str>>,
}

impl SearchFilter {
    pub fn admits(&self, aggregate_type: &Arc<str>, project_id: Option<&Arc<str>>) -> bool {
        let of_type = match &self.aggregate_type {
            Some(required) => required == aggregate_type,
            None => !self.without_types.contains(&&**aggregate_type),
        };
        of_type && self.project_id.as_ref().is_none_or(|required| Some(required) == project_id)
    }

    fn admits_entry(&self, entry: &LabelEntry) -> bool {
        self.admits(&entry.aggregate_type, entry.project_id.as_ref())
    }
}

impl LabelQuery {
    pub fn new(query: &str, filter: SearchFilter) -> LabelQuery {
        let folded = fold(beginning(query, LABEL_BYTES));
        let words: Vec<String> = words(&fold(query)).take(MAX_QUERY_WORDS).map(str::to_owned).collect();
        let trigrams = trigrams(&words.join(" "));
        LabelQuery { text: query.trim().to_owned(), folded, words, trigrams, filter }
    }
}

/// Returns the similarity of two words, from 0 to 1. The words are similar if few letters differ, or if `word` begins
/// with `query_word` and `query_word` has at least `MIN_PREFIX` letters. If one of the words is in a script without
/// spaces, the words are similar only if they are equal.
pub fn likeness(query_word: &str, word: &str) -> f64 {
    if query_word == word {
        return 1.0;
    }
    if is_pair(query_word) || is_pair(word) {
        return 0.0;
    }
    let (length, other) = (query_word.chars().count(), word.chars().count());
    let longer = length.max(other);
    let share = length as f64 / longer as f64;
    let prefix_score = if length >= MIN_PREFIX && word.starts_with(query_word) { 0.6 + 0.4 * share } else { 0.0 };
    if longer > MAX_COMPARED_LETTERS || length.abs_diff(other) > edits(longer) {
        return prefix_score;
    }
    let distance = strsim::osa_distance(query_word, word);
    let edit_score = if distance <= edits(longer) { 1.0 - distance as f64 / longer as f64 } else { 0.0 };
    prefix_score.max(edit_score)
}

/// Returns the maximum number of wrong letters in a word with `length` letters.
fn edits(length: usize) -> usize {
    match length {
        0..=3 => 0,
        4 => 1,
        _ => 2,
    }
}

impl Words {
    /// Returns the indexed words that are similar to a query word, each with its similarity, most similar first.
    /// Returns at most [`MAX_SIMILAR_WORDS`] words.
    fn alike(&self, query_word: &str) -> Vec<(u32, f64)> {
        if is_pair(query_word) {
            return self.find(query_word).map(|number| (number, 1.0)).into_iter().collect();
        }
        let sketch = Sketch::of(query_word);
        let edits = edits(query_word.chars().count() + 1) as u32;
        let near = self.like(|other| sketch.may_be_near(other, edits) || sketch.may_begin(other));
        let mut alike: Vec<(u32, f64)> = near.map(|(number, word)| (number, likeness(query_word, word))).collect();
        alike.retain(|(_, likeness)| *likeness > 0.0);
        alike.sort_by(|(_, a), (_, b)| b.total_cmp(a));
        alike.truncate(MAX_SIMILAR_WORDS);
        alike
    }

    /// Returns the weight of a word that occurs in `with_word` of `entries` entries. Rare words have a higher weight.
    pub fn rarity(entries: usize, with_word: usize) -> f64 {
        let (entries, with_word) = (entries as f64, (with_word as f64).min(entries as f64));
        (1.0 + (entries - with_word + 0.5) / (with_word + 0.5)).ln()
    }
}

impl LabelIndex {
    /// Returns the numbers of the entries to score.
    pub fn candidates(&self, query: &LabelQuery) -> Vec<u32> {
        let mut found = self.by_trigrams(query);
        found.extend(self.by_words(query));
        found.sort_unstable();
        found.dedup();
        found
    }

    fn by_trigrams(&self, query: &LabelQuery) -> Vec<u32> {
        let mut shared = vec![0u16; self.sizes.len()];
        for trigram in &query.trigrams {
            for number in self.with_trigram(*trigram) {
                if let Some(shared) = shared.get_mut(*number as usize) {
                    *shared = shared.saturating_add(1);
                }
            }
        }
        let all = query.trigrams.len() as f32;
        let found = shared.iter().zip(&self.sizes).enumerate().filter_map(|(number, (shared, size))| {
            let share = 2.0 * f32::from(*shared) / (all + f32::from(*size));
            if *shared == 0 || share < MIN_SHARE {
                return None;
            }
            let entry = self.entry(number as u32).filter(|entry| query.filter.admits_entry(entry))?;
            Some((share, entry.last_event_at, number as u32))
        });
        best(found.collect())
    }

    fn by_words(&self, query: &LabelQuery) -> Vec<u32> {
        let mut weights = vec![0f32; self.sizes.len()];
        let mut add = |words: &Words, number: u32, weight: f64| {
            let entries = words.entries(number);
            let weight = (weight * Words::rarity(self.len(), entries.len())) as f32;
            for (entry, _) in entries {
                if let Some(sum) = weights.get_mut(entry as usize) {
                    *sum += weight;
                }
            }
        };
        for word in &query.words {
            self.labels.alike(word).into_iter().for_each(|(number, likeness)| add(&self.labels, number, likeness));
            if let Some(number) = self.bodies.find(word) {
                add(&self.bodies, number, BODY_WEIGHT);
            }
        }
        let weighed = |number: usize, weight: f32| {
            let entry = self.entry(number as u32)?;
            query.filter.admits_entry(entry).then_some((weight, entry.last_event_at, number as u32))
        };
        let some = weights.iter().enumerate().filter(|(_, weight)| **weight > 0.0);
        best(some.filter_map(|(number, weight)| weighed(number, *weight)).collect())
    }
}

/// Returns the best candidates, at most [`MAX_CANDIDATES`]. If candidates are equally good, prefers the candidates that
/// changed most recently.
fn best(mut found: Vec<(f32, i64, u32)>) -> Vec<u32> {
    if found.len() > MAX_CANDIDATES {
        found
            .select_nth_unstable_by(MAX_CANDIDATES, |a, b| b.0.total_cmp(&a.0).then(b.1.cmp(&a.1)).then(a.2.cmp(&b.2)));
        found.truncate(MAX_CANDIDATES);
    }
    found.into_iter().map(|(_, _, number)| number).collect()
}
