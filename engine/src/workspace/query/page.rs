//! Pages of an answer: its rows are kept for a while, and where they are gone the pipeline runs again as of the moment
//! at which it was first asked.

use sha2::{Digest, Sha256};

pub use crate::core::pages::{Continuation, Rows};
use crate::error::{Error, Result};
use crate::model::json;
use crate::model::value::Value;
use crate::workspace::rights::Reader;

/// Which part of an answer is asked for.
#[derive(Debug, Clone, Copy)]
pub struct Paging {
    /// Rows of a page; with a continuation, as many as before where it is not said.
    pub limit: Option<u32>,
    pub after: Option<Continuation>,
}

impl Reader {
    /// What continuations of a pipeline are bound to: who asks what, and the types by which states are folded.
    pub(super) fn binding(&self, pipeline: &Value) -> u64 {
        let mut digest = Sha256::new();
        for part in [&self.record().id, self.caller().user_id()] {
            digest.update(part.as_bytes());
            digest.update([0]);
        }
        let definitions = self.entered.state().types.all();
        let mut types: Vec<_> = definitions.values().collect();
        types.sort_unstable_by_key(|known| &known.type_name);
        // What a new type adds to rows, rows of before do not have.
        for known in types.into_iter().filter(|known| known.revision > 1 || !known.traits.is_empty()) {
            digest.update(format!("{}/{}/{:?}/", known.type_name, known.revision, known.traits));
        }
        digest.update(json::text(pipeline));
        let digest = digest.finalize();
        digest.iter().take(8).fold(0, |number, byte| number << 8 | u64::from(*byte))
    }
}

/// The refusal of a continuation of something else.
pub fn refused() -> Error {
    Error::invalid_cursor("the cursor is not one of this pipeline, or a type was redefined since")
}

/// The page that begins where the continuation says, and the continuation of the one after it.
pub fn cut(all: &[Value], page: Continuation) -> Result<(Vec<Value>, Option<Continuation>)> {
    let from = usize::try_from(page.offset).ok().filter(|from| *from <= all.len()).ok_or_else(refused)?;
    let to = from.saturating_add(page.limit as usize).min(all.len());
    let rows = all.get(from..to).unwrap_or_default().to_vec();
    Ok((rows, (to < all.len()).then_some(Continuation { offset: to as u64, ..page })))
}
