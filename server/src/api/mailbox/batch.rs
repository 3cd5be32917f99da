//! `/mailbox/actions`: one action on many tasks.

use foldwork_engine::Error;
use foldwork_engine::model::task::Action;
use foldwork_engine::model::task::content::named;
use foldwork_engine::model::value::{Object, Value};
use foldwork_engine::workspace::mailbox::batch::{MAX_TASKS, Which};
use poem_openapi::OpenApi;

use super::command::{command, filter, flag, integer, object, one_text};
use crate::api::section::Section;
use crate::auth::ApiWrite;
use crate::http::error::ApiResult;
use crate::wire::body::{Body, JsonResponse};
use crate::wire::received::Received;
use crate::wire::task::{ActOnTasks, ActedBody};

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
        let fields = &body.fields;
        let named_action = one_text(fields, &["action"])?;
        let action = named_action.as_deref().and_then(Action::parse).ok_or_else(|| {
            let allowed = Action::ALL.map(Action::name).join(", ");
            Error::invalid_at("/action", format!("expected one of {allowed}"))
        });
        let command = command(action?, fields, access.0.now_ms())?;
        let outcomes = access.0.act_on_tasks(which(fields)?, command).await?;
        let tasks = outcomes.iter().filter_map(|outcome| outcome.result.as_ref().ok());
        let bytes = tasks.map(|task| task.size_bytes()).sum();
        Ok(JsonResponse::large(&ActedBody::from(outcomes), bytes))
    }
}

fn which(fields: &Object) -> Result<Which, Error> {
    if let Some(ids) = named(fields, "ids") {
        let texts = |ids: &[Value]| ids.iter().map(|id| id.as_str().map(str::to_owned)).collect::<Option<Vec<_>>>();
        let found = ids.as_array().filter(|ids| ids.len() <= MAX_TASKS).and_then(texts);
        let mut ids = found.ok_or_else(|| Error::invalid_at("/ids", format!("expected 1 to {MAX_TASKS} ids")))?;
        let mut seen = std::collections::BTreeSet::new();
        ids.retain(|id| seen.insert(id.clone()));
        return Ok(Which::Ids(ids));
    }
    if named(fields, "filter").is_none() {
        return Err(Error::invalid_at("/ids", "required: ids, or a filter and the number of tasks that it matches"));
    }
    let by = object(fields, "filter")?;
    let expected = integer(fields, "expected")?.and_then(|count| usize::try_from(count).ok());
    let expected =
        expected.ok_or_else(|| Error::invalid_at("/expected", "required: how many tasks the filter matches"))?;
    let filter = filter(|name| one_text(&by, &[name]), flag(&by, "unread")?)?;
    Ok(Which::Filter { filter: Box::new(filter), expected })
}
