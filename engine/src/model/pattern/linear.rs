//! Patterns that are regular languages. Short searches run without interruption. A search that could take long runs its
//! automaton byte by byte, so that the caller's budget can end the search at any point.

use std::sync::{Arc, OnceLock};

use regex_automata::hybrid::dfa::{self, DFA};
use regex_automata::hybrid::regex::Regex as Automata;
use regex_automata::meta;
use regex_automata::nfa::thompson;
use regex_automata::util::syntax;
use regex_automata::{Anchored, Input};

use super::search::{PatternMatch, SIZE_BYTES, SearchFailure, Tick};

/// The size of the state cache of an automaton, in bytes.
const STATE_CACHE_BYTES: usize = 128 << 10;
/// The approximate size of one state of a compiled pattern, in bytes.
const STATE_BYTES: usize = 32;
/// The maximum work of a search that runs without interruption. The work is the number of the pattern's states times
/// the number of the text's bytes. A search with this much work takes about 40 ms if every byte visits every state.
const MAX_UNINTERRUPTED_WORK: usize = 1 << 23;
/// The number of bytes of text between two charges of the caller's budget.
const BYTES_PER_TICK: usize = 64;

/// A compiled pattern for a regular language. The time of a match is linear in the length of the text.
pub struct LinearPattern {
    whole: meta::Regex,
    /// The automata of the pattern, which can run byte by byte. Built for the first long search. `None` if building
    /// failed.
    walked: OnceLock<Option<Box<Automata>>>,
    pattern: Arc<str>,
    options: Arc<str>,
}

/// The reason why the compilation of a pattern failed.
pub struct PatternRefusal {
    pub reason: String,
    /// Whether the pattern is valid, but too large when compiled.
    pub too_large: bool,
}

impl LinearPattern {
    pub fn new(pattern: Arc<str>, options: Arc<str>) -> Result<LinearPattern, PatternRefusal> {
        let config = meta::Config::new()
            .nfa_size_limit(Some(SIZE_BYTES))
            .onepass_size_limit(Some(STATE_CACHE_BYTES))
            .hybrid_cache_capacity(STATE_CACHE_BYTES);
        let built = meta::Regex::builder().configure(config).syntax(syntax_of(&options)).build(&pattern);
        let whole = built.map_err(|error| match error.size_limit() {
            Some(limit) => PatternRefusal {
                reason: format!("the compiled pattern exceeds the limit of {limit} bytes"),
                too_large: true,
            },
            None => PatternRefusal { reason: innermost(&error), too_large: false },
        })?;
        Ok(LinearPattern { whole, walked: OnceLock::new(), pattern, options })
    }

    pub fn size_bytes(&self) -> usize {
        // The byte-by-byte automata are about as large as `whole`, and each of them has a state cache.
        2 * self.whole.memory_usage() + 2 * STATE_CACHE_BYTES
    }

    pub fn program_bytes(&self) -> usize {
        self.whole.memory_usage()
    }

    fn states(&self) -> usize {
        self.whole.memory_usage() / STATE_BYTES
    }

    fn is_short(&self, bytes: usize) -> bool {
        self.states().saturating_mul(bytes) <= MAX_UNINTERRUPTED_WORK
    }

    pub fn is_match<E>(&self, text: &str, tick: Tick<E>) -> Result<bool, SearchFailure<E>> {
        if self.is_short(text.len()) {
            tick(1 + text.len() / 256).map_err(SearchFailure::Ended)?;
            return Ok(self.whole.is_match(text));
        }
        let automata = self.automata()?;
        let mut walk = AutomatonRun::new(automata.forward(), self.states(), tick);
        Ok(walk.forward(text.as_bytes(), 0, true)?.is_some())
    }

