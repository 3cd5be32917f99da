//! Character classes for search: scripts with separable accents, scripts without spaces, symbols and ignored marks.

use std::ops::RangeInclusive;

/// Latin, Greek and Cyrillic letters, whose accents search ignores.
const ACCENTED: [RangeInclusive<char>; 11] = [
    '\u{41}'..='\u{5A}',
    '\u{61}'..='\u{7A}',
    '\u{AA}'..='\u{2AF}',
    '\u{370}'..='\u{3FF}',
    '\u{400}'..='\u{52F}',
    '\u{1C80}'..='\u{1C8F}',
    '\u{1D00}'..='\u{1DBF}',
    '\u{1E00}'..='\u{1FFF}',
    '\u{2C60}'..='\u{2C7F}',
    '\u{A640}'..='\u{A7FF}',
    '\u{AB30}'..='\u{AB6F}',
];
/// Scripts without spaces between words: Thai, Lao, Tibetan, Burmese, Khmer, Tai Le, New Tai Lue, the kana, Bopomofo,
/// Yi and Chinese characters.
const UNSPACED: [RangeInclusive<char>; 15] = [
    '\u{0E00}'..='\u{0EFF}',
    '\u{0F00}'..='\u{109F}',
    '\u{1780}'..='\u{17FF}',
    '\u{1950}'..='\u{19DF}',
    '\u{2E80}'..='\u{2FDF}',
    '\u{3005}'..='\u{3007}',
    '\u{3021}'..='\u{312F}',
    '\u{31A0}'..='\u{31BF}',
    '\u{31F0}'..='\u{31FF}',
    '\u{3400}'..='\u{4DBF}',
    '\u{4E00}'..='\u{A4CF}',
    '\u{AA60}'..='\u{AA7F}',
    '\u{F900}'..='\u{FAFF}',
    '\u{1B000}'..='\u{1B16F}',
    '\u{20000}'..='\u{3FFFF}',
];
/// Points and signs that show the pronunciation of Hebrew and Arabic words. Most texts omit these signs.
const READING_MARKS: [RangeInclusive<char>; 5] = [
    '\u{0591}'..='\u{05C7}',
    '\u{0610}'..='\u{061A}',
    '\u{064B}'..='\u{0652}',
    '\u{0656}'..='\u{065F}',
    '\u{06D6}'..='\u{06ED}',
];
/// Symbols that each count as a word: arrows, mathematical and technical signs, dingbats and emoji.
const SYMBOLS: [RangeInclusive<char>; 2] = ['\u{2190}'..='\u{2BFF}', '\u{1F000}'..='\u{1FAFF}'];
/// Skin tones, which change the appearance of an emoji, but not its meaning.
const SKIN_TONES: RangeInclusive<char> = '\u{1F3FB}'..='\u{1F3FF}';
/// Variation selectors, which select the appearance of the character before the selector.
const VARIATION_SELECTORS: [RangeInclusive<char>; 2] = ['\u{FE00}'..='\u{FE0F}', '\u{E0100}'..='\u{E01EF}'];
/// Hangul syllables. Each syllable is composed of letters.
const HANGUL: RangeInclusive<char> = '\u{AC00}'..='\u{D7A3}';
const INDIC: RangeInclusive<char> = '\u{0900}'..='\u{0DFF}';

fn is_in<const N: usize>(ranges: &[RangeInclusive<char>; N], c: char) -> bool {
    ranges.iter().any(|range| range.contains(&c))
}

/// Returns whether search ignores the accents of a letter.
pub fn is_accented(c: char) -> bool {
    is_in(&ACCENTED, c)
}

/// Returns whether a letter belongs to a script without spaces between words.
pub fn is_unspaced(c: char) -> bool {
    c >= '\u{0E00}' && is_in(&UNSPACED, c)
}

/// Returns whether a character is a symbol that counts as a word.
pub fn is_symbol(c: char) -> bool {
    is_in(&SYMBOLS, c) && !SKIN_TONES.contains(&c)
}

/// Returns whether a character is a Hangul syllable.
pub fn is_hangul(c: char) -> bool {
    HANGUL.contains(&c)
}

/// Returns whether search ignores a character. `after` is the letter before the character.
pub fn is_ignored(c: char, after: Option<char>) -> bool {
    match c {
        // The soft hyphen, the zero width joiner and the word joiner.
        '\u{AD}' | '\u{200D}' | '\u{2060}' => true,
        // In Indic scripts, the zero width non-joiner does not separate words. In Persian, the zero width non-joiner
        // separates the parts of a word, which are indexed as separate words.
        '\u{200C}' => after.is_some_and(|letter| INDIC.contains(&letter)),
        _ => is_in(&VARIATION_SELECTORS, c) || SKIN_TONES.contains(&c) || is_in(&READING_MARKS, c),
    }
}
