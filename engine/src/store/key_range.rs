//! Reads large tables in parts, so that only a few parts at a time are in memory as database values.
//!
//! The database always reads a range to its end, even if the query has a limit. Each part is therefore a range with a
//! lower and an upper bound.

use std::future::Future;
use std::sync::Arc;

use futures_util::stream::{self, Stream, StreamExt};

use super::{Error, Result};

/// The maximum number of ranges that are read at the same time. While the caller processes a range, only the next range
/// is read.
const READ_AHEAD: usize = 2;

/// A range of aggregate ids.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct KeyRange {
    /// The first id in the range, or `None` if the range has no lower bound.
    pub from: Option<Arc<str>>,
    /// The first id after the range, or `None` if the range has no upper bound.
    pub until: Option<Arc<str>>,
}

impl KeyRange {
    /// The maximum number of aggregates in a range.
    pub const LENGTH: usize = 2_000;

    /// The size at which a range ends, in bytes. With its last aggregate, a range may exceed this size. Callers may
    /// pass estimated sizes.
    pub const BYTES: usize = 8 << 20;

    /// Splits aggregates into ranges. `sized` contains the id and the approximate size in bytes of each aggregate,
    /// sorted by id. A range ends when it has [`KeyRange::LENGTH`] aggregates or [`KeyRange::BYTES`] bytes. Together,
    /// the ranges cover all possible ids.
    pub fn by_size<'a>(sized: impl IntoIterator<Item = (&'a str, usize)>) -> Vec<KeyRange> {
        let (mut ends, mut length, mut bytes) = (Vec::new(), 0, 0);
        for (id, size) in sized {
            if length >= KeyRange::LENGTH || bytes >= KeyRange::BYTES {
                ends.push(Arc::from(id));
                (length, bytes) = (0, 0);
            }
            length += 1;
            bytes += size;
        }
        KeyRange::from_ends(ends)
    }

    /// Splits all possible ids into ranges at the given ids, which must be sorted. Each given id begins a new range.
    pub fn from_ends(ends: impl IntoIterator<Item = Arc<str>>) -> Vec<KeyRange> {
        let mut from = None;
        let mut ranges: Vec<KeyRange> =
            ends.into_iter().map(|until| KeyRange { from: from.replace(until.clone()), until: Some(until) }).collect();
        ranges.push(KeyRange { from, until: None });
        ranges
    }
}

/// Calls `read` for each range and returns the results in the order of the ranges. The reads run in separate tasks, at
/// most [`READ_AHEAD`] at a time.
pub fn read_ahead<T, R>(ranges: Vec<KeyRange>, read: impl Fn(KeyRange) -> R) -> impl Stream<Item = Result<T>>
where
    T: Send + 'static,
    R: Future<Output = Result<T>> + Send + 'static,
{
    let tasks = stream::iter(ranges).map(move |key_range| tokio::spawn(read(key_range))).buffered(READ_AHEAD);
    tasks.map(|read| {
        read.unwrap_or_else(|error| {
            Err(Error::corrupt(format!("the task that reads a range of aggregate ids failed: {error}")))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_ranges_cover_every_id_and_contain_a_limited_number_of_aggregates() {
        assert_eq!(KeyRange::by_size([]), [KeyRange::default()]);
        let ids: Vec<String> = (0..2 * KeyRange::LENGTH + 1).map(|number| format!("{number:05}")).collect();
        let ranges = KeyRange::by_size(ids.iter().map(|id| (id.as_str(), 0)));
        let ends: Vec<_> =
            ranges.iter().map(|key_range| (key_range.from.as_deref(), key_range.until.as_deref())).collect();
        assert_eq!(ends, [(None, Some("02000")), (Some("02000"), Some("04000")), (Some("04000"), None)]);
    }

    #[test]
    fn key_ranges_end_at_a_limit_of_bytes_or_of_keys() {
        let ends = |sized: &[(&str, usize)]| -> Vec<Option<Arc<str>>> {
            KeyRange::by_size(sized.iter().copied()).into_iter().map(|key_range| key_range.until).collect()
        };
        let half = KeyRange::BYTES / 2;
        assert_eq!(ends(&[]), [None]);
        assert_eq!(ends(&[("a", half), ("b", half), ("c", 1), ("d", 1)]), [Some("c".into()), None]);
        assert_eq!(ends(&[("a", 3 * half), ("b", 3 * half)]), [Some("b".into()), None]);
        let many: Vec<String> = (0..KeyRange::LENGTH + 1).map(|number| format!("{number:05}")).collect();
        let many: Vec<(&str, usize)> = many.iter().map(|id| (id.as_str(), 1)).collect();
        assert_eq!(ends(&many), [Some("02000".into()), None]);
    }
}
