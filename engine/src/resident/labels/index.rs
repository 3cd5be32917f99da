//! The search index: one entry for each label, or one entry for an aggregate without labels. Entries are found by the
//! trigrams and words of the label, and by the words of the aggregate's body.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::fold::{fold, trigrams, words};
use super::words::{MAX_ENTRIES, Words, length, put_in};
use crate::model::id::AggregateId;

/// The maximum number of bytes of a label that are indexed.
pub const LABEL_BYTES: usize = 512;
/// The maximum number of bytes of an aggregate's body that are indexed. The body consists of all searched texts other
/// than the labels.
pub const BODY_BYTES: usize = 20_000;

/// The searchable text of one aggregate.
#[derive(Debug, Clone)]
pub struct SearchText {
    pub id: AggregateId,
    pub aggregate_type: Arc<str>,
    pub project_id: Option<Arc<str>>,
    pub last_event_at: i64,
    /// The labels of the aggregate. If the aggregate has its own label, this label is the first.
    pub labels: Vec<Arc<str>>,
    /// The searched texts other than the labels.
    pub body: Vec<TextPart>,
}

/// A text of an aggregate, and the weight of each of its words.
#[derive(Debug, Clone, PartialEq)]
pub struct TextPart {
    pub text: Arc<str>,
    pub weight: u32,
}

/// One label of an aggregate, or an aggregate without labels.
pub struct LabelEntry {
    pub id: AggregateId,
    pub aggregate_type: Arc<str>,
    pub project_id: Option<Arc<str>>,
    pub last_event_at: i64,
    /// The label before folding. The text shares its memory with the state, or with the labels that plugins found. A
    /// label that is a number in the state has its own memory. Empty if the aggregate has no label.
    pub label: Arc<str>,
    pub folded: Box<str>,
    pub words: u32,
    /// The searched texts of the aggregate other than the labels. If an aggregate has several labels, only the entry of
    /// the first label contains these texts. The text of a string shares the memory of the string in the state. The
    /// text of a list has its own memory.
    pub body: Vec<TextPart>,
    pub body_words: u32,
    /// Whether the aggregate has another label before this label. The aggregate's own label, if there is one, comes
    /// before the labels from plugins.
    pub further: bool,
}

/// The entries by number, and the lookups from trigrams and words to entries.
#[derive(Default)]
pub struct LabelIndex {
    entries: Vec<Option<LabelEntry>>,
    free: Vec<u32>,
    /// The entry of each aggregate's first label.
    first: FxHashMap<AggregateId, u32>,
    /// The entries of each aggregate's labels after the first label.
    further: FxHashMap<AggregateId, Vec<u32>>,
    /// The numbers of the entries that contain each trigram, in ascending order.
    trigrams: FxHashMap<u64, Vec<u32>>,
    /// The number of trigrams of each entry, by entry number. Unused entry numbers have 0 trigrams. Stored in its own
    /// vector, because every search reads most of these numbers.
    pub sizes: Vec<u16>,
    pub labels: Words,
    pub bodies: Words,
}

impl LabelIndex {
    /// Returns the approximate size of the index, in bytes. Texts that the states own do not count.
    pub fn size_bytes(&self) -> usize {
        let own = |part: &TextPart| if Arc::strong_count(&part.text) == 1 { part.text.len() } else { 0 };
        let of_entry = |entry: &LabelEntry| {
            let body = entry.body.iter().map(|part| size_of::<TextPart>() + own(part)).sum::<usize>();
            size_of::<LabelEntry>() + 64 + entry.folded.len() + body
        };
        let entries = self.entries.iter().flatten().map(of_entry);
        let trigrams = self.trigrams.values().map(|numbers| 48 + numbers.capacity() * size_of::<u32>());
        entries.sum::<usize>() + trigrams.sum::<usize>() + self.labels.size_bytes() + self.bodies.size_bytes()
    }

    /// Replaces the entries of an aggregate with entries for the given text.
    pub fn set(&mut self, text: SearchText) {
        let mut known = self.entries_of(&text.id);
        known.reverse();
        let mut kept = Vec::new();
        // An aggregate without a label is found by its other texts.
        let no_label: [Arc<str>; 1] = ["".into()];
        let labels = if text.labels.is_empty() { &no_label } else { text.labels.as_slice() };
        for (order, label) in labels.iter().enumerate() {
            let body = if order == 0 { text.body.clone() } else { Vec::new() };
            let folded = fold(beginning(label, LABEL_BYTES));
            // An entry with neither words nor a body could never be found.
            if folded.is_empty() && body.is_empty() {
                continue;
            }
            if let Some(number) = known.pop() {
                if let Some(entry) = self.entries.get_mut(number as usize).and_then(Option::as_mut) {
                    entry.label = label.clone();
                }
                self.change(number, folded, body, text.last_event_at, order > 0);
                kept.push(number);
            } else if let Some(number) = self.add(&text, label, folded, body, order > 0) {
                kept.push(number);
            }
        }
        known.into_iter().for_each(|number| self.drop_entry(number));
        self.record(&text.id, kept);
    }

    /// Removes the entries of an aggregate.
    pub fn remove(&mut self, id: &AggregateId) {
        self.entries_of(id).into_iter().for_each(|number| self.drop_entry(number));
        self.record(id, Vec::new());
    }

