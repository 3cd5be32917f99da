//! Scores how well an entry matches a query, with several measures.

use rustc_hash::FxHashMap;

use super::candidates::{BODY_WEIGHT, LabelQuery, likeness};
use super::fold::{common, is_pair, trigrams, words};
use super::index::{LabelEntry, LabelIndex};
use super::words::Words;

/// The constant of BM25 that determines how strongly repetitions of a word raise the score.
const K1: f64 = 1.2;
/// The constant of BM25 that determines how strongly long texts are penalized.
const B: f64 = 0.75;
/// The maximum score of every measure except `exact`.
const MAX_SCORE: f64 = 0.99;
/// The factor by which a score is multiplied if the label is not the first label of its aggregate.
pub const FURTHER: f64 = 0.98;
/// The minimum score of an entry that counts as a match. An entry with a BM25 score above 0 needs no minimum score.
const MIN_SCORE: f64 = 0.3;

/// The share of the token-set measure that depends only on how much of the query the label covers. The remaining share
/// also depends on how much of the label the query covers.
const QUERY_SHARE: f64 = 0.6;
/// The maximum deduction for words in a different order.
const MAX_ORDER_PENALTY: f64 = 0.02;
/// The number of bytes per allowed wrong letter when whole texts are compared. The bytes of the longer text count.
const LETTERS_PER_EDIT: usize = 4;

/// The minimum trigram score of two texts that are compared as a whole. Texts of at most [`SHORT_TEXT_BYTES`] bytes
/// need no minimum score.
const MIN_TRIGRAM_SCORE: f64 = 0.2;
const SHORT_TEXT_BYTES: usize = 12;
/// The maximum number of wrong letters when whole texts are compared.
const MAX_EDITS: usize = 4;
/// The maximum length of texts that are compared letter by letter as a whole, in bytes. The other measures also apply
/// to longer texts.
const MAX_WHOLE_BYTES: usize = 120;

/// The scores of one entry by each measure, from 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Scores {
    /// The score for a label that equals the query after folding: 1 for the aggregate's first label, and [`FURTHER`]
    /// for its other labels. 0 if the label differs from the query.
    pub exact: f64,
    /// The score for a label that begins with the query. A label with a later word that begins with the query gets a
    /// lower score. A query of one character also matches the second character of a word, if the character belongs to a
    /// writing system without spaces.
    pub prefix: f64,
    /// The number of trigrams that label and query have in common, as a share of the distinct trigrams of both texts.
    pub trigram: f64,
    /// The share of words that label and query have in common, in any order, weighted by their lengths. Words with a
    /// few wrong letters count as well. If the similarity of the whole texts, letter by letter, is higher than this
    /// share, the similarity is the score.
    pub token_set: f64,
    /// The BM25 score of label and body, relative to the highest possible value.
    pub bm25: f64,
}

impl Scores {
    /// Returns all measures with their names.
    pub fn named(&self) -> [(&'static str, f64); 5] {
        [
            ("exact", self.exact),
            ("prefix", self.prefix),
            ("trigram", self.trigram),
            ("token_set", self.token_set),
            ("bm25", self.bm25),
        ]
    }

    /// Returns the name and value of the highest score. If several measures have this score, returns the first of these
    /// measures.
    pub fn best(&self) -> (&'static str, f64) {
        let named = self.named();
        named.into_iter().reduce(|best, score| if score.1 > best.1 { score } else { best }).unwrap_or_default()
    }

    /// Returns whether the entry matches well enough to be a result.
    pub fn is_match(&self) -> bool {
        self.bm25 > 0.0 || self.best().1 >= MIN_SCORE
    }
}

/// A scorer of entries against one query.
pub struct Scorer<'a> {
    index: &'a LabelIndex,
    query: &'a LabelQuery,
    /// For each query word, the similarities of the label words compared so far. The similarities are cached because
    /// labels share many words.
    likenesses: Vec<FxHashMap<&'a str, f64>>,
    /// The query words. Each entry contains the numbers that identify the word in `LabelIndex::labels` and in
    /// `LabelIndex::bodies`, and the rarity of the word.
    terms: Vec<Term>,
}

struct Term {
    in_labels: Option<u32>,
    in_bodies: Option<u32>,
    rarity: f64,
}

