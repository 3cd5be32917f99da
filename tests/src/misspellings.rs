//! Derives search queries from labels, with errors that people make: typos, a different word order, wrong accents, or
//! unfinished words.

use strum::VariantArray;

/// A pseudorandom number generator that gives the same numbers in every run.
pub struct Chance(u64);

impl Chance {
    /// Creates a generator with a seed.
    pub fn new(seed: u64) -> Chance {
        Chance(seed)
    }

    /// Returns the next pseudorandom number, which is below `end`. Uses the algorithm splitmix64.
    pub fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((x ^ (x >> 31)) % end.max(1) as u64) as usize
    }
}

/// The change that turns a label into a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq, VariantArray)]
pub enum Change {
    /// One wrong letter in one of the longer words.
    Typo,
    /// One wrong letter in each of the longer words.
    Typos,
    Order,
    Accents,
    /// The last word is unfinished.
    Prefix,
    /// Every word is unfinished.
    Prefixes,
}

impl Change {
    /// Applies the change to a label and returns the query.
    pub fn of(self, label: &str, chance: &mut Chance) -> String {
        let words = label.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
        let mut words: Vec<String> = words.map(str::to_owned).collect();
        let mut long: Vec<&mut String> =
            words.iter_mut().filter(|word| word.chars().count() >= MIN_TYPO_CHARS).collect();
        match self {
            Change::Typo => {
                let one = chance.below(long.len());
                long.get_mut(one).into_iter().for_each(|word| **word = typo(word, chance));
            }
            Change::Typos => long.into_iter().for_each(|word| *word = typo(word, chance)),
            Change::Order => (1..words.len()).rev().for_each(|end| words.swap(end, chance.below(end + 1))),
            Change::Accents => words.iter_mut().for_each(|word| *word = word.chars().map(accent).collect()),
            Change::Prefix => words.iter_mut().next_back().into_iter().for_each(shorten),
            Change::Prefixes => words.iter_mut().for_each(shorten),
        }
        words.join(" ")
    }
}

/// The minimum length, in letters, of the words that receive typos. Search finds a word of this length despite one
/// wrong letter.
const MIN_TYPO_CHARS: usize = 5;

/// Omits, doubles or replaces one letter, or swaps one letter with the next.
fn typo(word: &str, chance: &mut Chance) -> String {
    let mut letters: Vec<char> = word.chars().collect();
    let at = chance.below(letters.len() - 1);
    match chance.below(4) {
        0 => drop(letters.remove(at)),
        1 => letters.insert(at, letters[at]),
        2 => letters[at] = char::from(b'a' + chance.below(26) as u8),
        _ => letters.swap(at, at + 1),
    }
    letters.into_iter().collect()
}

fn accent(letter: char) -> char {
    match letter {
        'a' => 'à',
        'c' => 'ç',
        'e' => 'é',
        'i' => 'ï',
        'n' => 'ñ',
        'o' => 'ö',
        'u' => 'ü',
        other => other,
    }
}

/// Keeps about two thirds of a word, and at least three letters.
fn shorten(word: &mut String) {
    let letters = word.chars().count();
    *word = word.chars().take((letters * 2).div_ceil(3).max(3)).collect();
}
