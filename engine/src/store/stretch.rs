//! Reading all of something in parts, so that no more than one of them is in memory as the database's own values.
//!
//! The database reads a range to its end, whatever the limit: so a part is a range with both its ends.

use std::future::Future;
use std::sync::Arc;

use futures_util::stream::{self, Stream, StreamExt};

use super::{Error, Result};

/// Stretches that are read at a time, while what was read before is taken in.
const AHEAD: usize = 2;

/// Aggregates whose ids stand between two others.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Stretch {
    /// The first that may be among them.
    pub from: Option<Arc<str>>,
    /// The first behind them.
    pub until: Option<Arc<str>>,
}

impl Stretch {
    /// As many aggregates are read at once.
    pub const LENGTH: usize = 2_000;

    /// Stretches that have [`Stretch::LENGTH`] of these ids each, and together all ids that there can be.
    pub fn of(ids: impl IntoIterator<Item = Arc<str>>) -> Vec<Stretch> {
        let mut ids: Vec<Arc<str>> = ids.into_iter().collect();
        ids.sort_unstable();
        Stretch::from_ends(ids.into_iter().step_by(Stretch::LENGTH).skip(1))
    }

    /// The stretches between these ids, which ascend.
    pub fn from_ends(ends: impl IntoIterator<Item = Arc<str>>) -> Vec<Stretch> {
        let mut from = None;
        let mut stretches: Vec<Stretch> =
            ends.into_iter().map(|until| Stretch { from: from.replace(until.clone()), until: Some(until) }).collect();
        stretches.push(Stretch { from, until: None });
        stretches
    }
}

/// What `read` answers for each stretch, in their order. It is run on tasks of their own, ahead of who takes the answers.
pub fn read_ahead<T, R>(stretches: Vec<Stretch>, read: impl Fn(Stretch) -> R) -> impl Stream<Item = Result<T>>
where
    T: Send + 'static,
    R: Future<Output = Result<T>> + Send + 'static,
{
    let tasks = stream::iter(stretches).map(move |stretch| tokio::spawn(read(stretch))).buffered(AHEAD);
    tasks.map(|read| read.unwrap_or_else(|error| Err(Error::Corrupt(format!("it was not read to its end: {error}")))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stretches_leave_no_id_out() {
        assert_eq!(Stretch::of([]), [Stretch::default()]);
        let ids = (0..2 * Stretch::LENGTH + 1).rev().map(|number| format!("{number:05}").as_str().into());
        let stretches = Stretch::of(ids);
        let ends: Vec<_> =
            stretches.iter().map(|stretch| (stretch.from.as_deref(), stretch.until.as_deref())).collect();
        assert_eq!(ends, [(None, Some("02000")), (Some("02000"), Some("04000")), (Some("04000"), None)]);
    }
}