impl<'a> Scorer<'a> {
    pub fn new(index: &'a LabelIndex, query: &'a LabelQuery) -> Scorer<'a> {
        let term = |word: &String| {
            let (in_labels, in_bodies) = (index.labels.find(word), index.bodies.find(word));
            let count = |words: &Words, number: Option<u32>| number.map_or(0, |number| words.entries(number).len());
            let with_word = count(&index.labels, in_labels).max(count(&index.bodies, in_bodies));
            Term { in_labels, in_bodies, rarity: Words::rarity(index.len(), with_word) }
        };
        let terms = query.words.iter().map(term).collect();
        Scorer { index, query, likenesses: vec![FxHashMap::default(); query.words.len()], terms }
    }

    /// Returns all scores of an entry, rounded to four digits.
    pub fn scores(&mut self, number: u32, entry: &'a LabelEntry) -> Scores {
        let share = if entry.further { FURTHER } else { 1.0 };
        let rounded = |score: f64| (score * share * 1e4).round() / 1e4;
        let limited = |score: f64| rounded(score.min(MAX_SCORE));
        let trigram = self.trigram(entry);
        Scores {
            exact: rounded(f64::from(u8::from(*entry.folded == *self.query.folded))),
            prefix: limited(self.prefix(entry)),
            trigram: limited(trigram),
            token_set: limited(self.token_set(entry).max(self.as_a_whole(entry, trigram))),
            bm25: limited(self.bm25(number, entry)),
        }
    }

    fn prefix(&self, entry: &LabelEntry) -> f64 {
        let (query, label) = (self.query.folded.as_str(), &*entry.folded);
        let share = query.len() as f64 / label.len().max(1) as f64;
        match label.strip_prefix(query) {
            // A match that ends at a word boundary scores higher than one inside a word.
            Some(rest) if rest.is_empty() || rest.starts_with(' ') => 0.85 + 0.15 * share,
            Some(_) => 0.7 + 0.25 * share,
            None if label.match_indices(query).any(|(at, _)| label[..at].ends_with(' ')) => 0.6 + 0.3 * share,
            // A single character of a script without spaces may be the end of a pair.
            None if is_pair(query) && label.contains(query) => 0.5 + 0.3 * share,
            None => 0.0,
        }
    }

    fn trigram(&self, entry: &LabelEntry) -> f64 {
        let query = &self.query.trigrams;
        let of_label = trigrams(&entry.folded);
        let both = common(query, &of_label);
        let either = query.len() + of_label.len() - both;
        both as f64 / either.max(1) as f64
    }

    /// Scores the share of the query's words that are in the label and, with less weight, the share of the label that
    /// the query covers.
    fn token_set(&mut self, entry: &'a LabelEntry) -> f64 {
        let mut best_of_label = vec![0f64; entry.words as usize];
        let (mut query_covered, mut query_length, mut place, mut backwards) = (0.0, 0.0, 0, 0.0);
        for (query_word, cache) in self.query.words.iter().zip(&mut self.likenesses) {
            let (mut best, mut at) = (0f64, place);
            for (order, (word, best_of_word)) in words(&entry.folded).zip(&mut best_of_label).enumerate() {
                let alike = *cache.entry(word).or_insert_with(|| likeness(query_word, word));
                if alike > best || alike == best && order == place {
                    (best, at) = (alike, order);
                }
                *best_of_word = best_of_word.max(alike);
            }
            backwards += f64::from(u8::from(at < place));
            place = at;
            query_covered += best * query_word.len() as f64;
            query_length += query_word.len() as f64;
        }
        if query_length == 0.0 {
            return 0.0;
        }
        let (mut label_covered, mut label_length) = (0.0, 0.0);
        for (word, best) in words(&entry.folded).zip(best_of_label) {
            label_covered += best * word.len() as f64;
            label_length += word.len() as f64;
        }
        let of_label = if label_length > 0.0 { label_covered / label_length } else { 0.0 };
        let in_order = 1.0 - MAX_ORDER_PENALTY * backwards / self.query.words.len() as f64;
        query_covered / query_length * (QUERY_SHARE + (1.0 - QUERY_SHARE) * of_label) * in_order
    }

    /// Scores the similarity of label and query letter by letter. For example, a label is found even if the query omits
    /// a space. Returns 0 if many letters differ, or if one of the texts is longer than [`MAX_WHOLE_BYTES`].
    fn as_a_whole(&self, entry: &LabelEntry, trigram: f64) -> f64 {
        let (query, label) = (self.query.folded.as_str(), &*entry.folded);
        let longer = query.len().max(label.len());
        // Texts with many differences are skipped: a few typing errors leave most trigrams of a longer text unchanged.
        let max_edits = (longer / LETTERS_PER_EDIT).min(MAX_EDITS);
        let hopeless = longer > MAX_WHOLE_BYTES || longer > SHORT_TEXT_BYTES && trigram < MIN_TRIGRAM_SCORE;
        if hopeless || query.len().abs_diff(label.len()) > max_edits {
            return 0.0;
        }
        let distance = strsim::osa_distance(query, label);
        if distance <= max_edits { 1.0 - distance as f64 / longer.max(1) as f64 } else { 0.0 }
    }

    fn bm25(&self, number: u32, entry: &LabelEntry) -> f64 {
        let LabelIndex { labels, bodies, .. } = self.index;
        let saturated = |words: &Words, term: Option<u32>, length: u32| {
            let count = term.map_or(0.0, |term| f64::from(words.count_in(term, number)));
            count / (count + K1 * (1.0 - B + B * f64::from(length) / words.average_length().max(1.0)))
        };
        let (mut sum, mut whole) = (0.0, 0.0);
        for term in &self.terms {
            let in_label = saturated(labels, term.in_labels, entry.words);
            let in_body = saturated(bodies, term.in_bodies, entry.body_words);
            sum += term.rarity * (in_label + BODY_WEIGHT * in_body).min(1.0);
            whole += term.rarity;
        }
        if whole > 0.0 { sum / whole } else { 0.0 }
    }
}
