//! Claims of the next task of an agent: the most urgent of its open tasks, and of these the oldest.

use super::tasks::TaskFilter;
use super::work::{Worked, check_claim};
use crate::error::{Error, Result};
use crate::mailbox::agent::{Work, Worker};
use crate::model::agent;
use crate::model::event::Expected;
use crate::model::task::{Status, Task};
use crate::workspace::rights::AgentWriter;

/// The maximum number of tasks that one request tries to claim. A task is tried in vain if somebody else changes it at
/// the same time.
const MAX_TRIED: usize = 256;

impl AgentWriter {
    /// Claims the next task that is assigned to an agent and waits for it. Returns `None` if there is none.
    pub async fn claim_next(&self, agent_id: &str, seconds: i64, instance: Option<String>) -> Result<Option<Worked>> {
        check_claim(seconds, instance.as_deref())?;
        let (mut worker, work) = (Worker::new(Some(agent_id.to_owned()), None), Work::Claim { seconds, instance });
        self.bind(&mut worker, &work)?;
        let state = self.context.state();
        state.refresh().await?;
        if !state.folded.get(agent_id).is_some_and(|found| agent::is_agent(&found)) {
            return Err(Error::not_found("agent", agent_id));
        }
        let filter = TaskFilter {
            statuses: Some(vec![Status::Pending, Status::AwaitingReply]),
            assignee_type: Some(Some("agent")),
            assignee_id: Some(agent_id.to_owned()),
            ..TaskFilter::default()
        };
        let mut waiting = self.context.select_tasks(&filter, None, usize::MAX).await?.items;
        waiting.sort_by_key(|task| (std::cmp::Reverse(Task::new(task).priority()), task.first_position));
        for task in waiting.into_iter().take(MAX_TRIED) {
            // The version excludes that the claim renews one of another worker of this agent.
            let expected = Expected::Version(task.version);
            match self.work_on_task(task.id.as_str(), worker.clone(), work.clone(), expected, None).await {
                Err(Error::Conflict { code: "version_conflict" | "task_state_conflict", .. }) => {}
                other => return other.map(Some),
            }
        }
        Ok(None)
    }
}
