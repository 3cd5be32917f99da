//! The actions that people take on single tasks.

use std::sync::Arc;

use super::approval::{effects, with_difference};
use crate::append::request::Decide;
use crate::error::{Error, ErrorCode, Result};
use crate::mailbox::person::{self, DecisionInputs, TaskCommand};
use crate::mailbox::{effect, find, limits};
use crate::model::aggregate::Aggregate;
use crate::model::event::StreamExpectation;
use crate::model::facts::Assignee;
use crate::model::task::Task;
use crate::model::task::content::Stamp;
use crate::model::task::view::EffectView;
use crate::offload::on_blocking_thread;
use crate::workspace::call_context::Operation;
use crate::workspace::rights::Writer;

/// The maximum number of retries of an edit, a question or an answer. An attempt is retried if it fails because the
/// output of the task or the agent's question changed at the same time.
const MAX_ATTEMPTS: usize = 8;

/// The result of a person's action.
pub struct ActedTask {
    pub task: Arc<Aggregate>,
    /// The events that an approval has appended besides the event of the task, with the states after these events.
    pub appended: Vec<EffectView>,
}

impl Writer {
    /// Performs an action on a task. Returns the changed task and the events that an approval has appended.
    pub async fn act_on_task(&self, id: &str, command: TaskCommand, expected: StreamExpectation) -> Result<ActedTask> {
        if let TaskCommand::Assign { assignee, .. } = &command {
            self.context.check_user(assignee.as_ref()).await?;
        }
        let (id, command, stamp) = (id.to_owned(), Arc::new(command), self.context.stamp());
        Operation::perform(self, |operation| async move {
            for _ in 0..MAX_ATTEMPTS {
                match operation.try_act(&id, &command, expected, &stamp).await {
                    Err(Error::Conflict { code: ErrorCode::ArtifactsChanged | ErrorCode::QuestionChanged, .. }) => {}
                    other => return other,
                }
            }
            operation.try_act(&id, &command, expected, &stamp).await
        })
        .await
    }
}

impl Operation {
    async fn try_act(
        &self,
        id: &str,
        command: &Arc<TaskCommand>,
        expected: StreamExpectation,
        stamp: &Stamp,
    ) -> Result<ActedTask> {
        let state = self.state();
        let prepared = self.prepare(id, command, expected, stamp).await?;
        let appends = matches!(**command, TaskCommand::Approve { .. } | TaskCommand::Edit { .. });
        let approved = state.folded.get(id).filter(|_| appends);
        let effect_bytes = approved.map_or(0, |task| limits::approval_bytes(&Task::new(&task)));
        let given_bytes = command.size_bytes() + effect_bytes;
        let (task_id, decided, stamp) = (id.to_owned(), command.clone(), stamp.clone());
        let decide: Decide =
            Box::new(move |view| person::decide(view, &task_id, expected, &decided, &prepared, &stamp));
        let done = match self.append_decided(decide, None, given_bytes).await.map_err(effect::explain) {
            Ok(done) => done,
            Err(error) => return Err(with_difference(state, error).await),
        };
        let assignee = match &**command {
            TaskCommand::Assign { assignee, .. } => assignee.clone(),
            TaskCommand::Retry { .. } => state.folded.get(id).and_then(|task| Task::new(&task).assignee()),
            _ => None,
        };
        let handed_over = self.settle_assignee(assignee.as_ref()).await?;
        let task = if handed_over { state.folded.get(id) } else { self.state_after(&done, id) };
        Ok(ActedTask { task: find(task, id)?, appended: effects(state, &done) })
    }

    /// Prepares some inputs of a decision: the inputs that are not in the log, and the inputs that take too long to
    /// compute during the decision.
    async fn prepare(
        &self,
        id: &str,
        command: &TaskCommand,
        expected: StreamExpectation,
        stamp: &Stamp,
    ) -> Result<DecisionInputs> {
        let state = self.state();
        let mut prepared = DecisionInputs::default();
        match command {
            TaskCommand::Edit { edit, .. } => {
                state.refresh().await?;
                let (task, edit, stamp) = (find(state.folded.get(id), id)?, edit.clone(), stamp.clone());
                prepared.edited =
                    Some(on_blocking_thread(move || person::edited(&task, expected, &edit, &stamp)).await?);
            }
            TaskCommand::Ask { message } | TaskCommand::Answer { message } => {
                state.refresh().await?;
                let (task, message) = (find(state.folded.get(id), id)?, message.clone());
                prepared.question = on_blocking_thread(move || person::answered(&task, &message)).await?;
            }
            TaskCommand::Retry { .. } => {
                state.refresh().await?;
                let assignee = Task::new(&*find(state.folded.get(id), id)?).assignee();
                if let Some(Assignee::User(user)) = &assignee
                    && !self.context().is_member(user).await?
                {
                    prepared.left = assignee;
                }
            }
            _ => {}
        }
        Ok(prepared)
    }
}
