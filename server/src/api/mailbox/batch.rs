//! `/mailbox/actions`: one action on many tasks.

use foldwork_engine::Error;
use foldwork_engine::model::task::Action;
use foldwork_engine::model::task::view::EffectView;
use foldwork_engine::model::value::Value;
use foldwork_engine::model::violation::Violations;
use foldwork_engine::workspace::mailbox::actions::ActedTask;
use foldwork_engine::workspace::mailbox::batch::{MAX_TASKS, Which};
use poem_openapi::OpenApi;

use super::command::{FilterTexts, command};
use crate::api::section::Section;
use crate::auth::ApiWrite;
use crate::http::error::ApiResult;
use crate::wire::body::{Body, JsonResponse};
use crate::wire::names;
use crate::wire::received::{FromFields, Received};
use crate::wire::task::{ActOnTasks, ActedBody, SentFilter};

pub struct Api;

#[OpenApi(tag = "Section::Mailbox")]
impl Api {
    /// Performs one action on many tasks. Each task succeeds or fails independently and has the same result as the
    /// action on a single task.
    ///
    /// The request names the tasks by id, or by a filter with the number of matching tasks. If the filter matches
    /// another number of tasks, the request is rejected, so the action cannot affect tasks that the caller has not
    /// seen.
    #[oai(path = "/mailbox/actions", method = "post", operation_id = "act_on_tasks")]
    async fn act_on_tasks(
        &self,
        access: ApiWrite,
        body: Body<Received<ActOnTasks>>,
    ) -> ApiResult<JsonResponse<ActedBody>> {
        let named_action = body.action.text()?;
        let action = named_action.as_deref().and_then(Action::parse).ok_or_else(|| {
            let allowed = Action::ALL.map(Action::name).join(", ");
            body.action.invalid(format!("expected one of {allowed}"))
        });
        let command = command(action?, &body.fields, access.0.now_ms())?;
        let outcomes = access.0.act_on_tasks(which(&body)?, command).await?;
        let tasks = outcomes.iter().filter_map(|outcome| outcome.result.as_ref().ok());
        let appended = |task: &ActedTask| task.appended.iter().map(EffectView::size_bytes).sum::<usize>();
        let bytes = tasks.map(|acted| acted.task.size_bytes() + appended(acted)).sum();
        Ok(JsonResponse::large(&ActedBody::from(outcomes), bytes))
    }
}

fn which(request: &ActOnTasks) -> Result<Which, Error> {
    if let Some(ids) = request.ids.value() {
        let texts = |ids: &[Value]| ids.iter().map(|id| id.as_str().map(str::to_owned)).collect::<Option<Vec<_>>>();
        let found = ids.as_array().filter(|ids| ids.len() <= MAX_TASKS).and_then(texts);
        let mut ids = found.ok_or_else(|| request.ids.invalid(format!("expected 1 to {MAX_TASKS} ids")))?;
        let mut seen = std::collections::BTreeSet::new();
        ids.retain(|id| seen.insert(id.clone()));
        return Ok(Which::Ids(ids));
    }
    if request.filter.is_absent() {
        return Err(request.ids.invalid("required: ids, or a filter and the number of tasks that it matches"));
    }
    let filter = request.filter.object()?;
    // A filter without its misspelt field would match more tasks.
    let mut wrong = Violations::default();
    names::add_unknown(&filter, SentFilter::NAMES, &mut wrong);
    let mut below = Violations::default();
    below.add_below("/filter", wrong);
    below.finish(())?;
    let by = SentFilter::from_fields(&filter);
    let expected = request.expected.integer()?.and_then(|count| usize::try_from(count).ok());
    let expected = expected.ok_or_else(|| request.expected.invalid("required: how many tasks the filter matches"))?;
    Ok(Which::Filter { filter: Box::new(FilterTexts::read(&by)?.filter()?), expected })
}
