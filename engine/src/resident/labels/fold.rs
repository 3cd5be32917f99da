//! Folds texts for search: converts them to lower case and removes the accents of Latin, Greek and Cyrillic letters.
//! Splits folded texts into words and trigrams.
//!
//! In scripts without spaces, each pair of neighboring characters is a word. A search for any two neighboring
//! characters of a text therefore finds the text, without a dictionary of word boundaries.

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

use super::script::{is_accented, is_hangul, is_ignored, is_symbol, is_unspaced};

/// The maximum number of signs at the end of a word, such as `++` in `C++`.
const MAX_SIGNS: usize = 3;

/// Returns the folded words of a text, separated by one space.
pub fn fold(text: &str) -> String {
    let mut folder = TextFolder { folded: String::with_capacity(text.len()), ..TextFolder::default() };
    if text.is_ascii() {
        text.chars().for_each(|c| folder.ascii(c));
    } else {
        // NFKC combines a letter and a mark into one character if Unicode has such a character. All other marks stay
        // after their letters.
        text.nfkc().for_each(|c| folder.push(c));
    }
    folder.finish()
}

#[derive(Default)]
struct TextFolder {
    folded: String,
    /// Whether the last word has not ended. The next letter continues this word, unless signs follow the word.
    in_word: bool,
    /// The signs after the last word. The signs belong to that word, except a single sign that a letter follows.
    signs: String,
    /// The letter to which the next combining mark would apply.
    base: Option<char>,
    /// The current run of consecutive characters of a script without spaces, including their marks.
    run: String,
    /// The offset in `run` of each character that is not a mark, in bytes.
    starts: Vec<usize>,
}

impl TextFolder {
    fn ascii(&mut self, c: char) {
        match c {
            'a'..='z' | '0'..='9' => self.letter(c),
            'A'..='Z' => self.letter(c.to_ascii_lowercase()),
            // An apostrophe does not end a word.
            '\'' => {}
            '+' | '#' => self.sign(c),
            _ => self.end_word(),
        }
    }

    fn push(&mut self, c: char) {
        if c.is_ascii() {
            self.base = Some(c);
            self.ascii(c);
        } else if c == '’' || is_ignored(c, self.base) {
        } else if is_combining_mark(c) {
            self.mark(c);
        } else {
            self.base = Some(c);
            if is_symbol(c) {
                self.end_word();
                self.letter(c);
                self.end_word();
            } else if !c.is_alphanumeric() {
                self.end_word();
            } else if is_unspaced(c) {
                self.character(c);
            } else if is_accented(c) {
                self.accented(c);
            } else if is_hangul(c) {
                c.nfd().for_each(|sound| self.letter(sound));
            } else {
                c.to_lowercase().for_each(|c| self.letter(c));
            }
        }
    }

    /// Adds a letter to the current word, or starts a new word.
    fn letter(&mut self, c: char) {
        self.end_run();
        self.end_signs(true);
        if !self.in_word && !self.folded.is_empty() {
            self.folded.push(' ');
        }
        self.in_word = true;
        self.folded.push(c);
    }

    /// Adds a Latin, Greek or Cyrillic letter without its accents.
    fn accented(&mut self, c: char) {
        for c in c.nfkd().filter(|c| !is_combining_mark(*c)).flat_map(char::to_lowercase) {
            match spelled_out(c) {
                Some(letters) => letters.chars().for_each(|c| self.letter(c)),
                // The lower case of some letters contains a combining mark, which is dropped.
                None if is_combining_mark(c) => {}
                None => self.letter(c),
            }
        }
    }

    /// Adds a combining mark to the letter before it, unless search ignores the accents of that letter.
    fn mark(&mut self, c: char) {
        match self.base {
            Some(base) if is_unspaced(base) && !self.starts.is_empty() => self.run.push(c),
            Some(base) if self.in_word && !is_accented(base) && base.is_alphabetic() => self.letter(c),
            _ => {}
        }
    }

    /// Adds a character of a script without spaces.
    fn character(&mut self, c: char) {
        if self.starts.is_empty() {
            self.end_word();
        }
        self.starts.push(self.run.len());
        self.run.push(c);
    }

    /// Records a sign that may belong to the word before the sign. Ends the word instead if the sign differs from the
    /// recorded signs, or if [`MAX_SIGNS`] signs are already recorded.
    fn sign(&mut self, c: char) {
        let goes_on = self.signs.chars().all(|sign| sign == c) && self.signs.len() < MAX_SIGNS;
        if self.in_word && goes_on {
            self.signs.push(c);
        } else {
            self.end_word();
        }
    }

