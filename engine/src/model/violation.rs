//! Violations: errors in an input, each with its location. All violations are collected before the input is rejected.

/// One error at one location in a request's body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The location of the error, as a JSON pointer (RFC 6901) into the body, or into one event of the body.
    pub pointer: String,
    /// The error message: the value found, and the values that are allowed.
    pub message: String,
}

/// Collects violations while an input is checked.
#[derive(Debug, Default)]
pub struct Violations(Vec<Violation>);

impl Violations {
    pub fn add(&mut self, pointer: impl Into<String>, message: impl Into<String>) {
        self.0.push(Violation { pointer: pointer.into(), message: message.into() });
    }

    /// Adds the violations of a part of the body. `at` is the location of the part.
    pub fn add_below(&mut self, at: &str, part: Violations) {
        let below = |violation: Violation| Violation { pointer: format!("{at}{}", violation.pointer), ..violation };
        self.0.extend(part.0.into_iter().map(below));
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

/// Escapes a name for use as a segment of a JSON pointer.
pub fn segment(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}
