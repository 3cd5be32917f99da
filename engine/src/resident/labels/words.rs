//! The words in all labels or in all bodies, and the entries that contain each word.

use rustc_hash::FxHashMap;

use super::fold::is_pair;

/// The number of bits of a posting that count the occurrences of the word. The other bits contain the number of the
/// entry.
const COUNT_BITS: u32 = 6;
const MAX_COUNT: u32 = (1 << COUNT_BITS) - 1;
/// The number of different entry numbers that fit into a posting.
pub const MAX_ENTRIES: usize = 1 << (32 - COUNT_BITS);

/// The words by number, with their postings. The number of a word that no entry contains any longer is reused.
#[derive(Default)]
pub struct Words {
    numbers: FxHashMap<Box<str>, u32>,
    words: Vec<Word>,
    /// The sketches of words, which speed up a scan over all words. Pairs of characters have no sketch, because pairs
    /// match only exactly.
    sketches: Vec<Sketch>,
    /// For each sketch, the number of its word.
    sketched: Vec<u32>,
    free: Vec<u32>,
    /// The number of words in all entries, including repetitions.
    total: u64,
    /// The number of entries with at least one word.
    texts: u64,
}

struct Word {
    text: Box<str>,
    /// The entries that contain the word, with the numbers of occurrences, in ascending order of the entries.
    postings: Vec<u32>,
    /// The index of the word's sketch in `sketches`, if the word has one.
    sketch: Option<u32>,
}

/// A summary of a word: the letters that occur, the letters that occur several times, and the length. Words with a
/// small edit distance have similar sketches.
#[derive(Clone, Copy, Default)]
pub struct Sketch {
    letters: u64,
    length: u8,
}

impl Sketch {
    pub fn of(word: &str) -> Sketch {
        let letters = word.chars().fold(0u64, |letters, c| {
            let once = 1 << (u32::from(c) % 32);
            // The upper 32 bits mark letters that occur more than once.
            letters | if letters & once == 0 { once } else { once << 32 }
        });
        Sketch { letters, length: word.chars().count().min(255) as u8 }
    }

    /// Returns `false` only if more than `edits` edits are needed to change one word into the other. An edit adds,
    /// removes or replaces one letter.
    pub fn may_be_near(self, other: Sketch, edits: u32) -> bool {
        u32::from(self.length.abs_diff(other.length)) <= edits
            && (self.letters ^ other.letters).count_ones() <= 2 * edits
    }

    /// Returns `false` only if the word of `other` cannot begin with the word of this sketch.
    pub fn may_begin(self, other: Sketch) -> bool {
        self.length <= other.length && self.letters & !other.letters == 0
    }
}

impl Words {
    /// Returns the approximate size of the words and their postings in memory, in bytes.
    pub fn size_bytes(&self) -> usize {
        // Each word is stored twice. The 32 bytes are an estimate for the map entry and the allocation.
        let of = |word: &Word| 2 * (word.text.len() + 32) + word.postings.capacity() * size_of::<u32>();
        self.words.iter().map(of).sum::<usize>() + self.sketches.capacity() * (size_of::<Sketch>() + size_of::<u32>())
    }

    /// Adds the words of an entry's folded texts. If a text has the weight 2, each occurrence of a word in the text
    /// counts twice.
    pub fn insert(&mut self, entry: u32, texts: &[(impl AsRef<str>, u32)]) {
        self.texts += u64::from(is_any(texts));
        self.total += length(texts);
        for (word, count) in counted(texts) {
            let number = self.number(word);
            let posting = entry << COUNT_BITS | count.min(MAX_COUNT);
            if let Some(word) = self.words.get_mut(number as usize) {
                put_in(&mut word.postings, posting);
            }
        }
    }

    /// Removes the words of an entry's folded texts. The texts must be the same as in the call of [`Words::insert`].
    pub fn remove(&mut self, entry: u32, texts: &[(impl AsRef<str>, u32)]) {
        self.texts = self.texts.saturating_sub(u64::from(is_any(texts)));
        self.total = self.total.saturating_sub(length(texts));
        for (text, _) in counted(texts) {
            let Some(number) = self.numbers.get(text).copied() else { continue };
            let Some(word) = self.words.get_mut(number as usize) else { continue };
            if let Some(place) = place_of(&word.postings, entry) {
                word.postings.remove(place);
            }
            if word.postings.is_empty() {
                let word = std::mem::replace(word, Word { text: "".into(), postings: Vec::new(), sketch: None });
                self.numbers.remove(text);
                self.free.push(number);
                if let Some(place) = word.sketch {
                    self.remove_sketch(place);
                }
            }
        }
    }

    fn number(&mut self, text: &str) -> u32 {
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        let place = self.free.pop();
        let number = place.unwrap_or(self.words.len() as u32);
        let sketch = (!is_pair(text)).then_some(self.sketches.len() as u32);
        if sketch.is_some() {
            self.sketches.push(Sketch::of(text));
            self.sketched.push(number);
        }
        let word = Word { text: text.into(), postings: Vec::new(), sketch };
        match self.words.get_mut(number as usize) {
            Some(free) => *free = word,
            None => self.words.push(word),
        }
        self.numbers.insert(text.into(), number);
        number
    }

    /// Removes the sketch at the index `place`. The last sketch moves to this index.
    fn remove_sketch(&mut self, place: u32) {
        self.sketches.swap_remove(place as usize);
        self.sketched.swap_remove(place as usize);
        let moved = self.sketched.get(place as usize).and_then(|number| self.words.get_mut(*number as usize));
        if let Some(word) = moved {
            word.sketch = Some(place);
        }
    }