    pub fn find<'t, E>(
        &self,
        text: &'t str,
        from: usize,
        tick: Tick<E>,
    ) -> Result<Option<PatternMatch<'t>>, SearchFailure<E>> {
        let (begin, end, anchored) = if self.is_short(text.len() - from) {
            (from, text.len(), Anchored::No)
        } else {
            match self.span(text, from, tick)? {
                Some((begin, end)) => (begin, end, Anchored::Yes),
                None => return Ok(None),
            }
        };
        if !self.is_short(end - begin) {
            let limit = MAX_UNINTERRUPTED_WORK / self.states().max(1);
            return Err(SearchFailure::Costly(format!("a match of this pattern may have at most {limit} bytes")));
        }
        let mut captures = self.whole.create_captures();
        self.whole.search_captures(&Input::new(text).range(begin..end).anchored(anchored), &mut captures);
        let found = captures.get_group(0).map(|whole| PatternMatch {
            start: whole.start,
            end: whole.end,
            groups: captures.iter().skip(1).map(|group| text.get(group?.range())).collect(),
        });
        tick(1 + found.as_ref().map_or(end, |found| found.end).saturating_sub(begin) / 256)
            .map_err(SearchFailure::Ended)?;
        Ok(found)
    }

    /// Returns the byte offsets of the start and the end of the first match at or after `from`.
    fn span<E>(&self, text: &str, from: usize, tick: Tick<E>) -> Result<Option<(usize, usize)>, SearchFailure<E>> {
        let automata = self.automata()?;
        let mut forward = AutomatonRun::new(automata.forward(), self.states(), tick);
        let mut backward = AutomatonRun::new(automata.reverse(), self.states(), tick);
        let mut from = from;
        while let Some(end) = forward.forward(text.as_bytes(), from, false)? {
            let begin = backward.backward(text.as_bytes(), from, end)?.unwrap_or(end);
            if text.is_char_boundary(begin) && text.is_char_boundary(end) {
                return Ok(Some((begin, end)));
            }
            // An empty match inside a multi-byte character is not a match. The search continues after the character.
            from = text.ceil_char_boundary(end);
        }
        Ok(None)
    }

    fn automata<E>(&self) -> Result<&Automata, SearchFailure<E>> {
        let build = || {
            let states = dfa::Config::new()
                .cache_capacity(STATE_CACHE_BYTES)
                .skip_cache_capacity_check(true)
                .unicode_word_boundary(true);
            let built = Automata::builder()
                .dfa(states)
                .thompson(thompson::Config::new().nfa_size_limit(Some(SIZE_BYTES)))
                .syntax(syntax_of(&self.options))
                .build(&self.pattern);
            built.ok().map(Box::new)
        };
        self.walked.get_or_init(build).as_deref().ok_or_else(costly)
    }
}

/// A run of an automaton over a text, byte by byte.
struct AutomatonRun<'w, E> {
    automaton: &'w DFA,
    cache: dfa::Cache,
    states: usize,
    /// The size of the cached states at the last charge of the caller's budget, in bytes.
    built: usize,
    tick: Tick<'w, E>,
}

