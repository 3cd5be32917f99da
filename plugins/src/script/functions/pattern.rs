//! Regular expressions with bounded cost. A search uses a lazily built automaton and fails if the automaton is rebuilt
//! too often. To find the groups of a match, a second search runs within the match. The second search visits each pair
//! of a position in the compiled pattern and a position in the text at most once.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use parking_lot::Mutex;
use regex_automata::hybrid::dfa;
use regex_automata::hybrid::regex::{Cache, Regex};
use regex_automata::nfa::thompson;
use regex_automata::nfa::thompson::backtrack::{self, BoundedBacktracker};
use regex_automata::util::captures::Captures;
use regex_automata::util::interpolate;
use regex_automata::{Anchored, Input, Match, MatchError, MatchErrorKind};
use rhai::{Dynamic, Engine, INT, ImmutableString, NativeCallContext};

use super::listing::Listing;
use super::registration::{Refused, function, thrown, too_large};
use crate::script::convert::text_to_dynamic;
use crate::script::guard::{checkpoint, count_read};

const MAX_PATTERN: usize = 2_000;
/// The maximum number of compiled patterns that an engine keeps.
const CACHE_SIZE: usize = 16;
/// The maximum size of a compiled pattern, in bytes.
const PROGRAM_BYTES: usize = 1 << 20;
/// The maximum size of the states that an automaton keeps, in bytes.
const STATES_BYTES: usize = 512 << 10;
/// The number of times that an automaton may be rebuilt within one search.
const RESTARTS: usize = 3;
/// The maximum size of the set of states that a search for the groups of a match has visited, in bytes. A state is a
/// position in the program together with a position in the text.
const VISITED_BYTES: usize = 256 << 10;

pub(super) fn register(engine: &mut Engine) {
    let patterns = Arc::new(ScriptPatterns::default());
    let (all, first) = (patterns.clone(), patterns.clone());
    function(
        "regex_find_all",
        &["text: string", "pattern: string", "array"],
        "Lists the matches of a regular expression in a text. If the expression has groups, lists the first group of \
         each match.",
        r#"regex_find_all("a1 b22", "[a-z]([0-9]+)") == ["1", "22"]"#,
    )
    .register_into_engine(engine, move |context: NativeCallContext, text: &str, pattern: &str| {
        let (found, end) = all.compiled(pattern)?.find_all(text, Listing::new(&context, 1, None)?)?;
        if end == SearchEnd::TooExpensive { Err(too_expensive()) } else { found.whole("matches") }
    });
    function(
        "regex_find_all",
        &["text: string", "pattern: string", "most: int", "map"],
        "Lists the first `most` matches as `#{items, more}`. `more` is true if the list is incomplete: the text has \
         further matches, a match is too long to search for groups, or the expression is too expensive for the rest of \
         the text.",
        r#"regex_find_all("a1 b22 c", "[a-z]([0-9]+)", 1) == #{items: ["1"], more: true}"#,
    )
    .register_into_engine(engine, move |context: NativeCallContext, text: &str, pattern: &str, max_items: INT| {
        let listing = Listing::new(&context, 1, Some(max_items))?;
        let (mut found, end) = first.compiled(pattern)?.find_all(text, listing)?;
        if end == SearchEnd::TooExpensive {
            found.leave_out();
        }
        Ok::<_, Refused>(found.bounded())
    });
    function(
        "regex_replace",
        &["text: string", "pattern: string", "replacement: string", "string"],
        "Replaces the matches of a regular expression. In the replacement, `$1` or `${1}` is the first group and `$$` \
         is a dollar sign.",
        r#"regex_replace("2024-05", "([0-9]+)-([0-9]+)", "${2}/${1}") == "05/2024""#,
    )
    .register_into_engine(
        engine,
        move |context: NativeCallContext, text: &str, pattern: &str, replacement: &str| {
            patterns.compiled(pattern)?.replace(text, replacement, context.engine().max_string_size())
        },
    );
}

/// The compiled patterns of an engine.
#[derive(Default)]
struct ScriptPatterns {
    compiled: Mutex<HashMap<String, Arc<ScriptPattern>>>,
}

