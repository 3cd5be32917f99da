//! Patterns that need backtracking, for example because they contain back-references or look-around assertions.

use std::sync::OnceLock;

use fancy_regex::{Expr, RegexInput};

use super::search::{PatternMatch, SIZE_BYTES, SearchFailure, Tick};

/// The possible limits on the backtracking steps of one search, in descending order. A search uses the largest limit
/// that the pattern and the length of the text allow.
const STEP_LIMITS: [usize; 4] = [200_000, 16_384, 1_024, 64];
/// The maximum number of bytes that all steps of one search may read. The step limit of a search is chosen so that the
/// search stays within this maximum even if each step reads the whole text.
const MAX_BYTES_READ: usize = 1 << 27;
/// The maximum length of a text that is searched in one call, in bytes. In a longer text, a separate search starts at
/// each position, and the caller is charged after each of these searches.
const MAX_UNINTERRUPTED_BYTES: usize = 4_096;
/// The unit in which the states of a pattern are counted for its cost. A pattern of `n` units is charged `n²` bytes for
/// each byte that a step reads. `n` is rounded down and is at least 1.
const STATES_PER_UNIT: usize = 64;
/// The maximum number of states of all parts of a pattern together.
const MAX_STATES: usize = 20_000;
/// The maximum number of instructions of a compiled pattern.
const MAX_INSTRUCTIONS: usize = 20_000;
/// The size of the state cache of each part of a pattern, in bytes.
const STATE_CACHE_BYTES: usize = 128 << 10;

/// A pattern with one engine for each limit in [`STEP_LIMITS`]. The engine with the lowest limit is built at once. Each
/// other engine is built for the first search that uses its limit.
pub struct BacktrackingPattern {
    pattern: String,
    options: String,
    states: usize,
    parts: usize,
    engines: [OnceLock<fancy_regex::Regex>; STEP_LIMITS.len()],
}

impl BacktrackingPattern {
    pub fn new(pattern: String, options: String) -> Result<BacktrackingPattern, String> {
        let (states, parts) = match Expr::parse_tree(&pattern) {
            Ok(tree) => (states(&tree.expr), parts(&tree.expr)),
            // Building the engine below reports the syntax error.
            Err(_) => (1, 1),
        };
        if states > MAX_STATES {
            return Err(format!("the compiled pattern exceeds the limit of {MAX_STATES} states"));
        }
        let backtracking = BacktrackingPattern { pattern, options, states, parts, engines: Default::default() };
        backtracking.engine(STEP_LIMITS.len() - 1)?;
        Ok(backtracking)
    }

    pub fn size_bytes(&self) -> usize {
        // The estimate assumes two engines. An engine has two automata for each part that is a regular language.
        2 * (STATE_CACHE_BYTES + 128 * self.states + 1_024 * self.parts)
    }

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
            .backtrack_limit(STEP_LIMITS[tier])
            .delegate_size_limit(SIZE_BYTES)
            .delegate_dfa_size_limit(STATE_CACHE_BYTES)
            .max_prog_size(MAX_INSTRUCTIONS)
            .build()
            .map_err(|error| error.to_string())?;
        Ok(self.engines[tier].get_or_init(|| engine))
    }

    /// Selects the step limit for a search in a text of `bytes` bytes, and returns the index of the limit in
    /// [`STEP_LIMITS`]. Fails if the text is too long.
    fn tier<E>(&self, bytes: usize) -> Result<usize, SearchFailure<E>> {
        // A part with many states may visit many states for each byte.
        let cost = (self.states / STATES_PER_UNIT).max(1).pow(2);
        let steps = MAX_BYTES_READ / bytes.max(1).saturating_mul(cost);
        let tier = STEP_LIMITS.iter().position(|limit| *limit <= steps);
        tier.ok_or_else(|| {
            let limit = MAX_BYTES_READ / cost / STEP_LIMITS[STEP_LIMITS.len() - 1];
            SearchFailure::Costly(format!(
                "this pattern backtracks, so it can only search texts of at most {limit} bytes"
            ))
        })
    }

    pub fn find<'t, E>(
        &self,
        text: &'t str,
        from: usize,
        tick: Tick<E>,
    ) -> Result<Option<PatternMatch<'t>>, SearchFailure<E>> {
        let engine = self.engine(self.tier(text.len())?).map_err(SearchFailure::Costly)?;
        let input = RegexInput::new(text);
        // One search may take as long as processing many rows, so the caller's budget is charged after each search.
        let ticked = |found| tick(256).map_err(SearchFailure::Ended).map(|()| found);
        if text.len() <= MAX_UNINTERRUPTED_BYTES {
            return ticked(found(engine.captures_input(input.from_pos(from)))?);
        }
        for place in (from..=text.len()).filter(|place| text.is_char_boundary(*place)) {
            let found = ticked(found(engine.captures_input(input.clone().from_pos(place).anchored(true)))?)?;
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }
}

fn found<'t, E>(
    captures: fancy_regex::Result<Option<fancy_regex::Captures<'t, str>>>,
) -> Result<Option<PatternMatch<'t>>, SearchFailure<E>> {
    let captures = captures.map_err(|error| SearchFailure::Costly(error.to_string()))?;
    Ok(captures.and_then(|captures| {
        let whole = captures.get(0)?;
        let groups = captures.iter().skip(1).map(|group| Some(group?.as_str())).collect();
        Some(PatternMatch { start: whole.start(), end: whole.end(), groups })
    }))
}

/// Returns the approximate number of states of the automata for a pattern's parts, with repetitions expanded.
fn states(expr: &Expr) -> usize {
    match expr {
        Expr::Repeat { child, lo, hi, .. } => {
            let times = if *hi == usize::MAX { lo.saturating_add(1) } else { *hi };
            states(child).saturating_mul(times.max(1))
        }
        Expr::Literal { val, .. } => val.len(),
        Expr::Delegate { inner, .. } if inner.contains('\\') => 300,
        Expr::Delegate { .. } | Expr::Any { .. } => 12,
        other => other.children_iter().map(states).fold(1, usize::saturating_add),
    }
}

fn parts(expr: &Expr) -> usize {
    expr.children_iter().map(parts).sum::<usize>() + 1
}
