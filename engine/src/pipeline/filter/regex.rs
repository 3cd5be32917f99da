//! Regular expressions of queries: MongoDB's options, and an end to every search.

use super::dialect::translate;
use crate::pipeline::error::{Error, Result};

/// Steps after which a backtracking search gives up.
const BACKTRACK_LIMIT: usize = 1_000_000;
/// Bytes that a compiled pattern may take.
const SIZE_LIMIT: usize = 1 << 20;
/// Bytes that a pattern may have (MongoDB's own limit).
const PATTERN_LIMIT: usize = 32_764;

#[derive(Debug, Clone)]
pub struct Regex {
    compiled: fancy_regex::Regex,
}

impl Regex {
    /// Compiles a pattern with the options `i`, `m`, `s`, `x` and `u`.
    pub fn new(pattern: &str, options: &str) -> Result<Regex> {
        if let Some(unknown) = options.chars().find(|option| !"imsxu".contains(*option)) {
            return Err(Error::new(51108, format!("invalid flag in regex options: {unknown}")));
        }
        if pattern.contains('\0') {
            return Err(Error::new(2, "Regular expression cannot contain an embedded null byte"));
        }
        if pattern.len() > PATTERN_LIMIT {
            return Err(invalid("regular expression is too large"));
        }
        let has = |option| options.contains(option);
        let compiled = fancy_regex::RegexBuilder::new(&translate(pattern))
            .case_insensitive(has('i'))
            .multi_line(has('m'))
            .dot_matches_new_line(has('s'))
            .verbose_mode(has('x'))
            .backtrack_limit(BACKTRACK_LIMIT)
            .delegate_size_limit(SIZE_LIMIT)
            .delegate_dfa_size_limit(SIZE_LIMIT)
            .build()
            .map_err(|reason| invalid(&reason.to_string()))?;
        Ok(Regex { compiled })
    }

    /// Whether the pattern occurs in the text.
    pub fn is_match(&self, text: &str) -> Result<bool> {
        self.compiled.is_match(text).map_err(|reason| {
            Error::new(51156, format!("Error occurred while executing the regular expression: {reason}"))
        })
    }
}

fn invalid(reason: &str) -> Error {
    Error::new(51091, format!("Regular expression is invalid: {reason}"))
}
