//! `/mailbox/actions`: one action on many tasks.

use foldwork_engine::Error;
use foldwork_engine::model::closed_set::names;
use foldwork_engine::model::event::StreamExpectation;
use foldwork_engine::model::task::Action;
use foldwork_engine::model::task::view::EffectView;
use foldwork_engine::model::value::Value;
use foldwork_engine::model::violation::{Violations, segment};
use foldwork_engine::workspace::mailbox::actions::ActedTask;
use foldwork_engine::workspace::mailbox::batch::{MAX_TASKS, TaskChoice};
use poem_openapi::OpenApi;

use super::command::{FilterTexts, check_fields, command};
use crate::api::section::Section;
use crate::auth::ApiWrite;
use crate::http::error::ApiResult;
use crate::wire::body::{Body, JsonResponse};
use crate::wire::names;
use crate::wire::request_body::{FromFields, ReceivedBody};
use crate::wire::task::{ActOnTasks, ActedBody, SentFilter};

/// The message about a request that names no tasks.
const REQUIRED: &str = "one of `ids`, `expected_versions` and `filter` is required; `filter` also requires `expected`";

pub struct Api;

#[OpenApi(tag = "Section::Mailbox")]
impl Api {
    /// Performs one action on many tasks. Each task succeeds or fails independently and has the same result as the
    /// action on a single task.
    ///
    /// The request names the tasks by `ids`, by `expected_versions`, or by a `filter` together with `expected`, the
    /// number of matching tasks.
    ///
    /// If a task has another version than `expected_versions` states, the action does not change the task, and the
    /// task's result is 409 `version_conflict`. If the filter matches another number of tasks than `expected`, the
    /// request is rejected. With `ids` or `filter`, no version is checked, so the action can affect output that the
    /// caller has not seen.
    #[oai(path = "/mailbox/actions", method = "post", operation_id = "act_on_tasks")]
    async fn act_on_tasks(
        &self,
        access: ApiWrite,
        body: Body<ReceivedBody<ActOnTasks>>,
    ) -> ApiResult<JsonResponse<ActedBody>> {
        check_fields(&body.fields)?;
        let named_action = body.action.text()?;
        let action = named_action.as_deref().and_then(Action::parse).ok_or_else(|| {
            let allowed = names::<Action>().join(", ");
            body.action.invalid(format!("expected one of {allowed}"))
        });
        let command = command(action?, &body.fields, access.0.now_ms())?;
        let outcomes = access.0.act_on_tasks(task_choice(&body)?, command).await?;
        let tasks = outcomes.iter().filter_map(|outcome| outcome.result.as_ref().ok());
        let appended = |task: &ActedTask| task.appended.iter().map(EffectView::size_bytes).sum::<usize>();
        let bytes = tasks.map(|acted| acted.task.size_bytes() + appended(acted)).sum();
        Ok(JsonResponse::large(bytes, || ActedBody::new(outcomes, &access.0.decider())))
    }
}

fn task_choice(request: &ActOnTasks) -> Result<TaskChoice, Error> {
    let absent = [request.expected_versions.is_absent(), request.ids.is_absent(), request.filter.is_absent()];
    if absent.into_iter().filter(|is_absent| !is_absent).count() > 1 {
        let message = "expected only one of `ids`, `expected_versions` and `filter`";
        return Err(if absent[0] {
            request.filter.invalid(message)
        } else {
            request.expected_versions.invalid(message)
        });
    }
    if !request.expected.is_absent() && request.filter.is_absent() {
        return Err(request.expected.invalid("allowed only with `filter`, not with `ids` or `expected_versions`"));
    }
    if !request.expected_versions.is_absent() {
        return expected_versions(request).map(TaskChoice::Ids);
    }
    if let Some(ids) = request.ids.value() {
        let texts = |ids: &[Value]| ids.iter().map(|id| id.as_str().map(str::to_owned)).collect::<Option<Vec<_>>>();
        let found = ids.as_array().filter(|ids| ids.len() <= MAX_TASKS).and_then(texts);
        let mut ids =
            found.ok_or_else(|| request.ids.invalid(format!("expected an array of 1 to {MAX_TASKS} task ids")))?;
        let mut seen = std::collections::BTreeSet::new();
        ids.retain(|id| seen.insert(id.clone()));
        return Ok(TaskChoice::Ids(ids.into_iter().map(|id| (id, StreamExpectation::Any)).collect()));
    }
    if request.filter.is_absent() {
        return Err(request.ids.invalid(REQUIRED));
    }
    let filter = request.filter.object()?;
    // Rejects unknown fields, because a filter without its misspelled field would match more tasks.
    let mut wrong = Violations::default();
    names::add_unknown(&filter, SentFilter::NAMES, "/filter", &mut wrong);
    wrong.finish(())?;
    let by = SentFilter::from_fields(&filter);
    let expected = request.expected.integer()?.and_then(|count| usize::try_from(count).ok());
    let expected =
        expected.ok_or_else(|| request.expected.invalid("must be the number of tasks that the filter matches"))?;
    Ok(TaskChoice::Filter { filter: Box::new(FilterTexts::read(&by)?.filter()?), expected })
}

/// Returns the ids of the tasks in `expected_versions`, each with its version.
fn expected_versions(request: &ActOnTasks) -> Result<Vec<(String, StreamExpectation)>, Error> {
    let sent = &request.expected_versions;
    let versions = sent.object()?;
    if versions.is_empty() || versions.len() > MAX_TASKS {
        return Err(sent.invalid(format!("expected 1 to {MAX_TASKS} ids with versions, found {}", versions.len())));
    }
    let mut wrong = Violations::default();
    let mut found = Vec::with_capacity(versions.len());
    for (id, version) in versions.iter() {
        match version.as_int().and_then(|version| u64::try_from(version).ok()).filter(|version| *version > 0) {
            Some(version) => found.push((id.to_string(), StreamExpectation::Version(version))),
            None => wrong.add(format!("{}/{}", sent.pointer(), segment(id)), "expected a version, 1 or more"),
        }
    }
    Ok(wrong.finish(found)?)
}