    /// Returns the number and the text of each word whose sketch satisfies `admits`.
    pub fn like(&self, admits: impl Fn(Sketch) -> bool) -> impl Iterator<Item = (u32, &str)> {
        let sketches = self.sketches.iter().zip(&self.sketched).filter(move |(sketch, _)| admits(**sketch));
        sketches.filter_map(|(_, number)| Some((*number, &*self.words.get(*number as usize)?.text)))
    }

    /// Returns the entries that contain the word with this number. Each entry is paired with the count of the word: the
    /// number of occurrences, each multiplied by the weight of its text, at most `MAX_COUNT`.
    pub fn entries(&self, number: u32) -> impl ExactSizeIterator<Item = (u32, u32)> {
        let postings = self.words.get(number as usize).map_or(&[][..], |word| &word.postings);
        postings.iter().map(|posting| (posting >> COUNT_BITS, posting & MAX_COUNT))
    }

    pub fn find(&self, word: &str) -> Option<u32> {
        self.numbers.get(word).copied()
    }

    /// Returns the count of a word in an entry: the number of occurrences, each multiplied by the weight of its text.
    /// The count is at most `MAX_COUNT`.
    pub fn count_in(&self, number: u32, entry: u32) -> u32 {
        let Some(word) = self.words.get(number as usize) else { return 0 };
        let posting = place_of(&word.postings, entry).and_then(|place| word.postings.get(place));
        posting.map_or(0, |posting| posting & MAX_COUNT)
    }

    /// Returns the average number of words per entry. Entries without words do not count.
    pub fn average_length(&self) -> f64 {
        self.total as f64 / self.texts.max(1) as f64
    }
}

/// Inserts a number into a list in ascending order, unless the list already contains the number.
pub fn put_in(numbers: &mut Vec<u32>, number: u32) {
    match numbers.last() {
        Some(last) if *last >= number => {
            if let Err(place) = numbers.binary_search(&number) {
                numbers.insert(place, number);
            }
        }
        _ => numbers.push(number),
    }
}

fn place_of(postings: &[u32], entry: u32) -> Option<usize> {
    let place = postings.partition_point(|posting| posting >> COUNT_BITS < entry);
    postings.get(place).is_some_and(|posting| posting >> COUNT_BITS == entry).then_some(place)
}

/// Returns the distinct words of folded texts, each with a count. Each occurrence adds the weight of its text to the
/// count.
fn counted(texts: &[(impl AsRef<str>, u32)]) -> impl Iterator<Item = (&str, u32)> {
    let mut counts: FxHashMap<&str, u32> = FxHashMap::default();
    for (text, weight) in texts {
        super::fold::words(text.as_ref()).for_each(|word| *counts.entry(word).or_default() += weight);
    }
    counts.into_iter()
}

/// Returns the number of words in folded texts, including repetitions.
pub fn length(texts: &[(impl AsRef<str>, u32)]) -> u64 {
    texts.iter().map(|(text, _)| super::fold::words(text.as_ref()).count() as u64).sum()
}

fn is_any(texts: &[(impl AsRef<str>, u32)]) -> bool {
    texts.iter().any(|(text, _)| !text.as_ref().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn removed_words_leave_no_entries() {
        let mut words = Words::default();
        words.insert(3, &[("one two two", 1)]);
        words.insert(1, &[("two", 1)]);
        let two = words.find("two").expect("an indexed word");
        assert_eq!(words.entries(two).collect::<Vec<_>>(), [(1, 1), (3, 2)]);
        assert_eq!(words.count_in(two, 3), 2);
        words.remove(3, &[("one two two", 1)]);
        assert_eq!(words.find("one"), None);
        words.insert(2, &[("new", 1)]);
        assert_eq!(words.words.len(), 2);
        words.remove(1, &[("two", 1)]);
        words.remove(2, &[("new", 1)]);
        assert_eq!((words.numbers.len(), words.total), (0, 0));
        assert_eq!((words.sketches.len(), words.sketched.len()), (0, 0));
    }

    #[test]
    fn each_occurrence_of_a_word_counts_with_the_weight_of_its_text() {
        let mut words = Words::default();
        words.insert(1, &[("one two", 3), ("two", 1)]);
        words.insert(2, &[("one", 1)]);
        let count = |words: &Words, word: &str, entry| words.count_in(words.find(word).expect("a word"), entry);
        assert_eq!([count(&words, "one", 1), count(&words, "two", 1), count(&words, "one", 2)], [3, 4, 1]);
        assert_eq!(words.average_length(), 2.0);
        words.remove(1, &[("one two", 3), ("two", 1)]);
        assert_eq!((words.find("two"), words.average_length()), (None, 1.0));
    }

    #[test]
    fn removing_a_word_keeps_the_sketches_of_the_other_words() {
        let mut words = Words::default();
        words.insert(1, &[("one two 東京 three", 1)]);
        words.remove(1, &[("one 東京", 1)]);
        let mut all: Vec<&str> = words.like(|_| true).map(|(_, word)| word).collect();
        all.sort_unstable();
        assert_eq!(all, ["three", "two"]);
        words.remove(1, &[("three", 1)]);
        words.insert(2, &[("four", 1)]);
        let like_four = words.like(|sketch| Sketch::of("four").may_be_near(sketch, 0));
        assert_eq!(like_four.map(|(_, word)| word).collect::<Vec<_>>(), ["four"]);
        assert!(words.find("東京").is_none());
    }
}
