//! Pages of an answer: its rows are kept for a while, and where they are gone the pipeline runs again as of the moment
//! at which it was first asked.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use sha2::{Digest, Sha256};

use crate::error::{Error, Result};
use crate::model::value::Value;
use crate::workspace::Workspace;

/// How long rows are kept after they were last asked for, and how many bytes of them a workspace keeps.
const KEPT_MS: i64 = 60_000;
const KEPT_BYTES: usize = 16 << 20;

/// Which part of an answer is asked for.
#[derive(Debug, Clone, Copy)]
pub struct Paging {
    /// Rows of a page; with a continuation, as many as before where it is not said.
    pub limit: Option<u32>,
    pub after: Option<Continuation>,
}

/// Where the next page begins, and all that its rows depend on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Continuation {
    /// The log's end when the pipeline was first asked.
    pub position: u64,
    /// `$$NOW`.
    pub now_ms: i64,
    /// Of `$rand` and `$sample`.
    pub seed: u64,
    /// Rows in the pages before.
    pub offset: u64,
    pub limit: u32,
    /// What it is a continuation of: caller, pipeline and types.
    pub binding: u64,
}

impl Continuation {
    /// The same for each page of one answer.
    fn answer(self) -> Continuation {
        Continuation { offset: 0, limit: 0, ..self }
    }
}

/// All rows of an answer.
#[derive(Clone)]
pub struct Rows {
    pub rows: Arc<Vec<Value>>,
    pub warnings: Arc<Vec<String>>,
}

struct Entry {
    answer: Continuation,
    rows: Rows,
    bytes: usize,
    until: i64,
}

/// Answers of which more pages may be asked for, the one that was asked for last at the end.
#[derive(Default)]
pub struct Kept {
    entries: Mutex<VecDeque<Entry>>,
}

impl Kept {
    pub fn take(&self, page: Continuation, now_ms: i64) -> Option<Rows> {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries.retain(|entry| entry.until > now_ms);
        let index = entries.iter().position(|entry| entry.answer == page.answer())?;
        let mut entry = entries.remove(index)?;
        entry.until = now_ms.saturating_add(KEPT_MS);
        let rows = entry.rows.clone();
        entries.push_back(entry);
        Some(rows)
    }

    pub fn put(&self, page: Continuation, rows: Rows, now_ms: i64) {
        let bytes = rows.rows.iter().map(Value::size_bytes).sum();
        let answer = page.answer();
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries.retain(|entry| entry.until > now_ms && entry.answer != answer);
        if bytes <= KEPT_BYTES {
            entries.push_back(Entry { answer, rows, bytes, until: now_ms.saturating_add(KEPT_MS) });
        }
        while entries.iter().map(|entry| entry.bytes).sum::<usize>() > KEPT_BYTES {
            entries.pop_front();
        }
    }

    /// Bytes of the rows that are kept.
    pub fn size_bytes(&self) -> usize {
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries.iter().map(|entry| entry.bytes).sum()
    }
}

impl Workspace {
    /// What continuations of a pipeline are bound to: who asks what, and the types by which states are folded.
    pub(super) fn binding(&self, pipeline: &Value) -> u64 {
        let mut digest = Sha256::new();
        for part in [&self.record().id, self.caller.user_id()] {
            digest.update(part.as_bytes());
            digest.update([0]);
        }
        let definitions = self.open().definitions();
        let mut types: Vec<_> = definitions.values().collect();
        types.sort_unstable_by_key(|known| &known.type_name);
        // What a new type adds to rows, rows of before do not have.
        for known in types.into_iter().filter(|known| known.revision > 1 || !known.traits.is_empty()) {
            digest.update(format!("{}/{}/{:?}/", known.type_name, known.revision, known.traits));
        }
        digest.update(pipeline.to_string());
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
