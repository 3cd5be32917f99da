//! The page cache: the rows of query results whose further pages may be requested.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::model::value::Value;

/// The time for which the rows of a result stay cached after the last request for one of its pages, in milliseconds.
const KEPT_MS: i64 = 60_000;
/// The maximum size of the cached rows of a workspace, in bytes.
const KEPT_BYTES: usize = 16 << 20;

/// The start of a result's next page, and the inputs that the result's rows depend on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Continuation {
    /// The position of the log's end at the first request.
    pub position: u64,
    /// The value of `$$NOW` for all pages, in milliseconds since the epoch.
    pub now_ms: i64,
    /// The seed of `$rand`, `$sampleRate` and `$sample`.
    pub seed: u64,
    /// The number of rows in the previous pages.
    pub offset: u64,
    pub limit: u32,
    /// The hash of the workspace, the caller, the pipeline, the converted constants of the pipeline, and the
    /// definitions of the types that the pipeline reads. The continuation is valid only for a request with the same
    /// hash.
    pub binding: u64,
}

impl Continuation {
    /// Returns the cache key of the result: the continuation with an offset and a limit of 0. All pages of one result
    /// have the same key.
    fn key(self) -> Continuation {
        Continuation { offset: 0, limit: 0, ..self }
    }
}

/// The rows of all pages of a result.
#[derive(Clone)]
pub struct ResultRows {
    pub rows: Arc<Vec<Value>>,
    pub warnings: Arc<Vec<String>>,
}

struct ResultEntry {
    key: Continuation,
    rows: ResultRows,
    bytes: usize,
    until: i64,
}

/// The cached results, the most recently requested one last.
#[derive(Default)]
pub struct PageCache {
    entries: Mutex<VecDeque<ResultEntry>>,
}

impl PageCache {
    pub fn take(&self, page: Continuation, now_ms: i64) -> Option<ResultRows> {
        let mut entries = self.entries.lock();
        entries.retain(|entry| entry.until > now_ms);
        let index = entries.iter().position(|entry| entry.key == page.key())?;
        let mut entry = entries.remove(index)?;
        entry.until = now_ms.saturating_add(KEPT_MS);
        let rows = entry.rows.clone();
        entries.push_back(entry);
        Some(rows)
    }

    pub fn put(&self, page: Continuation, rows: ResultRows, now_ms: i64) {
        let bytes = rows.rows.iter().map(Value::size_bytes).sum();
        let key = page.key();
        let mut entries = self.entries.lock();
        entries.retain(|entry| entry.until > now_ms && entry.key != key);
        if bytes <= KEPT_BYTES {
            entries.push_back(ResultEntry { key, rows, bytes, until: now_ms.saturating_add(KEPT_MS) });
        }
        while entries.iter().map(|entry| entry.bytes).sum::<usize>() > KEPT_BYTES {
            entries.pop_front();
        }
    }

    /// Returns the size of the cached rows, in bytes.
    pub fn size_bytes(&self) -> usize {
        let entries = self.entries.lock();
        entries.iter().map(|entry| entry.bytes).sum()
    }
}
