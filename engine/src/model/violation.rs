//! Violations: what is wrong with an input, and where. All violations are collected before the input is rejected.

/// Something that is wrong at one place in the body that the client sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// JSON pointer (RFC 6901) into the body.
    pub pointer: String,
    /// What was found and what is allowed.
    pub message: String,
}

/// Collects violations while an input is checked.
#[derive(Debug, Default)]
pub struct Violations(Vec<Violation>);

impl Violations {
    pub fn add(&mut self, pointer: impl Into<String>, message: impl Into<String>) {
        self.0.push(Violation { pointer: pointer.into(), message: message.into() });
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the value if there are no violations.
    pub fn finish<T>(self, value: T) -> Result<T, Vec<Violation>> {
        if self.0.is_empty() { Ok(value) } else { Err(self.0) }
    }

    pub fn into_vec(self) -> Vec<Violation> {
        self.0
    }
}

/// Escapes a name for use as a segment of a JSON pointer.
pub fn segment(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}
