//! Quantifiers over tests that can return an error. The first error ends the evaluation.

use crate::pipeline::value::error::Result;

/// Returns whether every item passes the test. Stops at the first item that fails the test.
pub fn all<I: IntoIterator>(items: I, mut test: impl FnMut(I::Item) -> Result<bool>) -> Result<bool> {
    for item in items {
        if !test(item)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Returns whether at least one item passes the test. Stops at the first item that passes the test.
pub fn any<I: IntoIterator>(items: I, mut test: impl FnMut(I::Item) -> Result<bool>) -> Result<bool> {
    all(items, |item| Ok(!test(item)?)).map(|none| !none)
}
