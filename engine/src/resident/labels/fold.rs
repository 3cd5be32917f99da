//! Texts as search sees them: lower case, without accents, as words and as trigrams.

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

/// Words longer than this are cut; nobody types them.
const LONGEST_WORD: usize = 64;

/// The words of a text, folded, with one space between them.
pub fn fold(text: &str) -> String {
    let mut folded = String::with_capacity(text.len());
    let mut length = 0;
    let mut push = |c: char| {
        if !c.is_alphanumeric() {
            length = 0;
            if !folded.is_empty() && !folded.ends_with(' ') {
                folded.push(' ');
            }
        } else if length < LONGEST_WORD {
            length += 1;
            folded.push(c);
        }
    };
    for c in text.chars() {
        match c {
            'a'..='z' | '0'..='9' => push(c),
            'A'..='Z' => push(c.to_ascii_lowercase()),
            // An apostrophe stands within a word.
            '\'' | '’' => {}
            _ if c.is_ascii() => push(' '),
            _ => fold_char(c, &mut push),
        }
    }
    let end = folded.trim_end().len();
    folded.truncate(end);
    folded
}

fn fold_char(c: char, push: &mut impl FnMut(char)) {
    for c in c.nfkd().filter(|c| !is_combining_mark(*c)).flat_map(char::to_lowercase) {
        match apart(c) {
            Some(letters) => letters.chars().for_each(&mut *push),
            // A letter in lower case may come with a mark of its own.
            None if is_combining_mark(c) => {}
            None => push(c),
        }
    }
}

/// Letters that no decomposition takes apart, as they are written without them.
fn apart(c: char) -> Option<&'static str> {
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

/// The words of a folded text.
pub fn words(folded: &str) -> impl Iterator<Item = &str> + Clone {
    folded.split(' ').filter(|word| !word.is_empty())
}

/// The distinct trigrams of a folded text, in ascending order: of each word with two spaces before and one behind it.
pub fn trigrams(folded: &str) -> Vec<u64> {
    let mut trigrams = Vec::with_capacity(folded.len() + 4);
    for word in words(folded) {
        let mut window = [' ', ' ', ' '];
        for c in word.chars().chain([' ']) {
            window = [window[1], window[2], c];
            trigrams.push(packed(window));
        }
    }
    trigrams.sort_unstable();
    trigrams.dedup();
    trigrams
}

fn packed(window: [char; 3]) -> u64 {
    window.iter().fold(0, |packed, c| packed << 21 | u64::from(u32::from(*c)))
}

/// How many of two ascending lists are in both.
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
    fn case_accents_and_signs_are_folded() {
        for (text, folded) in [
            ("Crème Brûlée", "creme brulee"),
            ("Rvalue_static--promotion!", "rvalue static promotion"),
            ("Straße, Łódź; smørrebrød", "strasse lodz smorrebrod"),
            ("don't", "dont"),
            ("άνεμος ΆΝΕΜΟΣ", "ανεμοσ ανεμοσ"),
            ("İstanbul ﬁne ²", "istanbul fine 2"),
            ("  ", ""),
            ("", ""),
        ] {
            assert_eq!(fold(text), folded, "{text}");
        }
        assert_eq!(fold(&"x".repeat(1_000)).len(), LONGEST_WORD);
    }

    #[test]
    fn trigrams_know_where_words_begin_and_end() {
        assert_eq!(trigrams("ab").len(), 3);
        assert_eq!(common(&trigrams("const generics"), &trigrams("generics const")), trigrams("const generics").len());
        assert!(trigrams("").is_empty());
    }
}
