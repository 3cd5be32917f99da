//! Checks requests for previews of a pipeline.

use super::Query;
use crate::error::{Error, Result};

/// The maximum number of rows that a preview shows after a stage.
pub const MAX_SHOWN: usize = 20;

/// Rejects a preview that shows too few or too many rows, a preview of a dry run, and a preview of a page after the
/// first.
pub fn check(query: &Query) -> Result<()> {
    let Some(shown) = query.preview else { return Ok(()) };
    if !(1..=MAX_SHOWN).contains(&shown) {
        return Err(Error::invalid(format!("`preview` is {shown}; expected 1 to {MAX_SHOWN}")));
    }
    if query.dry_run {
        return Err(Error::invalid("expected either `preview` or `dry_run`, not both: a dry run reads no rows"));
    }
    if query.page.is_some_and(|page| page.after.is_some()) {
        return Err(Error::invalid(
            "expected either `preview` or `cursor`, not both: only the first page shows the rows after every stage",
        ));
    }
    Ok(())
}
