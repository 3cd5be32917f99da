//! Values in error messages: as much of each as a person reads, whatever its length.

use std::fmt::{self, Write as _};
use std::io;

use super::value::Value;

/// Characters of a value or text that an error message shows.
pub const LONGEST: usize = 100;

/// A value as compact JSON, cut after [`LONGEST`] characters. Nothing behind the cut is built: a value that shares its parts
/// may be far longer when it is written out than it is in memory.
pub fn excerpt(value: &Value) -> String {
    let mut out = Cut::default();
    // A full buffer ends the serializer with an error; the characters before the cut are there.
    let _ = serde_json::to_writer(&mut out, value);
    out.finish()
}

/// Anything else that a message shows, cut after [`LONGEST`] characters: a client's text, a name, a pattern.
pub fn excerpt_of(shown: impl fmt::Display) -> String {
    let mut out = Cut::default();
    let _ = write!(out, "{shown}");
    out.finish()
}

/// The first bytes of what is written, enough for [`LONGEST`] characters and for knowing whether there were more.
#[derive(Default)]
struct Cut {
    bytes: Vec<u8>,
}

impl Cut {
    /// A character takes at most four bytes.
    const BYTES: usize = 4 * (LONGEST + 1);

    /// Takes bytes while there is room; `false` when some were left out.
    fn take(&mut self, bytes: &[u8]) -> bool {
        let room = Cut::BYTES - self.bytes.len();
        self.bytes.extend_from_slice(&bytes[..bytes.len().min(room)]);
        bytes.len() <= room
    }

    fn finish(self) -> String {
        let text = String::from_utf8_lossy(&self.bytes);
        match text.char_indices().nth(LONGEST) {
            Some((cut, _)) => format!("{}…", &text[..cut]),
            None => text.into_owned(),
        }
    }
}

impl io::Write for Cut {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.take(bytes) { Ok(bytes.len()) } else { Err(io::ErrorKind::WriteZero.into()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl fmt::Write for Cut {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.take(text.as_bytes()) { Ok(()) } else { Err(fmt::Error) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_values_are_shown_whole_and_long_ones_are_cut() {
        assert_eq!(excerpt(&Value::from(vec![Value::Int(1), Value::from("é\"")])), r#"[1,"é\""]"#);
        let exact = "é".repeat(LONGEST - 2);
        assert_eq!(excerpt(&Value::from(exact.as_str())), format!("\"{exact}\""));
        let shown = excerpt(&Value::from("é".repeat(LONGEST)));
        assert_eq!(shown, format!("\"{}…", "é".repeat(LONGEST - 1)));
        assert_eq!(excerpt_of("x".repeat(1 << 20)), format!("{}…", "x".repeat(LONGEST)));
        assert_eq!(excerpt_of("x".repeat(LONGEST)), "x".repeat(LONGEST));
    }

    #[test]
    fn what_stands_behind_the_cut_is_not_built() {
        // Written out it would have 2^60 items.
        let mut value = Value::Int(1);
        for _ in 0..60 {
            value = Value::from(vec![value.clone(), value]);
        }
        assert!(excerpt(&value).starts_with("[[[["));
    }
}
