//! Completes arguments of resources and prompts.

use foldwork_engine::model::task::Status;
use foldwork_engine::workspace::mailbox::tasks::{TaskFilter, TaskLimit};
use foldwork_engine::workspace::search::SearchRequest;
use foldwork_engine::{Reader, Result};
use rmcp::model::{CompleteRequestParams, CompletionInfo, Reference};

use super::prompts::{REVIEW_TASK, TASK_ID};
use super::resources::{AGGREGATE, SCHEMA};

/// The maximum number of values that a completion offers.
const MAX_VALUES: usize = 20;
/// The maximum number of tasks that are read for one completion.
const MAX_TASKS: usize = 200;

/// Returns values for the requested argument. Ids of aggregates are ordered by the quality of the match, best first.
pub(super) async fn of(reader: &Reader, request: &CompleteRequestParams) -> Result<CompletionInfo> {
    let (name, prefix) = (request.argument.name.as_str(), request.argument.value.as_str());
    let values = match &request.r#ref {
        Reference::Resource(resource) if resource.uri.starts_with(SCHEMA) => {
            let types = reader.list_types().await?.into_iter().map(|definition| definition.type_name.to_string());
            types.filter(|type_name| type_name.starts_with(prefix)).collect()
        }
        Reference::Resource(resource) if resource.uri.starts_with(AGGREGATE) => found(reader, prefix).await?,
        Reference::Prompt(prompt) if prompt.name == REVIEW_TASK && name == TASK_ID => waiting(reader, prefix).await?,
        _ => Vec::new(),
    };
    let total = values.len();
    let shown: Vec<String> = values.into_iter().take(MAX_VALUES).collect();
    let has_more = shown.len() < total;
    let info = CompletionInfo::with_pagination(shown, u32::try_from(total).ok(), has_more);
    Ok(info.unwrap_or_default())
}

/// Returns the ids of the aggregates that a search for `prefix` finds.
async fn found(reader: &Reader, prefix: &str) -> Result<Vec<String>> {
    if prefix.trim().is_empty() {
        return Ok(Vec::new());
    }
    let search = SearchRequest { query: prefix.to_owned(), limit: Some(MAX_VALUES as u64), ..SearchRequest::default() };
    let found = reader.search(search).await?.results;
    Ok(found.into_iter().map(|hit| hit.aggregate.id.to_string()).collect())
}

/// Returns the ids of tasks that wait for a person. Only ids that begin with `prefix` are returned.
async fn waiting(reader: &Reader, prefix: &str) -> Result<Vec<String>> {
    let filter = TaskFilter { statuses: Some(vec![Status::Review, Status::InputRequired]), ..TaskFilter::default() };
    let tasks = reader.list_tasks(&filter, None, TaskLimit::tasks(MAX_TASKS)).await?.items;
    Ok(tasks.iter().map(|task| task.id.to_string()).filter(|id| id.starts_with(prefix)).collect())
}
