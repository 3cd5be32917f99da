//! Regular expressions of queries: MongoDB's dialect and options, and an end to every search.
//!
//! Patterns of regular languages are searched in linear time. Others backtrack, which is bounded by steps for each text
//! and by the query's time between the places of a long one.

mod dialect;

use std::sync::OnceLock;

use fancy_regex::RegexInput;

use super::context::Context;
use super::error::{Error, Result};

/// Bytes that a compiled pattern may take.
const SIZE_LIMIT: usize = 1 << 20;
/// Bytes that a pattern may have (MongoDB's own limit).
const PATTERN_LIMIT: usize = 32_764;
/// Steps back that a search may take in texts up to so many bytes: a step may look at all that is left of its text.
const STEPS: [(usize, usize); 3] = [(4_096, 200_000), (65_536, 16_384), (usize::MAX, 512)];

/// A compiled pattern.
#[derive(Debug, Clone)]
pub struct Regex {
    engine: Engine,
}

#[derive(Debug, Clone)]
enum Engine {
    Linear(regex::Regex),
    Backtracking(Box<Backtracking>),
}

/// A pattern with one engine for each of the [`STEPS`], built when the first text of that length comes.
#[derive(Debug, Clone)]
struct Backtracking {
    pattern: String,
    options: String,
    engines: [OnceLock<fancy_regex::Regex>; STEPS.len()],
}

/// One match: where it stands, and each group's text.
pub struct Match<'t> {
    pub start: usize,
    pub end: usize,
    pub groups: Vec<Option<&'t str>>,
}

impl Regex {
    /// Compiles a pattern with those of the options `imsxu` that are known; the error says what is wrong with it.
    pub fn compile(pattern: &str, options: &str) -> Result<Regex, String> {
        if pattern.len() > PATTERN_LIMIT {
            return Err("regular expression is too large".into());
        }
        let translated = dialect::translate(pattern);
        let has = |option| options.contains(option);
        if !translated.backtracks {
            let linear = regex::RegexBuilder::new(&translated.pattern)
                .case_insensitive(has('i'))
                .multi_line(has('m'))
                .dot_matches_new_line(has('s'))
                .ignore_whitespace(has('x'))
                .size_limit(SIZE_LIMIT)
                .dfa_size_limit(SIZE_LIMIT)
                .build();
            match linear {
                Ok(regex) => return Ok(Regex { engine: Engine::Linear(regex) }),
                Err(error @ regex::Error::CompiledTooBig(_)) => return Err(error.to_string()),
                // What this engine does not know the other one may.
                Err(_) => {}
            }
        }
        let backtracking =
            Backtracking { pattern: translated.pattern, options: options.to_owned(), engines: Default::default() };
        backtracking.engine(0)?;
        Ok(Regex { engine: Engine::Backtracking(Box::new(backtracking)) })
    }

    /// As [`compile`](Regex::compile), with the errors that query operators have.
    pub fn new(pattern: &str, options: &str) -> Result<Regex> {
        if let Some(unknown) = options.chars().find(|option| !"imsxu".contains(*option)) {
            return Err(Error::new(51108, format!("invalid flag in regex options: {unknown}")));
        }
        if pattern.contains('\0') {
            return Err(Error::new(2, "Regular expression cannot contain an embedded null byte"));
        }
        Regex::compile(pattern, options)
            .map_err(|reason| Error::new(51091, format!("Regular expression is invalid: {reason}")))
    }

    /// Whether the pattern occurs in the text.
    pub fn is_match(&self, text: &str, query: &Context) -> Result<bool> {
        match &self.engine {
            Engine::Linear(regex) => {
                query.tick_bytes(text.len())?;
                Ok(regex.is_match(text))
            }
            Engine::Backtracking(_) => Ok(self.find(text, 0, query)?.is_some()),
        }
    }