impl ScriptPatterns {
    fn compiled(&self, pattern: &str) -> Result<Arc<ScriptPattern>, Refused> {
        if let Some(known) = self.compiled.lock().get(pattern) {
            return Ok(known.clone());
        }
        let made = Arc::new(ScriptPattern::compile(pattern)?);
        let mut compiled = self.compiled.lock();
        // If a script keeps creating patterns, the cache is emptied. A script with a few patterns never fills the
        // cache.
        if compiled.len() >= CACHE_SIZE {
            compiled.clear();
        }
        compiled.insert(pattern.to_owned(), made.clone());
        Ok(made)
    }
}

struct ScriptPattern {
    regex: Regex,
    cache: Mutex<Option<Cache>>,
    /// The search for groups, if the pattern has groups.
    groups: Option<BoundedBacktracker>,
}

impl ScriptPattern {
    fn compile(pattern: &str) -> Result<ScriptPattern, Refused> {
        if pattern.len() > MAX_PATTERN {
            return Err(too_large("a pattern is"));
        }
        let automaton = dfa::Config::new()
            .cache_capacity(STATES_BYTES)
            .skip_cache_capacity_check(true)
            .unicode_word_boundary(true)
            .minimum_cache_clear_count(Some(RESTARTS));
        let program = thompson::Config::new().nfa_size_limit(Some(PROGRAM_BYTES));
        let refused = |error: &dyn std::error::Error| thrown(format!("invalid regular expression: {}", reason(error)));
        let regex = Regex::builder()
            .dfa(automaton)
            .thompson(program.clone())
            .build(pattern)
            .map_err(|error| refused(&error))?;
        let groups = BoundedBacktracker::builder()
            .configure(backtrack::Config::new().visited_capacity(VISITED_BYTES))
            .thompson(program)
            .build(pattern)
            .map_err(|error| refused(&error))?;
        let has_groups = groups.get_nfa().group_info().group_len(regex_automata::PatternID::ZERO) > 1;
        Ok(ScriptPattern { regex, cache: Mutex::new(None), groups: has_groups.then_some(groups) })
    }

    /// Adds the matches in a text to a list, or the first group of each match if the pattern has groups. Omits matches
    /// that are too long for the search for groups. The search ends when a match exceeds a limit of the list.
    fn find_all(&self, text: &str, mut found: Listing) -> Result<(Listing, SearchEnd), Refused> {
        let mut is_one_left_out = false;
        let end = self.each(text, |matched, groups| {
            let span = match groups {
                MatchGroups::None => Some(matched.range()),
                MatchGroups::Known(groups) => groups.get_group(1).map(|span| span.range()),
                MatchGroups::TooLong => {
                    found.leave_out();
                    is_one_left_out = true;
                    return Ok(ControlFlow::Continue(()));
                }
            };
            let part = span.and_then(|span| text.get(span)).unwrap_or_default();
            Ok(match found.push(part.len(), || text_to_dynamic(part)) {
                true => ControlFlow::Continue(()),
                false => ControlFlow::Break(()),
            })
        })?;
        Ok((found, if is_one_left_out { SearchEnd::TooExpensive } else { end }))
    }

    fn replace(&self, text: &str, replacement: &str, max_bytes: usize) -> Result<Dynamic, Refused> {
        let mut out = String::new();
        let mut end = 0;
        let end_of_search = self.each(text, |matched, groups| {
            let groups = match groups {
                MatchGroups::None => None,
                MatchGroups::Known(groups) => Some(groups),
                MatchGroups::TooLong => return Err(too_expensive()),
            };
            out.push_str(text.get(end..matched.start()).unwrap_or_default());
            end = matched.end();
            let index = |name: &str| groups.and_then(|groups| groups.group_info().to_index(matched.pattern(), name));
            let append = |group: usize, out: &mut String| {
                let span = match groups {
                    Some(groups) => groups.get_group(group).map(|span| span.range()),
                    None => (group == 0).then(|| matched.range()),
                };
                out.push_str(span.and_then(|span| text.get(span)).unwrap_or_default());
            };
            // A replacement can name a group many times, so the maximum size of the inserted groups is checked before
            // the text is built.
            let mut inserted = String::new();
            if replacement.matches('$').count().saturating_mul(matched.len()) > max_bytes {
                return Err(too_large("the text after the replacement is"));
            }
            interpolate::string(replacement, append, index, &mut inserted);
            out.push_str(&inserted);
            if out.len() > max_bytes {
                return Err(too_large("the text after the replacement is"));
            }
            Ok(ControlFlow::Continue(()))
        })?;
        if end_of_search == SearchEnd::TooExpensive {
            return Err(too_expensive());
        }
        out.push_str(text.get(end..).unwrap_or_default());
        Ok(Dynamic::from(ImmutableString::from(out)))
    }

