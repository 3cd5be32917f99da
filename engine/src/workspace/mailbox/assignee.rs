//! Checks whether a user may be assigned a task, and whether the escalation of a task names users and agents who exist.
//! Users are not part of the log, so users are checked here, before the append. The append itself checks the agent to
//! whom a task is assigned. The agents of an escalation are checked here.

use crate::error::{Error, Result};
use crate::mailbox::reason_for_no_work;
use crate::model::agent;
use crate::model::facts::Assignee;
use crate::model::task::review::{self, Review};
use crate::model::value::Object;
use crate::model::violation::Violations;
use crate::workspace::call_context::CallContext;

impl CallContext {
    /// Rejects a user who is not a member of the workspace, with the same error as for an unknown user.
    pub(super) async fn check_user(&self, assignee: Option<&Assignee>) -> Result<()> {
        match assignee {
            Some(Assignee::User(id)) if !self.is_member(id).await? => Err(Error::not_found("user", id)),
            _ => Ok(()),
        }
    }

    /// Rejects an escalation to a user who is not a member, or to an agent that is unknown or gets no work. If the
    /// user has left or the agent gets no work when the task escalates, the task goes to the owner of the workspace
    /// instead.
    pub(super) async fn check_escalation(&self, metadata: &Object) -> Result<()> {
        if !review::is_in(metadata) {
            return Ok(());
        }
        let steps = Review::of(Some(&metadata.clone().into())).escalation();
        if steps.iter().any(|step| matches!(step.to, Some(Assignee::Agent(_)))) {
            self.refresh().await?;
        }
        let mut wrong = Violations::default();
        for (index, step) in steps.iter().enumerate() {
            let message = match &step.to {
                Some(Assignee::User(id)) if !self.is_member(id).await? => "the workspace has no member with this id",
                Some(Assignee::Agent(id)) => match self.reason_for_no_work(id) {
                    Some(reason) => reason,
                    None => continue,
                },
                _ => continue,
            };
            wrong.add(format!("/metadata/review/escalate/{index}/to"), message);
        }
        Ok(wrong.finish(())?)
    }

    /// Returns the reason why an agent gets no work, or `None` if the agent gets work.
    fn reason_for_no_work(&self, agent_id: &str) -> Option<&'static str> {
        match self.state().folded.get(agent_id).filter(|found| agent::is_agent(found)) {
            None => Some("the workspace has no agent with this id"),
            Some(found) => reason_for_no_work(&self.state().plugins, &found),
        }
    }
}