impl<'w, E> AutomatonRun<'w, E> {
    fn new(automaton: &'w DFA, states: usize, tick: Tick<'w, E>) -> AutomatonRun<'w, E> {
        let cache = automaton.create_cache();
        AutomatonRun { automaton, built: cache.memory_usage(), cache, states, tick }
    }

    /// Returns the end of the first match: the earliest possible end if `earliest` is set, otherwise the last end that
    /// the automaton reaches.
    fn forward(&mut self, text: &[u8], from: usize, earliest: bool) -> Result<Option<usize>, SearchFailure<E>> {
        let input = Input::new(text).range(from..);
        let mut state = self.automaton.start_state_forward(&mut self.cache, &input).map_err(|_| costly())?;
        let mut found = None;
        for (place, byte) in text.iter().enumerate().skip(from) {
            self.charge(place)?;
            state = self.automaton.next_state(&mut self.cache, state, *byte).map_err(|_| costly())?;
            if state.is_tagged() {
                if state.is_match() {
                    found = Some(place);
                    if earliest {
                        return Ok(found);
                    }
                } else if state.is_dead() {
                    return Ok(found);
                } else if state.is_quit() {
                    return Err(costly());
                }
            }
        }
        state = self.automaton.next_eoi_state(&mut self.cache, state).map_err(|_| costly())?;
        Ok(if state.is_match() { Some(text.len()) } else { found })
    }

    /// Returns the beginning of the match that ends at a position.
    fn backward(&mut self, text: &[u8], from: usize, end: usize) -> Result<Option<usize>, SearchFailure<E>> {
        let input = Input::new(text).range(from..end).anchored(Anchored::Yes);
        let mut state = self.automaton.start_state_reverse(&mut self.cache, &input).map_err(|_| costly())?;
        let mut found = None;
        for place in (from..end).rev() {
            self.charge(place)?;
            state = self.automaton.next_state(&mut self.cache, state, text[place]).map_err(|_| costly())?;
            if state.is_tagged() {
                if state.is_match() {
                    found = Some(place + 1);
                } else if state.is_dead() {
                    return Ok(found);
                } else if state.is_quit() {
                    return Err(costly());
                }
            }
        }
        state = match from.checked_sub(1).and_then(|before| text.get(before)) {
            Some(byte) => self.automaton.next_state(&mut self.cache, state, *byte).map_err(|_| costly())?,
            None => self.automaton.next_eoi_state(&mut self.cache, state).map_err(|_| costly())?,
        };
        Ok(if state.is_match() { Some(from) } else { found })
    }

    /// Charges the caller's budget once per block of bytes. The charge includes the work for states that were built
    /// since the last charge. In the worst case, building a state visits all states of the pattern.
    fn charge(&mut self, place: usize) -> Result<(), SearchFailure<E>> {
        if !place.is_multiple_of(BYTES_PER_TICK) {
            return Ok(());
        }
        let now = self.cache.memory_usage();
        let built = match now.checked_sub(self.built) {
            Some(bytes) => (bytes / STATE_BYTES).min(BYTES_PER_TICK),
            // The cache was cleared since the last charge.
            None => BYTES_PER_TICK,
        };
        self.built = now;
        (self.tick)(1 + built * self.states / 256).map_err(SearchFailure::Ended)
    }
}

fn syntax_of(options: &str) -> syntax::Config {
    syntax::Config::new()
        .case_insensitive(options.contains('i'))
        .multi_line(options.contains('m'))
        .dot_matches_new_line(options.contains('s'))
        .ignore_whitespace(options.contains('x'))
}

fn costly<E>() -> SearchFailure<E> {
    SearchFailure::Costly("the text is too long for this pattern".into())
}

/// Returns the last line of the innermost error's message, which describes the cause.
fn innermost(error: &dyn std::error::Error) -> String {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    error.to_string().lines().last().unwrap_or_default().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    fn linear(pattern: &str) -> LinearPattern {
        LinearPattern::new(pattern.into(), "".into()).unwrap_or_else(|refused| panic!("{pattern}: {}", refused.reason))
    }

    #[test]
    fn a_stepwise_search_finds_the_same_match_as_a_full_search() {
        let texts = ["", "a", "abcabc", "xxabyyab", "éaé", "ab\nab", "aaa", "émüb ab"];
        for pattern in ["a", "b+", "a*", "^ab", "ab$", "(a|ab)(c|bcd)?", "é?", "(?m)^a", "[^a]+", "x*?ab"] {
            let linear = linear(pattern);
            for text in texts {
                for from in (0..=text.len()).filter(|from| text.is_char_boundary(*from)) {
                    let span = linear.span::<()>(text, from, &|_| Ok(())).expect("a search without a budget");
                    let found =
                        linear.whole.find(Input::new(text).range(from..)).map(|found| (found.start(), found.end()));
                    assert_eq!(span, found, "{pattern} in {text:?} from {from}");
                }
            }
        }
    }

    #[test]
    fn a_search_ends_when_its_budget_is_used_up() {
        let linear = linear("[ab]*a[ab]{2000}c");
        let text: String =
            (0..200_000u64).map(|n| if n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 63 == 0 { 'a' } else { 'b' }).collect();
        let ticks = Cell::new(0);
        let tick = |count| {
            ticks.set(ticks.get() + count);
            if ticks.get() > 100_000 { Err(()) } else { Ok(()) }
        };
        assert!(matches!(linear.is_match(&text, &tick), Err(SearchFailure::Ended(()))));
        assert!(matches!(linear.find(&text, 0, &|_| Err(())), Err(SearchFailure::Ended(()))));
    }
}
