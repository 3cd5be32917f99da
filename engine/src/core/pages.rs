//! The page cache: rows of answers of which further pages may be asked for.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use crate::model::value::Value;

/// How long rows are kept after they were last asked for, and how many bytes of them a workspace keeps.
const KEPT_MS: i64 = 60_000;
const KEPT_BYTES: usize = 16 << 20;

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
pub struct PageCache {
    entries: Mutex<VecDeque<Entry>>,
}

impl PageCache {
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
