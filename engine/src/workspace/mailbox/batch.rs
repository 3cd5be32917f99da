//! One action on many tasks. Each task succeeds or fails independently.

use futures_util::StreamExt;
use futures_util::stream;

use super::actions::ActedTask;
use super::approval::limit_states;
use super::tasks::{TaskFilter, TaskLimit};
use crate::error::{Error, ErrorCode, Result};
use crate::mailbox::person::TaskCommand;
use crate::model::event::StreamExpectation;
use crate::workspace::call_context::Operation;
use crate::workspace::rights::Writer;

/// The maximum number of tasks in one request.
pub const MAX_TASKS: usize = 500;
/// The maximum number of concurrent actions.
const AT_ONCE: usize = 64;

/// The tasks to act on.
#[derive(Debug, Clone)]
pub enum TaskChoice {
    /// The tasks with these ids, each with the version that it must have.
    Ids(Vec<(String, StreamExpectation)>),
    /// The tasks that match a filter. The request is rejected unless `expected` tasks match.
    Filter { filter: Box<TaskFilter>, expected: usize },
}

/// The result of the action on one task.
pub struct TaskOutcome {
    pub id: String,
    pub result: Result<ActedTask>,
}

impl Writer {
    /// Performs one action on many tasks. Returns the results in the order of the tasks.
    pub async fn act_on_tasks(&self, which: TaskChoice, command: TaskCommand) -> Result<Vec<TaskOutcome>> {
        let (pointer, ids) = match which {
            TaskChoice::Ids(ids) => ("/ids", ids),
            TaskChoice::Filter { filter, expected } => {
                let ids = self.expected_ids(&filter, expected).await?;
                ("/expected", ids.into_iter().map(|id| (id, StreamExpectation::Any)).collect())
            }
        };
        if ids.is_empty() || ids.len() > MAX_TASKS {
            return Err(Error::invalid_at(pointer, format!("expected 1 to {MAX_TASKS} tasks, found {}", ids.len())));
        }
        if let TaskCommand::Assign { assignee, .. } = &command {
            self.context.check_user(assignee.as_ref()).await?;
        }
        let writer = self.clone();
        Operation::perform(self, |_| async move {
            let act = |(id, expected): (String, StreamExpectation)| {
                let (writer, command) = (writer.clone(), command.clone());
                async move {
                    let result = writer.act_on_task(&id, command, expected).await;
                    TaskOutcome { id, result }
                }
            };
            let mut outcomes: Vec<TaskOutcome> =
                stream::iter(ids.into_iter().map(act)).buffered(AT_ONCE).collect().await;
            let acted = outcomes.iter_mut().filter_map(|outcome| outcome.result.as_mut().ok());
            limit_states(acted.flat_map(|acted| &mut acted.appended));
            Ok(outcomes)
        })
        .await
    }

    /// Returns the ids of the tasks that match a filter. Fails if the number of tasks differs from `expected`, because
    /// the action could affect tasks that the client has not seen.
    async fn expected_ids(&self, filter: &TaskFilter, expected: usize) -> Result<Vec<String>> {
        if expected > MAX_TASKS {
            return Err(Error::invalid_at("/expected", format!("expected at most {MAX_TASKS} tasks")));
        }
        let found = self.context.select_tasks(filter, None, TaskLimit::NONE).await?.items;
        if found.len() != expected {
            let message = format!("the filter matches {} tasks, expected {expected}", found.len());
            let error = Error::conflict(ErrorCode::CountMismatch, message);
            return Err(error.with_detail("count", found.len() as i64).with_detail("expected", expected as i64));
        }
        Ok(found.iter().map(|task| task.id.to_string()).collect())
    }
}