    /// The first match at or after a place.
    pub fn find<'t>(&self, text: &'t str, from: usize, query: &Context) -> Result<Option<Match<'t>>> {
        match &self.engine {
            Engine::Linear(regex) => {
                let found = regex.captures_at(text, from).and_then(|captures| {
                    let whole = captures.get(0)?;
                    let groups = captures.iter().skip(1).map(|group| Some(group?.as_str())).collect();
                    Some(Match { start: whole.start(), end: whole.end(), groups })
                });
                query.tick_bytes(found.as_ref().map_or(text.len(), |found| found.end).saturating_sub(from))?;
                Ok(found)
            }
            Engine::Backtracking(backtracking) => backtracking.find(text, from, query),
        }
    }
}

impl Backtracking {
    fn engine(&self, tier: usize) -> Result<&fancy_regex::Regex, String> {
        if let Some(engine) = self.engines[tier].get() {
            return Ok(engine);
        }
        let has = |option| self.options.contains(option);
        let engine = fancy_regex::RegexBuilder::new(&self.pattern)
            .case_insensitive(has('i'))
            .multi_line(has('m'))
            .dot_matches_new_line(has('s'))
            .verbose_mode(has('x'))
            .backtrack_limit(STEPS[tier].1)
            .delegate_size_limit(SIZE_LIMIT)
            .delegate_dfa_size_limit(SIZE_LIMIT)
            .build()
            .map_err(|error| error.to_string())?;
        Ok(self.engines[tier].get_or_init(|| engine))
    }

    fn find<'t>(&self, text: &'t str, from: usize, query: &Context) -> Result<Option<Match<'t>>> {
        let tier = STEPS.iter().position(|(most, _)| text.len() <= *most).unwrap_or(STEPS.len() - 1);
        let engine = self.engine(tier).map_err(failed)?;
        let input = RegexInput::new(text);
        if tier == 0 {
            let found = found(engine.captures_input(input.from_pos(from)))?;
            query.check_time()?;
            return Ok(found);
        }
        // Place by place, so that the query's time ends a search that is slow at each of them.
        for place in (from..=text.len()).filter(|place| text.is_char_boundary(*place)) {
            let found = found(engine.captures_input(input.clone().from_pos(place).anchored(true)))?;
            query.check_time()?;
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }
}

fn found<'t>(captures: fancy_regex::Result<Option<fancy_regex::Captures<'t, str>>>) -> Result<Option<Match<'t>>> {
    let captures = captures.map_err(|error| failed(error.to_string()))?;
    Ok(captures.and_then(|captures| {
        let whole = captures.get(0)?;
        let groups = captures.iter().skip(1).map(|group| Some(group?.as_str())).collect();
        Some(Match { start: whole.start(), end: whole.end(), groups })
    }))
}

fn failed(reason: String) -> Error {
    Error::new(51156, format!("Error occurred while executing the regular expression: {reason}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(pattern: &str, text: &str) -> Option<(usize, usize)> {
        let query = Context::new(0, 0, &|| 0, 1, i64::MAX);
        let regex = Regex::compile(pattern, "").expect("a pattern");
        regex.find(text, 0, &query).expect("a search").map(|found| (found.start, found.end))
    }

    #[test]
    fn patterns_mean_what_they_mean_to_pcre() {
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
    fn a_long_text_is_searched_as_a_short_one() {
        let short = format!("{}ab", "é".repeat(100));
        let long = format!("{}ab", "é".repeat(3_000));
        let longest = format!("{}ab", "é".repeat(40_000));
        for text in [&short, &long, &longest] {
            assert_eq!(find("(?=a)ab", text), Some((text.len() - 2, text.len())));
            assert_eq!(find("(?=b)ab", text), None);
        }
    }

    #[test]
    fn the_time_of_the_query_ends_a_search() {
        let clock = std::cell::Cell::new(0);
        let elapsed = || {
            clock.set(clock.get() + 1);
            clock.get()
        };
        let query = Context::new(0, 0, &elapsed, 100, i64::MAX);
        let regex = Regex::compile("(?=a)(a|aa)+$", "").expect("a pattern");
        let text = format!("{}!", "a".repeat(30_000));
        assert_eq!(regex.is_match(&text, &query).expect_err("no time").message, query.timeout().message);
    }
}
