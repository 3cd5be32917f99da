//! Pages of a query result. The rows are cached for a minute after the last request, or shorter if the page cache of
//! the workspace is full. If a later page is requested after the rows were evicted, the pipeline runs again as of the
//! moment of the first request.

use sha2::{Digest, Sha256};

use crate::error::{Error, Result};
use crate::model::json;
use crate::model::value::Value;
use crate::offload::in_place;
use crate::pipeline::PreparedPipeline;
pub use crate::state::pages::{Continuation, ResultRows};
use crate::workspace::rights::Reader;

/// The part of a result that is requested.
#[derive(Debug, Clone, Copy)]
pub struct PageRequest {
    /// The number of rows per page. `None` means the same number as for the previous page, or no limit for the first
    /// page.
    pub limit: Option<u32>,
    pub after: Option<Continuation>,
}

impl Reader {
    /// Returns the value that continuations of a query are bound to: a hash of workspace, user, pipeline, converted
    /// constants, and the revisions and traits of the types that the pipeline may read.
    pub(super) fn binding(&self, pipeline: &Value, prepared: &PreparedPipeline) -> u64 {
        let mut digest = Sha256::new();
        for part in [&self.record().id, self.caller().user_id()] {
            digest.update(part.as_bytes());
            digest.update([0]);
        }
        let definitions = self.context.state().types.all();
        let mut types: Vec<_> = definitions.values().filter(|known| prepared.may_read(&known.type_name)).collect();
        types.sort_unstable_by_key(|known| &known.type_name);
        // Ignores new types without traits, because earlier rows cannot contain aggregates of these types.
        for known in types.into_iter().filter(|known| known.revision > 1 || !known.traits.is_empty()) {
            digest.update(format!("{}/{}/{:?}/", known.type_name, known.revision, known.traits));
        }
        in_place(|| {
            digest.update(json::text(pipeline));
            // A new project, or a field that an event had for the first time, changes the conversion of constants.
            for (place, converted) in prepared.conversions().iter().enumerate() {
                if let Some(converted) = converted {
                    // Unlike JSON, the debug format distinguishes a date or a decimal from its text.
                    digest.update(format!("{place}/{converted:?}/"));
                }
            }
        });
        let digest = digest.finalize();
        digest.iter().take(8).fold(0, |number, byte| number << 8 | u64::from(*byte))
    }
}

/// Returns the error for a continuation that belongs to another query.
pub fn refused() -> Error {
    Error::invalid_cursor(
        "the cursor is for another workspace, user or pipeline, or was created before a type, field or project changed",
    )
}

/// Returns the page at a continuation, and the continuation of the next page, if there is one. Fails if the
/// continuation is after the last row.
pub fn cut(all: &[Value], page: Continuation) -> Result<(Vec<Value>, Option<Continuation>)> {
    let from = usize::try_from(page.offset).ok().filter(|from| *from <= all.len()).ok_or_else(refused)?;
    let to = from.saturating_add(page.limit as usize).min(all.len());
    let rows = all.get(from..to).unwrap_or_default().to_vec();
    Ok((rows, (to < all.len()).then_some(Continuation { offset: to as u64, ..page })))
}
