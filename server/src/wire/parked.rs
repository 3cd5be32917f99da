//! The wire types of `/parked`.

use std::sync::Arc;

use foldwork_engine::Error;
use foldwork_engine::model::date::format_date;
use foldwork_engine::workspace::parked::{
    FailureCause, MAX_REPLAYED, ParkedStep, ReplayOutcome, StepChoice, StepGroup, StepGroups, StepId, StepSelection,
};
use poem_openapi::Object;
use serde::{Deserialize, Serialize};

use super::closed_sets::{Hooks, OneOf};
use super::page::{Whole, listed};

/// A parked step: a failed call of a plugin's hook for an event.
#[derive(Object, Serialize)]
#[oai(rename = "ParkedStep")]
pub struct ParkedBody {
    id: String,
    plugin: String,
    hook: OneOf<Hooks>,
    event_id: String,
    event_type: String,
    aggregate_id: String,
    position: u64,
    /// The kind of failure, such as `thrown`, `deadline`, `memory` or `circuit_open`.
    kind: String,
    /// The error message.
    message: String,
    /// The line in the plugin's file at which the step failed.
    line: Option<u32>,
    column: Option<u32>,
    /// The version of the plugin at the time of the failure.
    version: String,
    /// The number of calls. 0 if the plugin was stopped or paused and therefore not called for the step.
    attempts: u32,
    parked_at: String,
    /// The time of the next retry, if the plugin's `on_error` is `retry`. `null` for a step that waits until a client
    /// replays or deletes the step.
    retry_at: Option<String>,
}

listed!(ParkedBody as "ParkedPage": "A page of parked steps.");

/// A selection of the parked steps to replay.
#[derive(Object, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReplayParked {
    /// The name of the plugin whose steps are replayed; the default is all plugins.
    plugin: Option<String>,
    /// The ids of the steps, at most 1,000. Steps that are not parked any more are left out.
    ids: Option<Vec<String>>,
    /// A group of `GET /parked/groups`.
    group: Option<GroupName>,
    /// The number of steps that must be selected. If another number is selected, the request fails with 409
    /// `count_mismatch`.
    expected: Option<Whole>,
    /// The `last` of an earlier response. Only steps after this step are selected.
    after: Option<String>,
    /// Whether to replay nothing and only return the number of selected steps; the default is false.
    pub dry_run: Option<bool>,
}

/// A selection of the parked steps to delete: `ids`, a `group`, the steps of a `plugin`, or all steps. Without `ids`,
/// `expected` is required.
#[derive(Object, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeleteParked {
    /// The name of the plugin whose steps are deleted. Requires `expected`.
    plugin: Option<String>,
    /// The ids of the steps, at most 1,000. Steps that are not parked any more are left out.
    ids: Option<Vec<String>>,
    /// A group of `GET /parked/groups`.
    group: Option<GroupName>,
    /// The number of steps that must be selected. If another number is selected, the request fails with 409
    /// `count_mismatch`. Required without `ids`.
    expected: Option<Whole>,
}

/// The result of deleting parked steps.
#[derive(Object, Serialize)]
pub struct DeletedSteps {
    pub deleted: u64,
}

/// The properties that all steps of a group have in common.
#[derive(Object, Deserialize)]
#[serde(deny_unknown_fields)]
#[oai(rename = "ParkedGroupName")]
pub struct GroupName {
    plugin: String,
    hook: String,
    kind: String,
    /// The line in the plugin's file; `null` for steps that failed without a line.
    line: Option<u32>,
}

/// Parked steps of one plugin and hook that failed with the same kind of failure at the same line.
#[derive(Object, Serialize)]
#[oai(rename = "ParkedGroup")]
pub struct GroupBody {
    plugin: String,
    hook: OneOf<Hooks>,
    /// The kind of failure.
    kind: String,
    /// The line in the plugin's file at which the steps failed.
    line: Option<u32>,
    /// The error message of the newest event's step.
    message: String,
    count: u64,
    /// The step of the oldest event.
    first: ParkedBody,
    /// The step of the newest event.
    last: ParkedBody,
    /// The ids of the steps of the oldest events, at most 20.
    ids: Vec<String>,
}

/// The groups of parked steps, the largest first.
#[derive(Object, Serialize)]
#[oai(rename = "ParkedGroupList")]
pub struct GroupsBody {
    data: Vec<GroupBody>,
    /// Whether groups are missing or counts are too low: the response has at most 200 groups and counts at most 100,000
    /// parked steps.
    more: bool,
}

/// The result of replaying parked steps.
#[derive(Object, Serialize)]
pub struct ReplayedBody {
    /// The number of steps that the request selects. If `more` is true, the request may select further steps.
    selected: u64,
    /// The number of replayed steps that succeeded.
    done: u64,
    /// The steps that failed again, each with the new failure.
    failed: Vec<ParkedBody>,
    /// Whether parked steps remain that this request did not replay.
    more: bool,
    /// The id of the last step that was replayed. A request with this id as `after` continues after that step.
    last: Option<String>,
}

