//! A cache of compiled patterns. The cache has a size limit and keeps the patterns that are used most.

use std::sync::Arc;

use quick_cache::Weighter;
use quick_cache::sync::Cache;

use super::compiled_pattern::{CompiledPattern, Syntax};

/// The maximum size of the cached patterns of all workspaces, in bytes.
const CACHE_BYTES: u64 = 32 << 20;
/// The expected number of cached patterns. The cache allocates its table for this number.
const EXPECTED_PATTERNS: usize = 256;

/// The key of a cached pattern: its syntax, its text, and its options.
type Key = (Syntax, Arc<str>, Arc<str>);

/// The process-wide cache of compiled patterns. Compiling takes time and must not run on threads that serve requests.
pub struct Patterns {
    cache: Cache<Key, Arc<CompiledPattern>, Weigh>,
}

#[derive(Clone)]
struct Weigh;

impl Weighter<Key, Arc<CompiledPattern>> for Weigh {
    fn weight(&self, (_, pattern, options): &Key, compiled: &Arc<CompiledPattern>) -> u64 {
        (pattern.len() + options.len() + compiled.size_bytes()) as u64
    }
}

impl Default for Patterns {
    fn default() -> Patterns {
        Patterns { cache: Cache::with_weighter(EXPECTED_PATTERNS, CACHE_BYTES, Weigh) }
    }
}

impl Patterns {
    /// Returns the compiled pattern from the cache. Compiles the pattern first if it is not cached. The error describes
    /// the mistake in the pattern or the exceeded limit.
    pub fn compiled(&self, pattern: &str, options: &str, syntax: Syntax) -> Result<Arc<CompiledPattern>, String> {
        let key = (syntax, Arc::from(pattern), Arc::from(options));
        self.cache.get_or_insert_with(&key, || CompiledPattern::new(pattern, options, syntax).map(Arc::new))
    }

    /// Returns the compiled form of a pattern without options, or `None` if the cache does not contain the pattern.
    pub fn cached(&self, pattern: &Arc<str>, syntax: Syntax) -> Option<Arc<CompiledPattern>> {
        self.cache.get(&(syntax, pattern.clone(), Arc::from("")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_patterns_are_compiled_once_and_the_cache_stays_within_its_byte_limit() {
        let patterns = Patterns::default();
        let compiled = |text: &str| patterns.compiled(text, "", Syntax::Type).expect("a pattern");
        assert!(Arc::ptr_eq(&compiled("^a+$"), &compiled("^a+$")));
        for number in 0..400 {
            compiled(&format!("^[ab]{{1,{}}}$", 200 + number));
        }
        assert!(patterns.cache.weight() <= CACHE_BYTES);
        assert!(patterns.compiled("a{1000}{1000}", "", Syntax::Type).is_err());
    }
}
