//! Groups of parked steps that failed for the same cause.

use std::sync::Arc;

use indexmap::IndexMap;
use rustc_hash::FxBuildHasher;

use super::{Parked, StepId};
use crate::error::Result;
use crate::workspace::rights::Reader;

/// The maximum number of groups in a response.
const MAX_GROUPS: usize = 200;
/// The maximum number of step ids in the sample of a group.
const MAX_SAMPLE: usize = 20;

/// The properties that all steps of a group have in common.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Cause {
    pub plugin: Arc<str>,
    pub hook: Arc<str>,
    /// The kind of the failure.
    pub kind: Arc<str>,
    /// The line of the script at which the hook failed, if the failure has a line.
    pub line: Option<u32>,
}

impl Cause {
    /// Returns the cause of a parked step.
    pub fn of(parked: &Parked) -> Cause {
        let Parked { id, reason } = parked;
        Cause { plugin: id.plugin.clone(), hook: id.hook.clone(), kind: reason.kind.clone(), line: reason.line }
    }
}

/// Parked steps that failed for the same cause.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    pub cause: Cause,
    pub count: u64,
    /// The step for the oldest event and the step for the newest event.
    pub first: Parked,
    pub last: Parked,
    /// The ids of the oldest steps.
    pub sample: Vec<StepId>,
}

/// The groups of parked steps, the largest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Groups {
    pub groups: Vec<Group>,
    /// Whether there are further groups, or parked steps that were not counted.
    pub more: bool,
}

impl Reader {
    /// Returns the parked steps of a plugin or of all enabled plugins, grouped by cause.
    pub async fn parked_groups(&self, plugin: Option<&str>) -> Result<Groups> {
        let mut found: IndexMap<Cause, Group, FxBuildHasher> = IndexMap::default();
        let mut scan = self.context.scan_parked(plugin, 1);
        while let Some(part) = scan.next().await? {
            for parked in part {
                add(&mut found, parked);
            }
        }
        let mut groups: Vec<Group> = found.into_values().collect();
        groups.sort_by_key(|group| std::cmp::Reverse(group.count));
        let more = scan.is_cut() || groups.len() > MAX_GROUPS;
        groups.truncate(MAX_GROUPS);
        Ok(Groups { groups, more })
    }
}

fn add(found: &mut IndexMap<Cause, Group, FxBuildHasher>, parked: Parked) {
    let cause = Cause::of(&parked);
    let group = found.entry(cause.clone()).or_insert_with(|| {
        let (first, last) = (parked.clone(), parked.clone());
        Group { cause, count: 0, first, last, sample: Vec::new() }
    });
    group.count += 1;
    if group.sample.len() < MAX_SAMPLE {
        group.sample.push(parked.id.clone());
    }
    group.last = parked;
}
