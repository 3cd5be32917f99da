//! Which entries are worth a closer look: those that share trigrams or words with what is asked.

use std::sync::Arc;

use super::fold::{fold, is_pair, trigrams, words};
use super::index::{Entry, Index, LABEL_BYTES, beginning};
use super::words::{Sketch, Words};

/// Entries that each way of finding them contributes.
const MOST: usize = 250;
/// Words of the index that a word of the query may stand for.
const MOST_WORDS: usize = 48;
/// What an entry must have in common with the query to be looked at for its trigrams alone.
const LEAST_SHARE: f32 = 0.15;
/// What a word in the body counts beside one in the label.
pub const BODY_WEIGHT: f64 = 0.5;
/// Letters from which on the beginning of a word stands for it.
const SHORTEST_PREFIX: usize = 2;
/// Words of more letters are found as they are or by their beginning: comparing letter by letter takes the square of their
/// number.
const LONGEST_COMPARED: usize = 64;
/// Words of a query that are looked at.
const WORDS_ASKED: usize = 32;

/// What is asked, folded.
pub struct LabelQuery {
    /// As it was asked, without the space around it.
    pub written: String,
    /// As much of it as of a label.
    pub folded: String,
    pub words: Vec<String>,
    pub trigrams: Vec<u64>,
    /// Which entries may be found.
    pub filter: Filter,
}

/// Which aggregates are searched.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    pub aggregate_type: Option<Arc<str>>,
    /// Types that are found only where they are asked for.
    pub without_types: &'static [&'static str],
    pub project_id: Option<Arc<str>>,
}

impl Filter {
    pub fn admits(&self, aggregate_type: &Arc<str>, project_id: Option<&Arc<str>>) -> bool {
        let of_type = match &self.aggregate_type {
            Some(wanted) => wanted == aggregate_type,
            None => !self.without_types.contains(&&**aggregate_type),
        };
        of_type && self.project_id.as_ref().is_none_or(|wanted| Some(wanted) == project_id)
    }

    fn admits_entry(&self, entry: &Entry) -> bool {
        self.admits(&entry.aggregate_type, entry.project_id.as_ref())
    }
}

impl LabelQuery {
    pub fn new(query: &str, filter: Filter) -> LabelQuery {
        let folded = fold(beginning(query, LABEL_BYTES));
        let words: Vec<String> = words(&fold(query)).take(WORDS_ASKED).map(str::to_owned).collect();
        let trigrams = trigrams(&words.join(" "));
        LabelQuery { written: query.trim().to_owned(), folded, words, trigrams, filter }
    }
}

/// How alike two words are, from 0 to 1. A word that is asked may be unfinished.
pub fn likeness(asked: &str, word: &str) -> f64 {
    if asked == word {
        return 1.0;
    }
    if is_pair(asked) || is_pair(word) {
        return 0.0;
    }
    let (length, other) = (asked.chars().count(), word.chars().count());
    let longer = length.max(other);
    let share = length as f64 / longer as f64;
    let begun = if length >= SHORTEST_PREFIX && word.starts_with(asked) { 0.6 + 0.4 * share } else { 0.0 };
    if longer > LONGEST_COMPARED || length.abs_diff(other) > edits(longer) {
        return begun;
    }
    let distance = strsim::osa_distance(asked, word);
    let near = if distance <= edits(longer) { 1.0 - distance as f64 / longer as f64 } else { 0.0 };
    begun.max(near)
}

/// Letters that may be wrong in a word of this length.
fn edits(length: usize) -> usize {
    match length {
        0..=3 => 0,
        4 => 1,
        _ => 2,
    }
}

impl Words {
    /// The words that a word of the query may stand for, most alike first.
    fn alike(&self, asked: &str) -> Vec<(u32, f64)> {
        if is_pair(asked) {
            return self.find(asked).map(|number| (number, 1.0)).into_iter().collect();
        }
        let sketch = Sketch::of(asked);
        let edits = edits(asked.chars().count() + 1) as u32;
        let near = self.like(|other| sketch.may_be_near(other, edits) || sketch.may_begin(other));
        let mut alike: Vec<(u32, f64)> = near.map(|(number, word)| (number, likeness(asked, word))).collect();
        alike.retain(|(_, likeness)| *likeness > 0.0);
        alike.sort_by(|(_, a), (_, b)| b.total_cmp(a));
        alike.truncate(MOST_WORDS);
        alike
    }

    /// How much it says that an entry has a word that so many have.
    pub fn rarity(entries: usize, with_word: usize) -> f64 {
        let (entries, with_word) = (entries as f64, (with_word as f64).min(entries as f64));
        (1.0 + (entries - with_word + 0.5) / (with_word + 0.5)).ln()
    }
}

impl Index {
    /// The entries most worth a closer look.
    pub fn candidates(&self, asked: &LabelQuery) -> Vec<u32> {
        let mut found = self.by_trigrams(asked);
        found.extend(self.by_words(asked));
        found.sort_unstable();
        found.dedup();
        found
    }

    fn by_trigrams(&self, asked: &LabelQuery) -> Vec<u32> {
        let mut shared = vec![0u16; self.sizes().len()];
        for trigram in &asked.trigrams {
            for number in self.with_trigram(*trigram) {
                if let Some(shared) = shared.get_mut(*number as usize) {
                    *shared = shared.saturating_add(1);
                }
            }
        }
        let all = asked.trigrams.len() as f32;
        let found = shared.iter().zip(self.sizes()).enumerate().filter_map(|(number, (shared, size))| {
            let share = 2.0 * f32::from(*shared) / (all + f32::from(*size));
            if *shared == 0 || share < LEAST_SHARE {
                return None;
            }
            let entry = self.entry(number as u32).filter(|entry| asked.filter.admits_entry(entry))?;
            Some((share, entry.last_event_at, number as u32))
        });
        best(found.collect())
    }

    fn by_words(&self, asked: &LabelQuery) -> Vec<u32> {
        let mut weights = vec![0f32; self.sizes().len()];
        let mut add = |words: &Words, number: u32, weight: f64| {
            let entries = words.entries(number);
            let weight = (weight * Words::rarity(self.len(), entries.len())) as f32;
            for (entry, _) in entries {
                if let Some(sum) = weights.get_mut(entry as usize) {
                    *sum += weight;
                }
            }
        };
        for word in &asked.words {
            self.labels.alike(word).into_iter().for_each(|(number, likeness)| add(&self.labels, number, likeness));
            if let Some(number) = self.bodies.find(word) {
                add(&self.bodies, number, BODY_WEIGHT);
            }
        }
        let weighed = |number: usize, weight: f32| {
            let entry = self.entry(number as u32)?;
            asked.filter.admits_entry(entry).then_some((weight, entry.last_event_at, number as u32))
        };
        let some = weights.iter().enumerate().filter(|(_, weight)| **weight > 0.0);
        best(some.filter_map(|(number, weight)| weighed(number, *weight)).collect())
    }
}

/// The best of what was found; of equals those that changed last.
fn best(mut found: Vec<(f32, i64, u32)>) -> Vec<u32> {
    if found.len() > MOST {
        found.select_nth_unstable_by(MOST, |a, b| b.0.total_cmp(&a.0).then(b.1.cmp(&a.1)).then(a.2.cmp(&b.2)));
        found.truncate(MOST);
    }
    found.into_iter().map(|(_, _, number)| number).collect()
}
