//! Claims the next task of an agent: the waiting task with the highest priority. Of tasks with the same priority, the
//! oldest is claimed first.

use super::tasks::{TaskFilter, TaskLimit};
use super::work::{ActionOutcome, check_claim};
use crate::error::{Error, ErrorCode, Result};
use crate::mailbox::agent::{AgentAction, Claimant};
use crate::mailbox::check_gets_work;
use crate::model::builtin::AGENT;
use crate::model::event::StreamExpectation;
use crate::model::task::{Status, Task};
use crate::workspace::rights::AgentWriter;

/// The maximum number of tasks that one request tries to claim. An attempt fails if the task changes at the same time.
const MAX_TRIED: usize = 256;

impl AgentWriter {
    /// Marks an agent as present, and claims the next task that is assigned to the agent and waits for the agent.
    /// Returns `None` if no such task could be claimed.
    pub async fn claim_next(
        &self,
        agent_id: &str,
        seconds: i64,
        instance: Option<String>,
    ) -> Result<Option<ActionOutcome>> {
        check_claim(seconds, instance.as_deref())?;
        let (mut worker, work) =
            (Claimant::new(Some(agent_id.to_owned()), None), AgentAction::Claim { seconds, instance });
        self.bind(&mut worker, &work)?;
        let state = self.context.state();
        state.refresh().await?;
        check_gets_work(&state.plugins, &*self.context.live(AGENT, agent_id)?)?;
        // An agent counts as present even if no task waits for it.
        self.seen(agent_id).await;
        let filter = TaskFilter {
            statuses: Some(vec![Status::Pending, Status::AwaitingReply]),
            assignee_type: Some(Some("agent")),
            assignee_id: Some(agent_id.to_owned()),
            ..TaskFilter::default()
        };
        let mut waiting = self.context.select_tasks(&filter, None, TaskLimit::NONE).await?.items;
        waiting.sort_by_key(|task| (std::cmp::Reverse(Task::new(task).priority()), task.first_position));
        for task in waiting.into_iter().take(MAX_TRIED) {
            // The expected version prevents the claim from renewing the claim of another instance of this agent.
            let expected = StreamExpectation::Version(task.version);
            match self.work_on_task(task.id.as_str(), worker.clone(), work.clone(), expected, None).await {
                Err(Error::Conflict { code: ErrorCode::VersionConflict | ErrorCode::TaskStateConflict, .. }) => {}
                other => return other.map(Some),
            }
        }
        Ok(None)
    }
}