    /// Calls `on_match` for each match in the text, with the match and its groups. Stops when `on_match` ends the
    /// search.
    fn each(
        &self,
        text: &str,
        mut on_match: impl FnMut(Match, MatchGroups<'_>) -> Result<ControlFlow<()>, Refused>,
    ) -> Result<SearchEnd, Refused> {
        count_read(text);
        let kept = self.cache.lock().take();
        let mut cache: Cache = kept.unwrap_or_else(|| self.regex.create_cache());
        let mut searched = self.groups.as_ref().map(|groups| (groups, groups.create_cache(), groups.create_captures()));
        let mut at = 0;
        let mut last_end = None;
        let mut end = SearchEnd::Complete;
        while at <= text.len() {
            checkpoint()?;
            let input = Input::new(text).range(at..);
            let matched = match self.regex.try_search(&mut cache, &input) {
                Ok(Some(matched)) => matched,
                Ok(None) => break,
                Err(error) if is_quit(&error) => return Err(quit()),
                Err(_) => {
                    end = SearchEnd::TooExpensive;
                    break;
                }
            };
            // An empty match directly after the last match does not count. The search continues one character later.
            if matched.is_empty() && last_end == Some(matched.end()) {
                at = text[at..].chars().next().map_or(text.len() + 1, |next| at + next.len_utf8());
                continue;
            }
            let flow = match &mut searched {
                None => on_match(matched, MatchGroups::None)?,
                Some((groups, cache, captures)) => {
                    let input = Input::new(text).range(matched.range()).anchored(Anchored::Yes);
                    match groups.try_captures(cache, input, captures) {
                        Ok(()) => on_match(matched, MatchGroups::Known(captures))?,
                        Err(error) if is_quit(&error) => return Err(quit()),
                        Err(_) => on_match(matched, MatchGroups::TooLong)?,
                    }
                }
            };
            if flow.is_break() {
                break;
            }
            last_end = Some(matched.end());
            at = matched.end();
        }
        // Only automata that were never rebuilt are kept, because a rebuilt automaton would fail earlier in the next
        // search.
        if cache.forward().clear_count() + cache.reverse().clear_count() == 0 {
            *self.cache.lock() = Some(cache);
        }
        Ok(end)
    }
}

/// The result of the search for the groups of a match.
enum MatchGroups<'a> {
    /// The pattern has no groups.
    None,
    Known(&'a Captures),
    /// The match is too long for the search for groups.
    TooLong,
}

/// The reason why a search ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SearchEnd {
    /// The search reached the end of the text, or the caller ended it.
    Complete,
    /// The automaton was rebuilt too often, or a match was too long for the search for groups.
    TooExpensive,
}

fn is_quit(error: &MatchError) -> bool {
    matches!(error.kind(), MatchErrorKind::Quit { .. })
}

fn quit() -> Refused {
    thrown("\\b cannot be used in a text with characters outside ASCII; write (?-u:\\b)")
}

fn too_expensive() -> Refused {
    thrown("the regular expression is too expensive for this text")
}

/// Finds the innermost source of an error, and returns the last line of the source's message. This line describes the
/// error.
fn reason(error: &dyn std::error::Error) -> String {
    let innermost = std::iter::successors(Some(error), |&error| error.source()).last().unwrap_or(error);
    innermost.to_string().lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned()
}
