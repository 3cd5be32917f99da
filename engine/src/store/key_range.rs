//! Reading all of something in parts, so that no more than one of them is in memory as the database's own values.
//!
//! The database reads a range to its end, whatever the limit: so a part is a range with both its ends.

use std::future::Future;
use std::sync::Arc;

use futures_util::stream::{self, Stream, StreamExt};

use super::{Error, Result};

/// Key ranges that are read at a time, while what was read before is taken in.
const AHEAD: usize = 2;

/// Aggregates whose ids stand between two others.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct KeyRange {
    /// The first that may be among them.
    pub from: Option<Arc<str>>,
    /// The first behind them.
    pub until: Option<Arc<str>>,
}

impl KeyRange {
    /// As many aggregates are read at once.
    pub const LENGTH: usize = 2_000;

    /// Bytes that are read at once, where they are known before.
    pub const BYTES: usize = 8 << 20;

    /// Ranges of aggregates in the order of their ids, each with its bytes: a range ends with [`KeyRange::LENGTH`] of them or
    /// [`KeyRange::BYTES`].
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

    /// Ranges that have [`KeyRange::LENGTH`] of these ids each, and together all ids that there can be.
    pub fn of(ids: impl IntoIterator<Item = Arc<str>>) -> Vec<KeyRange> {
        let mut ids: Vec<Arc<str>> = ids.into_iter().collect();
        ids.sort_unstable();
        KeyRange::from_ends(ids.into_iter().step_by(KeyRange::LENGTH).skip(1))
    }

    /// The ranges between these ids, which ascend.
    pub fn from_ends(ends: impl IntoIterator<Item = Arc<str>>) -> Vec<KeyRange> {
        let mut from = None;
        let mut ranges: Vec<KeyRange> =
            ends.into_iter().map(|until| KeyRange { from: from.replace(until.clone()), until: Some(until) }).collect();
        ranges.push(KeyRange { from, until: None });
        ranges
    }
}

/// What `read` answers for each key range, in their order. It is run on tasks of their own, ahead of who takes the answers.
pub fn read_ahead<T, R>(ranges: Vec<KeyRange>, read: impl Fn(KeyRange) -> R) -> impl Stream<Item = Result<T>>
where
    T: Send + 'static,
    R: Future<Output = Result<T>> + Send + 'static,
{
    let tasks = stream::iter(ranges).map(move |key_range| tokio::spawn(read(key_range))).buffered(AHEAD);
    tasks.map(|read| read.unwrap_or_else(|error| Err(Error::Corrupt(format!("it was not read to its end: {error}")))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_ranges_leave_no_id_out() {
        assert_eq!(KeyRange::of([]), [KeyRange::default()]);
        let ids = (0..2 * KeyRange::LENGTH + 1).rev().map(|number| format!("{number:05}").as_str().into());
        let ranges = KeyRange::of(ids);
        let ends: Vec<_> =
            ranges.iter().map(|key_range| (key_range.from.as_deref(), key_range.until.as_deref())).collect();
        assert_eq!(ends, [(None, Some("02000")), (Some("02000"), Some("04000")), (Some("04000"), None)]);
    }

    #[test]
    fn key_ranges_of_large_snapshots_end_at_their_bytes() {
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
