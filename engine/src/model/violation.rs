//! Violations: errors in an input, each with its location. All violations are collected before the input is rejected.

use std::fmt;

/// An error at one location in the body of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The location of the error, as a JSON pointer (RFC 6901) into the body or into one event of the body.
    pub pointer: String,
    /// The error message, which usually names the allowed values.
    pub message: String,
}

/// The maximum number of violations that are reported. An input of a client may contain very many violations.
const MAX: usize = 1_000;

/// A collection of the violations in an input, up to a limit.
#[derive(Debug, Default)]
pub struct Violations(Vec<Violation>);

impl Violations {
    pub fn add(&mut self, pointer: impl Into<String>, message: impl Into<String>) {
        if !self.is_full() {
            self.0.push(Violation { pointer: pointer.into(), message: message.into() });
        }
    }

    /// Adds a violation and returns `None`, which the caller can return in place of the invalid value.
    pub fn refuse<T>(&mut self, pointer: impl Into<String>, message: impl Into<String>) -> Option<T> {
        self.add(pointer, message);
        None
    }

    /// Returns whether the maximum number of violations is reached. Further violations are left out, so the check can
    /// end.
    pub fn is_full(&self) -> bool {
        self.0.len() >= MAX
    }

    /// Adds the violations of a part of the body. `at` is the location of the part.
    pub fn add_below(&mut self, at: &str, part: Violations) {
        let below = |violation: Violation| Violation { pointer: format!("{at}{}", violation.pointer), ..violation };
        self.0.extend(part.0.into_iter().map(below));
        self.0.truncate(MAX);
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns `value` if there are no violations, and the violations otherwise.
    pub fn finish<T>(self, value: T) -> Result<T, Vec<Violation>> {
        if self.0.is_empty() { Ok(value) } else { Err(self.0) }
    }

    pub fn into_vec(self) -> Vec<Violation> {
        self.0
    }
}

/// The location of a value inside a body. Its JSON pointer is created only if there is an error.
#[derive(Debug, Clone, Copy)]
pub enum ValueLocation<'a> {
    At(&'a str),
    Field(&'a ValueLocation<'a>, &'a str),
    Item(&'a ValueLocation<'a>, usize),
}

impl fmt::Display for ValueLocation<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ValueLocation::At(pointer) => f.write_str(pointer),
            ValueLocation::Field(place, name) => write!(f, "{place}/{}", segment(name)),
            ValueLocation::Item(place, index) => write!(f, "{place}/{index}"),
        }
    }
}

impl From<ValueLocation<'_>> for String {
    fn from(place: ValueLocation<'_>) -> String {
        place.to_string()
    }
}

/// Escapes a name for use as a segment of a JSON pointer.
pub fn segment(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}
