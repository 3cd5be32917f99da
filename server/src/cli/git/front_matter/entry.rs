//! The parts that the formats of front matter share: the text, the entries, the warnings, and the limits.

use foldwork_engine::model::excerpt::excerpt_of;
use serde_json::{Number, Value};

/// The maximum nesting depth of a value. The server stores deeper values, but no site generator needs deeper values.
pub const MAX_DEPTH: usize = 64;
/// The maximum number of values in a file's front matter. A name counts as a value, except a top-level name in TOML or
/// JSON. An alias counts as the value that it refers to, but an alias in place of a name does not count.
pub const MAX_VALUES: usize = 10_000;
/// The maximum size of all names and texts in a file's front matter, in bytes. Top-level names in TOML and JSON do not
/// count. An alias counts as the value that it refers to, but an alias in place of a name does not count.
pub const MAX_BYTES: usize = 256 * 1024;

/// A warning about a part of a file that is not imported as it is written. This type is also the error for invalid
/// text.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Warning {
    /// The number of the line in the file, from 1.
    pub line: usize,
    pub reason: String,
}

impl Warning {
    pub fn new(line: usize, reason: impl Into<String>) -> Self {
        Self { line, reason: reason.into() }
    }
}

/// The text of front matter, with its format and its place in the file.
pub struct Block<'a> {
    pub format: FrontMatterFormat,
    pub text: &'a str,
    /// The number of the text's first line in the file.
    pub first_line: usize,
    /// The text after the front matter.
    pub body: &'a str,
    /// Whether the front matter may instead be Markdown between two horizontal rules.
    pub is_ambiguous: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrontMatterFormat {
    Yaml,
    Toml,
    Json,
}

/// A top-level name with its value.
pub struct FrontMatterEntry {
    pub name: String,
    /// The line of the name in the file. In JSON, the line on which the value begins.
    pub line: usize,
    pub value: Value,
}

/// The numbers of values and bytes that the front matter of a file may still use.
pub struct Budget {
    values: usize,
    bytes: usize,
}

impl Budget {
    pub fn new() -> Self {
        Self { values: MAX_VALUES, bytes: MAX_BYTES }
    }

    /// Subtracts a number of values, and the number of bytes of their texts, from the budget. Fails if the budget is
    /// too small.
    pub fn charge(&mut self, values: usize, bytes: usize) -> Result<(), String> {
        match (self.values.checked_sub(values), self.bytes.checked_sub(bytes)) {
            (Some(values), Some(bytes)) => {
                (self.values, self.bytes) = (values, bytes);
                Ok(())
            }
            (None, _) => Err(format!("the front matter has more than {MAX_VALUES} values")),
            (_, None) => Err(format!("the front matter is larger than {} KiB", MAX_BYTES / 1024)),
        }
    }
}

/// Returns the number whose JSON is exactly `text`. Returns `None` if there is no such number, as for `007` and `1.10`,
/// and for integers outside the range of signed 64-bit integers.
pub fn exact_number(text: &str) -> Option<Number> {
    if !text.starts_with(|first: char| first == '-' || first.is_ascii_digit()) {
        return None;
    }
    let number: Number = serde_json::from_str(text).ok()?;
    ((number.is_i64() || number.is_f64()) && number.to_string() == text).then_some(number)
}

pub fn kept_as_text(name: &str, fault: Warning) -> Warning {
    let reason = format!("the value of `{}` is kept as text: {}", shown(name), fault.reason);
    Warning { line: fault.line, reason }
}

pub fn repeated(name: &str, line: usize) -> Warning {
    Warning { line, reason: format!("`{}` is left out: an earlier field has the same name", shown(name)) }
}

pub fn too_deep() -> String {
    format!("it is nested more than {MAX_DEPTH} levels deep")
}

/// Returns an excerpt of a text for a warning, with control characters escaped.
pub fn shown(text: &str) -> String {
    excerpt_of(text.escape_debug())
}