    /// Ends a run of signs. Signs at the end of a word belong to the word, as in `C#`. Between two letters, a single
    /// sign is only a separator, but several signs belong to the word before them.
    fn end_signs(&mut self, before_letter: bool) {
        if self.signs.is_empty() {
            return;
        }
        if !before_letter || self.signs.len() > 1 {
            self.folded.push_str(&self.signs);
        }
        self.signs.clear();
        self.in_word = false;
    }

    fn end_word(&mut self) {
        self.end_run();
        self.end_signs(false);
        self.in_word = false;
    }

    /// Ends a run of characters of a script without spaces. Each pair of neighboring characters becomes a word. A run
    /// of one character becomes a word of one character.
    fn end_run(&mut self) {
        if self.starts.is_empty() {
            return;
        }
        let ends = self.starts.iter().skip(1).copied().chain([self.run.len()]).skip(usize::from(self.starts.len() > 1));
        for (start, end) in self.starts.iter().zip(ends) {
            if !self.folded.is_empty() {
                self.folded.push(' ');
            }
            self.folded.push_str(self.run.get(*start..end).unwrap_or_default());
        }
        self.run.clear();
        self.starts.clear();
        self.in_word = false;
    }

    fn finish(mut self) -> String {
        self.end_word();
        self.folded
    }
}

/// Returns the plain spelling of a letter that Unicode does not decompose, such as `ss` for `ß`.
fn spelled_out(c: char) -> Option<&'static str> {
    Some(match c {
        'ß' => "ss",
        'æ' => "ae",
        'œ' => "oe",
        'ø' => "o",
        'ł' => "l",
        'đ' | 'ð' => "d",
        'þ' => "th",
        'ħ' => "h",
        'ı' => "i",
        'ŋ' => "n",
        'ς' => "σ",
        _ => return None,
    })
}

/// Returns the words of a folded text.
pub fn words(folded: &str) -> impl Iterator<Item = &str> + Clone {
    folded.split(' ').filter(|word| !word.is_empty())
}

/// Returns whether a folded word is in a script without spaces. Such a word consists of one or two characters.
pub fn is_pair(word: &str) -> bool {
    word.chars().next().is_some_and(is_unspaced)
}

/// Returns the distinct trigrams of a folded text in ascending order. A word is padded with two spaces at the start and
/// one at the end. Every three consecutive characters of the padded word form a trigram. A word in a script without
/// spaces has one or two characters: the word itself and each of its characters count as trigrams.
pub fn trigrams(folded: &str) -> Vec<u64> {
    let mut trigrams = Vec::with_capacity(folded.len() + 4);
    for word in words(folded) {
        if is_pair(word) {
            pair_trigrams(word, &mut trigrams);
            continue;
        }
        let mut window = [' ', ' ', ' '];
        for c in word.chars().chain([' ']) {
            window = [window[1], window[2], c];
            trigrams.push(packed(window.map(u32::from)));
        }
    }
    trigrams.sort_unstable();
    trigrams.dedup();
    trigrams
}

fn pair_trigrams(word: &str, trigrams: &mut Vec<u64>) {
    let space = u32::from(' ');
    let mut before = None;
    let mut letters = word.chars().peekable();
    while let Some(letter) = letters.next() {
        // The marks of a character are hashed into the character's 21 bits, so that characters with different marks
        // usually differ.
        let mut character = u32::from(letter);
        while let Some(mark) = letters.next_if(|c| is_combining_mark(*c)) {
            character = (character.wrapping_mul(31) + u32::from(mark)) & CHARACTER;
        }
        trigrams.push(packed([space, space, character]));
        if let Some(before) = before {
            trigrams.push(packed([space, before, character]));
        }
        before = Some(character);
    }
}

/// The number of bits per character in a trigram.
const CHARACTER_BITS: u32 = 21;
const CHARACTER: u32 = (1 << CHARACTER_BITS) - 1;

fn packed(window: [u32; 3]) -> u64 {
    window.iter().fold(0, |packed, c| packed << CHARACTER_BITS | u64::from(*c))
}

