//! Excerpts of values for error messages. An excerpt is short, regardless of the size of the value.

use std::fmt;
use std::io::{self, Write};

use super::value::Value;

/// The maximum number of characters of an excerpt, without the `…` that marks a cut.
pub const MAX_CHARS: usize = 100;

/// Returns a value as compact JSON, cut after [`MAX_CHARS`] characters. The text after the cut is never created,
/// because the text of a value with shared parts may be far longer than the value in memory.
pub fn excerpt(value: &Value) -> String {
    let mut out = Cut { bytes: Vec::new(), max_chars: MAX_CHARS };
    // The serializer fails when the buffer is full. The buffer then contains the characters before the cut.
    let _ = serde_json::to_writer(&mut out, value);
    out.finish()
}

/// Formats a text for an error message and cuts it after [`MAX_CHARS`] characters. The text may be a client's text, a
/// name or a pattern.
pub fn excerpt_of(shown: impl fmt::Display) -> String {
    cut(MAX_CHARS, shown)
}

/// Formats `shown` and cuts the text after `max_chars` characters. Formatting stops at the cut.
pub fn cut(max_chars: usize, shown: impl fmt::Display) -> String {
    let mut out = Cut { bytes: Vec::new(), max_chars };
    let _ = write!(out, "{shown}");
    out.finish()
}

/// A buffer for the first bytes of a text. The capacity is enough for one character more than `max_chars`. The
/// additional character shows that the text must be cut.
struct Cut {
    bytes: Vec<u8>,
    max_chars: usize,
}

impl Cut {
    fn finish(self) -> String {
        let text = String::from_utf8_lossy(&self.bytes);
        match text.char_indices().nth(self.max_chars) {
            Some((cut, _)) => format!("{}…", &text[..cut]),
            None => text.into_owned(),
        }
    }
}

impl Write for Cut {
    /// Appends bytes up to the capacity. Fails if some bytes did not fit.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // A character takes at most four bytes.
        let remaining = 4 * (self.max_chars + 1) - self.bytes.len();
        self.bytes.extend_from_slice(&bytes[..bytes.len().min(remaining)]);
        if bytes.len() <= remaining { Ok(bytes.len()) } else { Err(io::ErrorKind::WriteZero.into()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_values_are_shown_whole_and_long_values_are_truncated() {
        assert_eq!(excerpt(&Value::from(vec![Value::Int(1), Value::from("é\"")])), r#"[1,"é\""]"#);
        let exact = "é".repeat(MAX_CHARS - 2);
        assert_eq!(excerpt(&Value::from(exact.as_str())), format!("\"{exact}\""));
        let shown = excerpt(&Value::from("é".repeat(MAX_CHARS)));
        assert_eq!(shown, format!("\"{}…", "é".repeat(MAX_CHARS - 1)));
        assert_eq!(excerpt_of("x".repeat(1 << 20)), format!("{}…", "x".repeat(MAX_CHARS)));
        assert_eq!(excerpt_of("x".repeat(MAX_CHARS)), "x".repeat(MAX_CHARS));
        assert_eq!(cut(500, "é".repeat(500)), "é".repeat(500));
        assert_eq!(cut(500, "é".repeat(501)), format!("{}…", "é".repeat(500)));
    }

    #[test]
    fn an_excerpt_of_a_huge_value_is_created_without_the_full_text() {
        // As text, this value has 2^60 items.
        let mut value = Value::Int(1);
        for _ in 0..60 {
            value = Value::from(vec![value.clone(), value]);
        }
        assert!(excerpt(&value).starts_with("[[[["));
    }
}
