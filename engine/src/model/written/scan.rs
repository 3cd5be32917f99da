//! Finds the numbers in JSON text whose written form must be kept.

use std::collections::BTreeMap;

use super::decimal::Decimal;
use super::numbers::{Numbers, WrittenNumber};
use crate::model::json::MAX_STORED_DEPTH;

/// The minimum number of digits and points in a number whose written form may have to be kept. A double represents
/// every shorter number.
const MIN_LENGTH: usize = 16;

/// Returns whether JSON text may contain a number whose written form must be kept. Reads only one byte in sixteen, and
/// further bytes only around a digit or a point. The function must be fast because it is called for every text, and few
/// texts contain such a number.
pub fn is_likely_in(text: &[u8]) -> bool {
    let is_part = |byte: &&u8| byte.is_ascii_digit() || **byte == b'.';
    let mut at = MIN_LENGTH - 1;
    while let Some((before, after)) = text.split_at_checked(at) {
        let following = after.iter().take(MIN_LENGTH).take_while(is_part).count();
        if following > 0 && following + before.iter().rev().take(MIN_LENGTH).take_while(is_part).count() >= MIN_LENGTH {
            return true;
        }
        at += MIN_LENGTH;
    }
    false
}

/// Finds the numbers in an object that must keep their written form, and returns these forms. `text` must be the valid
/// JSON text of the object.
pub fn numbers_of(text: &str) -> Numbers {
    numbers_of_fields(text, |_| true)
}

/// Returns the written forms that must be kept for an object that contains only some fields of the text. These are the
/// fields whose names satisfy `is_read`.
pub fn numbers_of_fields(text: &str, is_read: impl Fn(&str) -> bool) -> Numbers {
    let mut scan = JsonScan { text, at: 0 };
    scan.skip(|byte| byte.is_ascii_whitespace());
    match scan.peek() {
        Some(b'{') => placed(scan.fields(MAX_STORED_DEPTH - 1), is_read),
        _ => Numbers::default(),
    }
}

/// A position in a JSON text. A parser must have accepted the text: the scan of an invalid text ends early.
struct JsonScan<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> JsonScan<'t> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// Skips the bytes that satisfy `matches`.
    fn skip(&mut self, matches: impl Fn(u8) -> bool) {
        while self.peek().is_some_and(&matches) {
            self.at += 1;
        }
    }

    /// Skips white space, and then `byte` if it follows. Returns whether `byte` followed.
    fn take(&mut self, byte: u8) -> bool {
        self.skip(|byte| byte.is_ascii_whitespace());
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    /// Skips a value. Returns the written form of each number in the value whose written form must be kept.
    fn value(&mut self, levels: usize) -> Option<WrittenNumber> {
        self.skip(|byte| byte.is_ascii_whitespace());
        match self.peek()? {
            b'{' => self.object(levels.checked_sub(1)?),
            b'[' => self.array(levels.checked_sub(1)?),
            b'"' => {
                self.string();
                None
            }
            _ => self.scalar(),
        }
    }

    fn object(&mut self, levels: usize) -> Option<WrittenNumber> {
        let numbers = placed(self.fields(levels), |_| true);
        (!numbers.is_empty()).then_some(WrittenNumber::Inside(numbers))
    }

    /// Skips an object. Returns a pair for each field: the name, with its quotes, and the written forms of the numbers
    /// in the value.
    fn fields(&mut self, levels: usize) -> Vec<(&'t str, Option<WrittenNumber>)> {
        self.at += 1;
        let mut fields = Vec::new();
        loop {
            self.skip(|byte| byte.is_ascii_whitespace());
            if self.peek() != Some(b'"') {
                break;
            }
            let name = self.string();
            if !self.take(b':') {
                break;
            }
            fields.push((name, self.value(levels)));
            if !self.take(b',') {
                break;
            }
        }
        self.take(b'}');
        fields
    }

    fn array(&mut self, levels: usize) -> Option<WrittenNumber> {
        self.at += 1;
        let mut numbers = Vec::new();
        let mut place = 0;
        while self.peek().is_some() && !self.take(b']') {
            let before = self.at;
            numbers.extend(self.value(levels).map(|number| (place, number)));
            self.take(b',');
            place += 1;
            if self.at == before {
                break;
            }
        }
        (!numbers.is_empty()).then_some(WrittenNumber::Inside(Numbers(numbers)))
    }

    /// Skips a string and returns the string with its quotes.
    fn string(&mut self) -> &'t str {
        let start = self.at;
        self.at += 1;
        loop {
            self.skip(|byte| byte != b'"' && byte != b'\\');
            match self.peek() {
                Some(b'\\') => self.at += 2,
                Some(_) => {
                    self.at += 1;
                    break;
                }
                None => break,
            }
        }
        self.text.get(start..self.at).unwrap_or_default()
    }

    /// Skips a number, `true`, `false` or `null`. Returns the written form if the value is a number for which
    /// [`is_kept`] returns `true`.
    fn scalar(&mut self) -> Option<WrittenNumber> {
        let start = self.at;
        self.skip(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'+' | b'.'));
        let text = self.text.get(start..self.at)?;
        is_kept(text).then(|| WrittenNumber::Text(text.into()))
    }
}

/// Returns the written forms for an object with only the fields whose names satisfy `is_read`. The place of a written
/// form is the index of its field in this object.
fn placed(fields: Vec<(&str, Option<WrittenNumber>)>, is_read: impl Fn(&str) -> bool) -> Numbers {
    if fields.iter().all(|(_, number)| number.is_none()) {
        return Numbers::default();
    }
    // If a name occurs several times, the object has the last value at the first place.
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    let mut numbers = BTreeMap::new();
    for (name, number) in fields {
        let name: String = serde_json::from_str(name).unwrap_or_default();
        if !is_read(&name) {
            continue;
        }
        let next = places.len();
        let place = *places.entry(name).or_insert(next);
        match number {
            Some(number) => drop(numbers.insert(place, number)),
            None => drop(numbers.remove(&place)),
        }
    }
    Numbers(numbers.into_iter().collect())
}

/// Returns whether the written form of a number must be kept. This is the case for an integer outside the range of
/// signed 64-bit integers, and for a number with more digits than a double represents.
fn is_kept(text: &str) -> bool {
    if text.len() < MIN_LENGTH || text.parse::<i64>().is_ok() {
        return false;
    }
    let Ok(double) = text.parse::<f64>() else { return false };
    !text.contains(['.', 'e', 'E']) || Decimal::of(text) != Decimal::of_double(double)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_numbers_are_found_at_every_offset() {
        for digits in [16, 17, 19, 20, 40] {
            for start in 0..40 {
                let text = format!("{}{}{}", " ".repeat(start), "7".repeat(digits), " ".repeat(start % 7));
                assert!(is_likely_in(text.as_bytes()), "{digits} digits from {start}");
            }
        }
        for text in ["", "1", "123456789012345", "2024-01-02T03:04:05.678Z", "1 2 3 4 5 6 7 8 9 1 2 3 4 5 6 7 8 9"] {
            assert!(!is_likely_in(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn a_scan_of_invalid_text_ends_without_a_panic() {
        for text in ["", "{", "[", "\"", "{\"a\"", "{\"a\":", "[1,", "\"\\", "[}", "{]", "{\"a\":}", "[é", "1\\"] {
            numbers_of(text);
        }
        numbers_of(&"[".repeat(100_000));
    }
}
