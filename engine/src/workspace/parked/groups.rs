//! Groups parked steps by the cause of their failure.

use std::sync::Arc;

use indexmap::IndexMap;
use rustc_hash::FxBuildHasher;

use super::{ParkedStep, StepId};
use crate::error::Result;
use crate::workspace::rights::Reader;

/// The maximum number of groups in a response.
const MAX_GROUPS: usize = 200;
/// The maximum number of step ids in the sample of a group.
const MAX_SAMPLE: usize = 20;

/// The properties that all steps of a group have in common.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FailureCause {
    pub plugin: Arc<str>,
    pub hook: Arc<str>,
    /// The kind of the failure.
    pub kind: Arc<str>,
    /// The line of the script at which the hook failed, if the failure has a line.
    pub line: Option<u32>,
}

impl FailureCause {
    /// Returns the cause of a parked step.
    pub fn of(parked: &ParkedStep) -> FailureCause {
        let ParkedStep { id, reason } = parked;
        FailureCause { plugin: id.plugin.clone(), hook: id.hook.clone(), kind: reason.kind.clone(), line: reason.line }
    }
}

/// Parked steps that failed for the same cause.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepGroup {
    pub cause: FailureCause,
    pub count: u64,
    /// The step for the oldest event.
    pub first: ParkedStep,
    /// The step for the newest event.
    pub last: ParkedStep,
    /// The ids of the oldest steps.
    pub sample: Vec<StepId>,
}

/// The groups of parked steps, the largest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepGroups {
    pub groups: Vec<StepGroup>,
    /// Whether there are further groups, or parked steps that were not counted.
    pub more: bool,
}

impl Reader {
    /// Returns the parked steps of a plugin or of all enabled plugins, grouped by cause.
    pub async fn parked_groups(&self, plugin: Option<&str>) -> Result<StepGroups> {
        self.context.refresh().await?;
        let mut found: IndexMap<FailureCause, StepGroup, FxBuildHasher> = IndexMap::default();
        let mut scan = self.context.scan_parked(plugin, 1);
        while let Some(part) = scan.next().await? {
            for parked in part {
                add(&mut found, parked);
            }
        }
        let mut groups: Vec<StepGroup> = found.into_values().collect();
        groups.sort_by_key(|group| std::cmp::Reverse(group.count));
        let more = scan.is_cut() || groups.len() > MAX_GROUPS;
        groups.truncate(MAX_GROUPS);
        Ok(StepGroups { groups, more })
    }
}

fn add(found: &mut IndexMap<FailureCause, StepGroup, FxBuildHasher>, parked: ParkedStep) {
    let cause = FailureCause::of(&parked);
    let group = found.entry(cause.clone()).or_insert_with(|| {
        let (first, last) = (parked.clone(), parked.clone());
        StepGroup { cause, count: 0, first, last, sample: Vec::new() }
    });
    group.count += 1;
    if group.sample.len() < MAX_SAMPLE {
        group.sample.push(parked.id.clone());
    }
    group.last = parked;
}
