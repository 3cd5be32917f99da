//! Regular expressions of queries. The limits of the query apply to compiling and searching.

use std::sync::Arc;

use super::context::Context;
use super::error::{Error, Result, err};
use crate::model::excerpt::excerpt_of;
pub use crate::model::pattern::PatternMatch;
use crate::model::pattern::{CompiledPattern, SearchFailure, Syntax};

/// The maximum number of patterns in one pipeline.
const MAX_PATTERNS: usize = 200;

/// A compiled pattern.
#[derive(Debug, Clone)]
pub struct Regex {
    compiled: Arc<CompiledPattern>,
}

/// The reason why the compilation of a pattern failed.
pub enum RegexError {
    /// The query has exceeded one of its limits.
    Ended(Error),
    /// The pattern is invalid. The text describes the problem.
    Invalid(String),
}

impl Regex {
    /// Compiles a pattern. The options `i`, `m`, `s` and `x` are supported. Other options, such as `u`, are ignored.
    pub fn compile(pattern: &str, options: &str, query: &Context) -> Result<Regex, RegexError> {
        let compiled = match &query.patterns {
            Some(patterns) => patterns.compiled(pattern, options, Syntax::Query),
            None => CompiledPattern::new(pattern, options, Syntax::Query).map(Arc::new),
        };
        // Compiling a pattern may take as long as processing many rows, so the elapsed time is checked after each
        // pattern.
        query.check_time().map_err(RegexError::Ended)?;
        Ok(Regex { compiled: compiled.map_err(|reason| RegexError::Invalid(reason_of(&reason)))? })
    }

    /// Compiles a pattern that the pipeline keeps until the query ends, and charges the query for the pattern.
    pub fn compile_held(pattern: &str, options: &str, query: &Context) -> Result<Regex, RegexError> {
        let held = query.patterns_held.get() + 1;
        query.patterns_held.set(held);
        if held > MAX_PATTERNS {
            let message = format!("a pipeline may contain at most {MAX_PATTERNS} regular expressions");
            return Err(RegexError::Ended(Error::new(51091, message)));
        }
        let regex = Regex::compile(pattern, options, query)?;
        query.charge(regex.compiled.size_bytes()).map_err(RegexError::Ended)?;
        Ok(regex)
    }

    /// Compiles a pattern like [`compile_held`](Regex::compile_held), but rejects unknown options and null bytes, and
    /// returns the error codes of query operators.
    pub fn new(pattern: &str, options: &str, query: &Context) -> Result<Regex> {
        if let Some(unknown) = options.chars().find(|option| !"imsxu".contains(*option)) {
            return err!(51108, "invalid flag in regex options: {unknown}");
        }
        if pattern.contains('\0') {
            return Err(Error::new(2, "Regular expression cannot contain an embedded null byte"));
        }
        Regex::compile_held(pattern, options, query).map_err(|refused| match refused {
            RegexError::Ended(error) => error,
            RegexError::Invalid(reason) => Error::new(51091, format!("Regular expression is invalid: {reason}")),
        })
    }

    /// Returns whether the pattern occurs in the text.
    pub fn is_match(&self, text: &str, query: &Context) -> Result<bool> {
        self.compiled.is_match(text, &|count| query.tick_many(count)).map_err(failed)
    }

    /// Returns the first match at or after the byte offset `from`.
    pub fn find<'t>(&self, text: &'t str, from: usize, query: &Context) -> Result<Option<PatternMatch<'t>>> {
        self.compiled.find(text, from, &|count| query.tick_many(count)).map_err(failed)
    }
}

fn failed(unfinished: SearchFailure<Error>) -> Error {
    match unfinished {
        SearchFailure::Ended(error) => error,
        SearchFailure::Costly(reason) => {
            Error::new(51156, format!("Error occurred while executing the regular expression: {reason}"))
        }
    }
}

/// Shortens the error message for an invalid pattern. A long message of several lines repeats the pattern, so only the
/// last line is kept. The last line contains the reason.
fn reason_of(text: &str) -> String {
    match text.lines().count() {
        0 | 1 => excerpt_of(text),
        _ if text.len() < 400 => text.to_owned(),
        _ => excerpt_of(text.lines().last().unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compiled(pattern: &str, query: &Context) -> Regex {
        match Regex::compile(pattern, "", query) {
            Ok(regex) => regex,
            Err(RegexError::Ended(error)) => panic!("{pattern}: {error}"),
            Err(RegexError::Invalid(reason)) => panic!("{pattern}: {reason}"),
        }
    }

    fn find(pattern: &str, text: &str) -> Option<(usize, usize)> {
        let query = Context::new(0, 0, &|| 0, 1, i64::MAX);
        let regex = compiled(pattern, &query);
        regex.find(text, 0, &query).expect("a search").map(|found| (found.start, found.end))
    }

    #[test]
    fn patterns_match_like_pcre() {
        assert_eq!(find(r"x\wy", "xéy"), None);
        assert_eq!(find(r"a++a", "aaa"), None);
        assert_eq!(find(r"a+b", "xaab"), Some((1, 4)));
        assert_eq!(find(r"[a-c--b]+", "b."), Some((0, 2)));
        assert_eq!(find(r"[[]", "a["), Some((1, 2)));
        assert_eq!(find(r"^\v$", "\n"), Some((0, 1)));
        assert_eq!(find(r"\Q[a+\E+", "[a++"), Some((0, 4)));
        assert_eq!(find(r"\<a", "a<a"), Some((1, 3)));
    }

    #[test]
    fn long_and_short_texts_are_searched_alike() {
        let short = format!("{}ab", "é".repeat(100));
        let long = format!("{}ab", "é".repeat(3_000));
        let longest = format!("{}ab", "é".repeat(40_000));
        for text in [&short, &long, &longest] {
            assert_eq!(find("(?=a)ab", text), Some((text.len() - 2, text.len())));
            assert_eq!(find("(?=b)ab", text), None);
        }
    }

    #[test]
    fn the_time_limit_of_the_query_ends_a_search() {
        let clock = std::cell::Cell::new(0);
        let elapsed = || {
            clock.set(clock.get() + 1);
            clock.get()
        };
        let query = Context::new(0, 0, &elapsed, 100, i64::MAX);
        let regex = compiled("(?=a)(a|aa)+$", &query);
        let text = format!("{}!", "a".repeat(30_000));
        assert_eq!(regex.is_match(&text, &query).expect_err("no time").message, query.timeout().message);
    }

    #[test]
    fn a_pipeline_with_too_many_patterns_is_rejected() {
        let query = Context::new(0, 0, &|| 0, 1, i64::MAX);
        for _ in 0..MAX_PATTERNS {
            Regex::new("^a", "", &query).expect("a pattern");
        }
        let error = Regex::new("^a", "", &query).expect_err("too many patterns");
        assert!(error.message.contains("at most 200 regular expressions"), "{error}");
    }

    #[test]
    fn compiled_patterns_count_against_the_memory_of_the_query() {
        let query = Context::new(0, 0, &|| 0, 1, 4 << 20);
        let refused =
            (1..100).map(|count| Regex::new(&format!("[a-z]{{1,{count}}}x"), "", &query)).find_map(Result::err);
        assert_eq!(refused.expect("no memory left").code_name(), "ExceededMemoryLimit");
    }
}