impl From<&ParkedStep> for ParkedBody {
    fn from(parked: &ParkedStep) -> ParkedBody {
        let ParkedStep { id, reason } = parked;
        ParkedBody {
            id: id.text(),
            plugin: id.plugin.to_string(),
            hook: id.hook.to_string().into(),
            event_id: reason.event_id.to_string(),
            event_type: reason.event_type.to_string(),
            aggregate_id: reason.aggregate_id.to_string(),
            position: id.position,
            kind: reason.kind.to_string(),
            message: reason.message.clone(),
            line: reason.line,
            column: reason.column,
            version: reason.version.clone(),
            attempts: reason.attempts,
            parked_at: format_date(reason.parked_at),
            retry_at: reason.retry_at.map(format_date),
        }
    }
}

impl From<ReplayOutcome> for ReplayedBody {
    fn from(replayed: ReplayOutcome) -> ReplayedBody {
        let failed = replayed.failed.iter().map(ParkedBody::from).collect();
        let last = replayed.last.map(|last| last.text());
        ReplayedBody { selected: replayed.selected, done: replayed.done, failed, more: replayed.more, last }
    }
}

impl From<StepGroup> for GroupBody {
    fn from(group: StepGroup) -> GroupBody {
        let StepGroup { cause: FailureCause { plugin, hook, kind, line }, count, first, last, sample } = group;
        GroupBody {
            plugin: plugin.to_string(),
            hook: hook.to_string().into(),
            kind: kind.to_string(),
            line,
            message: last.reason.message.clone(),
            count,
            first: ParkedBody::from(&first),
            last: ParkedBody::from(&last),
            ids: sample.iter().map(StepId::text).collect(),
        }
    }
}

impl From<StepGroups> for GroupsBody {
    fn from(groups: StepGroups) -> GroupsBody {
        GroupsBody { data: groups.groups.into_iter().map(GroupBody::from).collect(), more: groups.more }
    }
}

impl ReplayParked {
    /// Returns the selection of steps that the request describes.
    pub fn selection(&self) -> Result<StepSelection, Error> {
        let which = which(self.plugin.as_deref(), self.ids.as_deref(), self.group.as_ref())?;
        let after = self.after.as_deref().map(|after| {
            StepId::parse(after).ok_or_else(|| Error::invalid_at("/after", "expected the id of a parked step"))
        });
        Ok(StepSelection { which, expected: count(self.expected), after: after.transpose()? })
    }
}

impl DeleteParked {
    /// Returns the selection of steps that the request describes.
    pub fn selection(&self) -> Result<StepSelection, Error> {
        let which = which(self.plugin.as_deref(), self.ids.as_deref(), self.group.as_ref())?;
        if !matches!(which, StepChoice::Ids(_)) && self.expected.is_none() {
            return Err(Error::invalid_at("/expected", "required without ids; must be the number of steps to delete"));
        }
        Ok(StepSelection { which, expected: count(self.expected), after: None })
    }
}

fn count(expected: Option<Whole>) -> Option<usize> {
    expected.map(|expected| usize::try_from(u64::from(expected)).unwrap_or(usize::MAX))
}

/// Returns the steps that a request names by their plugin, by their ids or as a group. If the request names none of
/// these, returns all steps.
fn which(plugin: Option<&str>, ids: Option<&[String]>, group: Option<&GroupName>) -> Result<StepChoice, Error> {
    match (named(ids, group)?, plugin) {
        (Some(_), Some(_)) => Err(Error::invalid("expected at most one of plugin, ids and group")),
        (Some(named), None) => Ok(named),
        (None, plugin) => Ok(StepChoice::Plugin(plugin.map(Arc::from))),
    }
}

/// Returns the steps that a request names by their ids or as a group, or `None` if the request has neither ids nor a
/// group.
fn named(ids: Option<&[String]>, group: Option<&GroupName>) -> Result<Option<StepChoice>, Error> {
    match (ids, group) {
        (Some(_), Some(_)) => Err(Error::invalid("expected either ids or group, not both")),
        (Some(ids), None) => step_ids(ids, "/ids").map(StepChoice::Ids).map(Some),
        (None, Some(GroupName { plugin, hook, kind, line })) => {
            let text = |text: &String| Arc::from(text.as_str());
            let cause = FailureCause { plugin: text(plugin), hook: text(hook), kind: text(kind), line: *line };
            Ok(Some(StepChoice::Cause(cause)))
        }
        (None, None) => Ok(None),
    }
}

/// Reads the ids of parked steps in the field at `pointer`. Repeated ids count once.
pub fn step_ids(ids: &[String], pointer: &str) -> Result<Vec<StepId>, Error> {
    if ids.is_empty() || ids.len() > MAX_REPLAYED {
        return Err(Error::invalid_at(pointer, format!("expected 1 to {MAX_REPLAYED} ids")));
    }
    let parse = |(index, id): (usize, &String)| {
        let wrong = || Error::invalid_at(format!("{pointer}/{index}"), "expected the id of a parked step");
        StepId::parse(id).ok_or_else(wrong)
    };
    let mut steps = ids.iter().enumerate().map(parse).collect::<Result<Vec<StepId>, Error>>()?;
    steps.sort_unstable();
    steps.dedup();
    Ok(steps)
}
