//! Selects the parked steps that a request replays or deletes, and reads all parked steps in parts.

use std::sync::Arc;

use super::{FailureCause, ParkedStep, StepId};
use crate::error::{Error, ErrorCode, Result};
use crate::store::DatabaseReader;
use crate::workspace::CallContext;

/// The maximum number of parked steps that one request reads to group, count or delete them.
pub const MAX_EXAMINED: usize = 100_000;
/// The number of positions in the first part of a scan.
const FIRST_WIDTH: u64 = 4_096;
/// The number of steps above which a part of a scan is too large. After a part with more steps, the next part covers
/// fewer positions. After a part with fewer steps than an eighth of this number, the next part covers more positions.
const FULL_PART: usize = 2_000;

/// The criterion by which a request selects parked steps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StepChoice {
    /// All steps of one plugin, or of all enabled plugins.
    Plugin(Option<Arc<str>>),
    /// The steps with these ids. Ids of steps that are no longer parked are ignored.
    Ids(Vec<StepId>),
    /// The steps that failed for this cause.
    Cause(FailureCause),
}

/// The steps that a request selects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepSelection {
    pub which: StepChoice,
    /// The number of steps that the request must select. If the number differs, the request is rejected, because the
    /// request could affect steps that the client has not counted.
    pub expected: Option<usize>,
    /// The step after which the selection begins. This step and all steps before it are left out.
    pub after: Option<StepId>,
}

impl From<StepChoice> for StepSelection {
    fn from(which: StepChoice) -> StepSelection {
        StepSelection { which, expected: None, after: None }
    }
}

impl CallContext {
    /// Returns the oldest selected steps, at most `most`, and the number of selected steps. If
    /// [`StepSelection::expected`] is set, fails if the number differs from this field. Otherwise, counting may stop as
    /// soon as the number exceeds `most`. The returned number can then be too low.
    pub(super) async fn select_parked(
        &self,
        selection: &StepSelection,
        most: usize,
    ) -> Result<(Vec<ParkedStep>, usize)> {
        self.refresh().await?;
        let StepSelection { which, expected, after } = selection;
        let is_after = |parked: &ParkedStep| after.as_ref().is_none_or(|after| parked.id > *after);
        let (mut steps, mut count) = (Vec::new(), 0);
        if let StepChoice::Ids(ids) = which {
            steps = self.state().db.find_parked_steps(ids).await?;
            steps.retain(is_after);
            steps.sort_unstable_by(|a, b| a.id.cmp(&b.id));
            count = steps.len();
            steps.truncate(most);
        } else {
            let (plugin, cause) = match which {
                StepChoice::Plugin(plugin) => (plugin.as_deref(), None),
                StepChoice::Cause(cause) => (Some(&*cause.plugin), Some(cause)),
                StepChoice::Ids(_) => (None, None),
            };
            let admits = |parked: &ParkedStep| cause.is_none_or(|cause| *cause == FailureCause::of(parked));
            let mut scan = self.scan_parked(plugin, after.as_ref().map_or(1, |after| after.position));
            while let Some(part) = scan.next().await? {
                for parked in part.into_iter().filter(|parked| is_after(parked) && admits(parked)) {
                    count += 1;
                    if steps.len() < most {
                        steps.push(parked);
                    }
                }
                if expected.is_none() && count > most {
                    break;
                }
            }
        }
        match expected {
            Some(expected) if *expected != count => Err(mismatch(count, *expected)),
            _ => Ok((steps, count)),
        }
    }

    /// Returns a scan of the parked steps whose events are at or after the position `from`. The steps belong to
    /// `plugin`, or to any enabled plugin if `plugin` is `None`.
    pub(super) fn scan_parked(&self, plugin: Option<&str>, from: u64) -> ParkedScan<'_> {
        let state = self.state();
        let (plugins, last) = (self.parking(plugin), state.folded.position());
        ParkedScan { db: &state.db, plugins, next: from.max(1), last, width: FIRST_WIDTH, examined: 0 }
    }
}

fn mismatch(count: usize, expected: usize) -> Error {
    let message = format!("the request selects {count} parked steps, expected {expected}");
    let error = Error::conflict(ErrorCode::CountMismatch, message);
    error.with_detail("count", count as i64).with_detail("expected", expected as i64)
}

/// A scan of parked steps, in parts and in log order. The database always reads a range to its end, even if the query
/// has a limit. Each part is therefore a range of positions. After a part with few steps, the next range is wider, and
/// after a part with many steps, the next range is narrower.
pub(super) struct ParkedScan<'a> {
    db: &'a DatabaseReader,
    plugins: Vec<Arc<str>>,
    next: u64,
    last: u64,
    width: u64,
    examined: usize,
}

impl ParkedScan<'_> {
    /// Returns the next part. Returns `None` after the last part, or after [`MAX_EXAMINED`] steps.
    pub async fn next(&mut self) -> Result<Option<Vec<ParkedStep>>> {
        if self.next > self.last || self.is_cut() {
            return Ok(None);
        }
        let end = self.next.saturating_add(self.width - 1);
        let mut part = self.db.read_parked_between(&self.plugins, self.next..=end).await?;
        match part.len() {
            steps if steps > FULL_PART => self.width = (self.width / 2).max(1),
            steps if steps < FULL_PART / 8 => self.width = self.width.saturating_mul(2),
            _ => {}
        }
        self.next = end.saturating_add(1);
        part.truncate(MAX_EXAMINED - self.examined);
        self.examined += part.len();
        Ok(Some(part))
    }

    /// Returns whether the scan has reached the limit of [`MAX_EXAMINED`] steps, so that further steps may be left out.
    pub fn is_cut(&self) -> bool {
        self.examined >= MAX_EXAMINED
    }
}
