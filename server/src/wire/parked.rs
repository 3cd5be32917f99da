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
use super::shown::shown;

shown! {
    /// A parked step: a call of a plugin's hook for an event that failed, or that was not made because the plugin was
    /// stopped or paused.
    #[oai(rename = "ParkedStep")]
    pub struct ParkedBody from parked: &ParkedStep where {
        let ParkedStep { id: step, reason } = parked;
    };

    id: String = step.text(),
    plugin: String = step.plugin.to_string(),
    hook: OneOf<Hooks> = step.hook.to_string().into(),
    event_id: String = reason.event_id.to_string(),
    event_type: String = reason.event_type.to_string(),
    aggregate_id: String = reason.aggregate_id.to_string(),
    position: u64 = step.position,
    /// The kind of failure, such as `thrown`, `deadline`, `memory` or `circuit_open`.
    kind: String = reason.kind.to_string(),
    /// The error message.
    message: String = reason.message.clone(),
    /// The line in the plugin's file at which the step failed; `null` if the failure has no line.
    line: Option<u32> = reason.line,
    column: Option<u32> = reason.column,
    /// The version of the plugin at the time of the failure.
    version: String = reason.version.clone(),
    /// The number of calls. 0 if the plugin was stopped or paused and therefore not called for the step.
    attempts: u32 = reason.attempts,
    parked_at: String = format_date(reason.parked_at),
    /// The time of the next retry, if the plugin's `on_error` is `retry`. `null` for a step that waits until a client
    /// replays or deletes the step.
    retry_at: Option<String> = reason.retry_at.map(format_date),
}

listed!(ParkedBody as "ParkedPage": "A page of parked steps.");

/// A selection of the parked steps to replay.
#[derive(Object, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReplayParked {
    /// The name of the plugin whose steps are replayed; the default is all enabled plugins.
    plugin: Option<String>,
    /// The ids of the steps, at most 1,000. Steps that are no longer parked are left out.
    ids: Option<Vec<String>>,
    /// A group from the response of `GET /parked/groups`. Only the steps of this group are selected.
    group: Option<GroupName>,
    /// The expected number of selected steps. If the number differs, the request fails with 409 `count_mismatch`.
    expected: Option<Whole>,
    /// The id of a step: the value of `last` in an earlier response. Only steps after this step are selected.
    after: Option<String>,
    /// Whether to return only the number of selected steps, without a replay; the default is false.
    pub dry_run: Option<bool>,
}

/// A selection of the parked steps to delete: `ids`, a `group`, the steps of a `plugin`, or all steps of enabled
/// plugins. Without `ids`, `expected` is required.
#[derive(Object, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeleteParked {
    /// The name of the plugin whose steps are deleted. Requires `expected`.
    plugin: Option<String>,
    /// The ids of the steps, at most 1,000. Steps that are no longer parked are left out.
    ids: Option<Vec<String>>,
    /// A group from the response of `GET /parked/groups`. Only the steps of this group are selected.
    group: Option<GroupName>,
    /// The expected number of selected steps. If the number differs, the request fails with 409 `count_mismatch`.
    /// Required without `ids`.
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
    /// The line in the plugin's file at which the steps failed; `null` if the failure has no line.
    line: Option<u32>,
}

shown! {
    /// Parked steps of one plugin and hook that failed with the same kind of failure at the same line.
    #[oai(rename = "ParkedGroup")]
    pub struct GroupBody from group: StepGroup;

    plugin: String = group.cause.plugin.to_string(),
    hook: OneOf<Hooks> = group.cause.hook.to_string().into(),
    /// The kind of failure.
    kind: String = group.cause.kind.to_string(),
    /// The line in the plugin's file at which the steps failed; `null` if the failure has no line.
    line: Option<u32> = group.cause.line,
    /// The error message of the step for the newest event.
    message: String = group.last.reason.message.clone(),
    count: u64 = group.count,
    /// The step of the oldest event.
    first: ParkedBody = ParkedBody::from(&group.first),
    /// The step of the newest event.
    last: ParkedBody = ParkedBody::from(&group.last),
    /// The ids of at most 20 steps: the steps with the oldest events.
    ids: Vec<String> = group.sample.iter().map(StepId::text).collect(),
}

shown! {
    /// The groups of parked steps, the largest first.
    #[oai(rename = "ParkedGroupList")]
    pub struct GroupsBody from found: StepGroups;

    data: Vec<GroupBody> = found.groups.into_iter().map(GroupBody::from).collect(),
    /// Whether groups are missing or counts are too low: the response contains at most 200 groups and counts at most
    /// 100,000 parked steps.
    more: bool = found.more,
}

shown! {
    /// The result of replaying parked steps.
    pub struct ReplayedBody from replayed: ReplayOutcome;

    /// The number of selected steps. If `more` is true, the actual number may be higher.
    selected: u64 = replayed.selected,
    /// The number of replayed steps that succeeded.
    done: u64 = replayed.done,
    /// The steps that failed again, each with the new failure.
    failed: Vec<ParkedBody> = replayed.failed.iter().map(ParkedBody::from).collect(),
    /// Whether the request selects more steps than one request replays.
    more: bool = replayed.more,
    /// The id of the last step that was replayed, or null if no step was replayed. A request with this id as `after`
    /// continues after that step.
    last: Option<String> = replayed.last.map(|last| last.text()),
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
            return Err(Error::invalid_at(
                "/expected",
                "required without `ids`; must be the number of steps to delete",
            ));
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
        (Some(_), Some(_)) => Err(Error::invalid("expected at most one of `plugin`, `ids` and `group`")),
        (Some(named), None) => Ok(named),
        (None, plugin) => Ok(StepChoice::Plugin(plugin.map(Arc::from))),
    }
}

/// Returns the steps that a request names by their ids or as a group, or `None` if the request contains neither ids nor
/// a group.
fn named(ids: Option<&[String]>, group: Option<&GroupName>) -> Result<Option<StepChoice>, Error> {
    match (ids, group) {
        (Some(_), Some(_)) => Err(Error::invalid("expected at most one of `ids` and `group`")),
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
        return Err(Error::invalid_at(pointer, format!("expected 1 to {MAX_REPLAYED} ids, found {}", ids.len())));
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
