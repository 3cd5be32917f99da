//! Compiled patterns, kept for whoever uses them next: those used most, as many as fit.

use std::sync::Arc;

use quick_cache::Weighter;
use quick_cache::sync::Cache;

use super::compiled::{Compiled, Syntax};

/// Bytes that the compiled patterns of all workspaces may take.
const BYTES: u64 = 32 << 20;
/// About how many patterns these are.
const PATTERNS: usize = 256;

/// A pattern, its options, and how it is read.
type Key = (Syntax, Arc<str>, Arc<str>);

/// The compiled patterns of a process. Compiling takes time, so it must not run on threads that serve.
pub struct Patterns {
    kept: Cache<Key, Arc<Compiled>, Weigh>,
}

#[derive(Clone)]
struct Weigh;

impl Weighter<Key, Arc<Compiled>> for Weigh {
    fn weight(&self, (_, pattern, options): &Key, compiled: &Arc<Compiled>) -> u64 {
        (pattern.len() + options.len() + compiled.size_bytes()) as u64
    }
}

impl Default for Patterns {
    fn default() -> Patterns {
        Patterns { kept: Cache::with_weighter(PATTERNS, BYTES, Weigh) }
    }
}

impl Patterns {
    /// The pattern, compiled now if it is not kept. The error says what is wrong with it.
    pub fn compiled(&self, pattern: &str, options: &str, syntax: Syntax) -> Result<Arc<Compiled>, String> {
        let key = (syntax, Arc::from(pattern), Arc::from(options));
        self.kept.get_or_insert_with(&key, || Compiled::new(pattern, options, syntax).map(Arc::new))
    }

    /// The pattern, if it is compiled.
    pub fn kept(&self, pattern: &Arc<str>, syntax: Syntax) -> Option<Arc<Compiled>> {
        self.kept.get(&(syntax, pattern.clone(), Arc::from("")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_patterns_are_compiled_once_and_all_of_them_stay_within_their_bytes() {
        let patterns = Patterns::default();
        let compiled = |text: &str| patterns.compiled(text, "", Syntax::Type).expect("a pattern");
        assert!(Arc::ptr_eq(&compiled("^a+$"), &compiled("^a+$")));
        for number in 0..400 {
            compiled(&format!("^[ab]{{1,{}}}$", 200 + number));
        }
        assert!(patterns.kept.weight() <= BYTES);
        assert!(patterns.compiled("a{1000}{1000}", "", Syntax::Type).is_err());
    }
}