/// Returns the number of items that occur in both lists. The lists must be sorted in ascending order.
pub fn common(a: &[u64], b: &[u64]) -> usize {
    let (mut a, mut b, mut count) = (a, b, 0);
    while let ([first, rest_a @ ..], [second, rest_b @ ..]) = (a, b) {
        match first.cmp(second) {
            std::cmp::Ordering::Less => a = rest_a,
            std::cmp::Ordering::Greater => b = rest_b,
            std::cmp::Ordering::Equal => {
                (a, b) = (rest_a, rest_b);
                count += 1;
            }
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_accents_and_punctuation_are_folded() {
        for (text, folded) in [
            ("Crème Brûlée", "creme brulee"),
            ("Rvalue_static--promotion!", "rvalue static promotion"),
            ("Straße, Łódź; smørrebrød", "strasse lodz smorrebrod"),
            ("don't, don’t", "dont dont"),
            ("άνεμος ΆΝΕΜΟΣ", "ανεμοσ ανεμοσ"),
            ("Й ё", "и е"),
            ("x\u{304} Cre\u{300}me", "x creme"),
            ("İstanbul ﬁne ²", "istanbul fine 2"),
            ("  ", ""),
            ("", ""),
        ] {
            assert_eq!(fold(text), folded, "{text}");
        }
    }

    #[test]
    fn words_of_1000_letters_are_not_split() {
        for letter in ["x", "é", "д", "म"] {
            let word = letter.repeat(1_000);
            assert_eq!(words(&fold(&word)).map(|word| word.chars().count()).collect::<Vec<_>>(), [1_000]);
        }
    }

    #[test]
    fn plus_and_hash_signs_at_the_end_of_a_word_are_part_of_the_word() {
        for (text, folded) in [
            ("C", "c"),
            ("C++", "c++"),
            ("C#", "c#"),
            ("C＃", "c#"),
            ("C++11 and C#-code", "c++ 11 and c# code"),
            ("a+b law#12 # + #tag", "a b law 12 tag"),
            ("c++++++", "c+++"),
            ("c+#", "c+"),
        ] {
            assert_eq!(fold(text), folded, "{text}");
        }
    }

    #[test]
    fn marks_that_distinguish_words_are_kept_and_reading_marks_are_ignored() {
        for (one, other) in [("ガス", "カス"), ("कम", "काम"), ("ความ", "ความ่"), ("क़", "क"), ("آب", "اب")]
        {
            assert_ne!(fold(one), fold(other), "{one} {other}");
        }
        // Different encodings of the same text have the same folded text.
        for (one, other) in
            [("ガス", "カ\u{3099}ス"), ("ガス", "ｶﾞｽ"), ("क़", "क\u{93C}"), ("한", "\u{1112}\u{1161}\u{11AB}")]
        {
            assert_eq!(fold(one), fold(other), "{one} {other}");
        }
        // Arabic and Hebrew reading marks, skin tones and variation selectors are ignored.
        for (one, other) in [("كِتَاب", "كتاب"), ("שָׁלוֹם", "שלום"), ("👍🏽", "👍"), ("❤\u{FE0F}", "❤")]
        {
            assert_eq!(fold(one), fold(other), "{one} {other}");
        }
    }

    #[test]
    fn texts_in_scripts_without_spaces_are_split_into_pairs_of_characters() {
        for (text, folded) in [
            ("東京都庁", "東京 京都 都庁"),
            ("中文搜索引擎 2024年", "中文 文搜 搜索 索引 引擎 2024 年"),
            ("iPhone手机壳", "iphone 手机 机壳"),
            ("走り方、犬", "走り り方 犬"),
            ("ไทย", "ไท ทย"),
            ("กี่กา", "กี่ก กา"),
            ("🎉", "🎉"),
            ("party🎉🎊now", "party 🎉 🎊 now"),
        ] {
            assert_eq!(fold(text), folded, "{text}");
        }
    }

    #[test]
    fn trigrams_of_words_are_padded_and_do_not_depend_on_the_order_of_the_words() {
        assert_eq!(trigrams("ab").len(), 3);
        assert_eq!(common(&trigrams("const generics"), &trigrams("generics const")), trigrams("const generics").len());
        assert!(trigrams("").is_empty());
    }

    #[test]
    fn trigrams_of_pairs_contain_every_character() {
        let long = trigrams(&fold("東京都庁"));
        assert_eq!(long.len(), 4 + 3);
        for part in ["東", "庁", "京都", "都庁"] {
            let part = trigrams(&fold(part));
            assert_eq!(common(&part, &long), part.len());
        }
    }
}