    fn entries_of(&self, id: &AggregateId) -> Vec<u32> {
        self.first.get(id).into_iter().chain(self.further.get(id).into_iter().flatten()).copied().collect()
    }

    fn record(&mut self, id: &AggregateId, mut numbers: Vec<u32>) {
        let further = if numbers.is_empty() { Vec::new() } else { numbers.split_off(1) };
        match numbers.first() {
            Some(first) => drop(self.first.insert(id.clone(), *first)),
            None => drop(self.first.remove(id)),
        }
        if further.is_empty() {
            self.further.remove(id);
        } else {
            self.further.insert(id.clone(), further);
        }
    }

    fn add(
        &mut self,
        text: &SearchText,
        label: &Arc<str>,
        folded: String,
        body: Vec<TextPart>,
        further: bool,
    ) -> Option<u32> {
        let number = match self.free.pop() {
            Some(number) => number,
            None if self.entries.len() < MAX_ENTRIES => {
                self.entries.push(None);
                self.sizes.push(0);
                self.entries.len() as u32 - 1
            }
            None => return None,
        };
        self.entries[number as usize] = Some(LabelEntry {
            id: text.id.clone(),
            aggregate_type: text.aggregate_type.clone(),
            project_id: text.project_id.clone(),
            last_event_at: text.last_event_at,
            label: label.clone(),
            folded: "".into(),
            words: 0,
            body: Vec::new(),
            body_words: 0,
            further,
        });
        self.change(number, folded, body, text.last_event_at, further);
        Some(number)
    }

    fn drop_entry(&mut self, number: u32) {
        self.change(number, String::new(), Vec::new(), 0, false);
        self.entries[number as usize] = None;
        self.free.push(number);
    }

    /// Replaces the content of an entry. Parts that have not changed are not indexed again.
    fn change(&mut self, number: u32, folded: String, body: Vec<TextPart>, last_event_at: i64, further: bool) {
        let Some(entry) = self.entries.get_mut(number as usize).and_then(Option::as_mut) else { return };
        (entry.last_event_at, entry.further) = (last_event_at, further);
        if *entry.folded != *folded {
            let previous = std::mem::replace(&mut entry.folded, folded.as_str().into());
            let (removed, added) = (trigrams(&previous), trigrams(&folded));
            entry.words = words(&folded).count() as u32;
            if let Some(size) = self.sizes.get_mut(number as usize) {
                *size = added.len().min(usize::from(u16::MAX)) as u16;
            }
            self.labels.remove(number, &[(previous, 1)]);
            self.labels.insert(number, &[(folded, 1)]);
            for trigram in removed {
                self.take_out(trigram, number);
            }
            for trigram in added {
                put_in(self.trigrams.entry(trigram).or_default(), number);
            }
        }
        let Some(entry) = self.entries.get_mut(number as usize).and_then(Option::as_mut) else { return };
        if entry.body != body {
            let added = folded_parts(&body);
            entry.body_words = length(&added) as u32;
            let previous = std::mem::replace(&mut entry.body, body);
            self.bodies.remove(number, &folded_parts(&previous));
            self.bodies.insert(number, &added);
        }
    }

    fn take_out(&mut self, trigram: u64, number: u32) {
        if let Some(numbers) = self.trigrams.get_mut(&trigram) {
            if let Ok(place) = numbers.binary_search(&number) {
                numbers.remove(place);
            }
            if numbers.is_empty() {
                self.trigrams.remove(&trigram);
            }
        }
    }

    pub fn entry(&self, number: u32) -> Option<&LabelEntry> {
        self.entries.get(number as usize)?.as_ref()
    }

    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        self.entries.len() - self.free.len()
    }

    /// Returns the entries that contain a trigram.
    pub fn with_trigram(&self, trigram: u64) -> &[u32] {
        self.trigrams.get(&trigram).map_or(&[], Vec::as_slice)
    }
}

/// Returns the folded texts with their weights. If the texts are longer than [`BODY_BYTES`] together, the longest texts
/// are cut, so that a long text does not keep shorter texts from being found.
fn folded_parts(parts: &[TextPart]) -> Vec<(String, u32)> {
    let mut by_length: Vec<usize> = (0..parts.len()).collect();
    by_length.sort_by_key(|place| parts[*place].text.len());
    let mut folded = vec![(String::new(), 0); parts.len()];
    let mut left = BODY_BYTES;
    for (done, place) in by_length.into_iter().enumerate() {
        let TextPart { text, weight } = &parts[place];
        let part = beginning(text, left / (parts.len() - done));
        left -= part.len();
        folded[place] = (fold(part), *weight);
    }
    folded
}

/// Returns the beginning of a text, at most `bytes` bytes long.
pub fn beginning(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_share_the_byte_limit_equally_and_do_not_displace_short_texts() {
        let part = |text: String, weight| TextPart { text: text.into(), weight };
        let parts = [part("a ".repeat(BODY_BYTES), 2), part("short".into(), 1), part("b ".repeat(BODY_BYTES), 1)];
        let folded = folded_parts(&parts);
        assert_eq!(folded[1], ("short".to_owned(), 1));
        let lengths: Vec<usize> = folded.iter().map(|(text, _)| text.len()).collect();
        assert!(lengths.iter().sum::<usize>() <= BODY_BYTES && lengths[0].abs_diff(lengths[2]) <= 2, "{lengths:?}");
    }
}
