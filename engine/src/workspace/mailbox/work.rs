//! Performs the actions of agents on tasks.

use std::sync::Arc;

use crate::append::request::Decide;
use crate::error::{Error, ErrorCode, Result};
use crate::mailbox::agent::{self, AgentAction, Claimant};
use crate::mailbox::find;
use crate::mailbox::leases::{HeldClaims, LeaseRenewal};
use crate::model::access;
use crate::model::agent::is_agent;
use crate::model::aggregate::Aggregate;
use crate::model::depth::{self, MAX_CONTENT_DEPTH};
use crate::model::event::{Event, StreamExpectation};
use crate::model::task::{MAX_LEASE_S, Task, question};
use crate::model::violation::{Violation, Violations};
use crate::offload::on_blocking_thread;
use crate::store::workspace::leases::LeaseRow;
use crate::workspace::call_context::Operation;
use crate::workspace::responses::IdempotentRequest;
use crate::workspace::rights::{AgentWriter, Writer};

/// The maximum length of the name of an agent's instance, in bytes.
const MAX_INSTANCE: usize = 200;
/// The time that must pass before an action marks the same agent as present again, in milliseconds. The marks are
/// limited because each mark may write to the store.
const SEEN_AGAIN_MS: i64 = 5_000;

/// The result of an agent's action.
pub struct ActionOutcome {
    pub task: Arc<Aggregate>,
    /// The appended event. `None` if a claim was renewed, which appends no event.
    pub event: Option<Arc<Event>>,
    /// The lease on the task. `None` if no agent holds the task.
    pub lease: Option<HeldLease>,
    /// Whether this is the result of an earlier request with the same idempotency key.
    pub repeated: bool,
}

/// A lease on a task.
pub struct HeldLease {
    pub agent_id: String,
    /// The number of the claim.
    pub claim: u64,
    /// The time at which the lease expires, in milliseconds since the epoch.
    pub until: i64,
}

impl HeldLease {
    fn of(task: &Aggregate) -> Option<HeldLease> {
        let lease = Task::new(task).lease()?;
        Some(HeldLease { agent_id: lease.agent_id.to_owned(), claim: lease.claim, until: lease.until })
    }
}

impl ActionOutcome {
    /// Takes the lease from the result of a claim. Fails if the lease has ended.
    pub fn claimed(&mut self) -> Result<HeldLease> {
        self.lease.take().ok_or_else(lease_ended)
    }
}

impl AgentWriter {
    /// Performs an agent's action on a task and returns the changed task. Then marks the agent as present, unless the
    /// action is `Cancel`, or neither the request nor the key names the agent.
    pub async fn work_on_task(
        &self,
        id: &str,
        mut worker: Claimant,
        work: AgentAction,
        expected: StreamExpectation,
        request: Option<IdempotentRequest>,
    ) -> Result<ActionOutcome> {
        self.bind(&mut worker, &work)?;
        let renewed_s = match &work {
            AgentAction::Claim { seconds, instance } => {
                check_claim(*seconds, instance.as_deref())?;
                *seconds
            }
            _ => 0,
        };
        if let AgentAction::RequestInput { schema: Some(schema), .. } = &work {
            let mut wrong = Violations::default();
            depth::check(schema, MAX_CONTENT_DEPTH, "/schema", &mut wrong);
            wrong.finish(())?;
            let schema = schema.clone();
            let below = |wrong: Violation| Violation { pointer: format!("/schema{}", wrong.pointer), ..wrong };
            on_blocking_thread(move || question::check_schema(&schema).map_err(|wrong| vec![below(wrong)].into()))
                .await?;
        }
        let (id, given_bytes, stamp) = (id.to_owned(), work.size_bytes(), self.context.stamp());
        worker.is_owner = self.caller().role() == access::Role::Owner;
        let until = stamp.at_ms.saturating_add(renewed_s.saturating_mul(1_000));
        let task_id = id.clone();
        let present = worker.agent_id.clone().filter(|_| !matches!(work, AgentAction::Cancel { .. }));
        let decide: Decide = Box::new(move |view| agent::decide(view, &task_id, expected, &worker, &work, &stamp));
        let worked = Operation::perform(self, move |operation| async move {
            let appended = operation.append_decided(decide, request, given_bytes).await?;
            let task = find(operation.state_after(&appended, &id), &id)?;
            let event = appended.events.first().cloned();
            let lease = match &event {
                None => Some(operation.renew_claim(&task, until).await?),
                Some(_) => HeldLease::of(&task),
            };
            Ok(ActionOutcome { task, event, lease, repeated: appended.is_repeat() })
        })
        .await?;
        if let Some(agent) = present {
            self.seen(&agent).await;
        }
        Ok(worked)
    }

    /// Marks an agent as present, because the agent has sent a request. Does nothing if the agent was marked less than
    /// [`SEEN_AGAIN_MS`] ago, or if the agent is unknown or deleted.
    pub(super) async fn seen(&self, agent_id: &str) {
        let state = self.context.state();
        let Some(agent) = state.folded.get(agent_id).filter(|found| is_agent(found)) else { return };
        let (id, now) = (agent.id.text(), state.clock.now_ms());
        if state.presence.last_seen_at(&id).is_some_and(|seen| now.saturating_sub(seen) < SEEN_AGAIN_MS) {
            return;
        }
        state.presence.seen([&id], now);
        // A failed write does not undo the agent's action. The next action or heartbeat writes the presence again.
        if let Err(error) = state.presence.settle().await {
            let workspace = &state.record.id;
            tracing::warn!(%error, %workspace, agent = %id, "failed to write the presence of an agent");
        }
    }

    /// Checks an action of a caller whose key is bound to agents. If the key is not bound to agents, does nothing.
    /// Rejects the action `Cancel`, and actions for agents to which the key is not bound. If the request names no agent
    /// and the key is bound to one agent, sets this agent in `worker`. If the request names no agent and the key is
    /// bound to several agents, rejects the request.
    pub(super) fn bind(&self, worker: &mut Claimant, work: &AgentAction) -> Result<()> {
        let Some(agents) = self.caller().agents() else { return Ok(()) };
        if matches!(work, AgentAction::Cancel { .. }) {
            return Err(Error::forbidden(ErrorCode::AgentKey, "a key that is bound to agents cannot cancel a task"));
        }
        match (&worker.agent_id, &**agents) {
            (None, [only]) => worker.agent_id = Some(only.to_string()),
            (None, _) => {
                return Err(Error::invalid_at("/agent_id", "expected one of the agents that the key is bound to"));
            }
            (Some(id), agents) if agents.iter().all(|agent| **agent != *id.as_str()) => {
                let message = format!("the key is not bound to the agent '{id:.64}'");
                return Err(Error::forbidden(ErrorCode::OtherAgent, message));
            }
            _ => {}
        }
        Ok(())
    }
}

impl Writer {
    /// Returns the handle for actions of agents on tasks, for the same caller.
    pub fn as_agent_writer(&self) -> AgentWriter {
        AgentWriter { context: self.context.clone() }
    }

    /// Renews all leases that the agents hold, regardless of the worker that made the claim.
    pub async fn renew_leases(&self, agent_ids: Vec<Arc<str>>) -> Result<Vec<LeaseRenewal>> {
        Operation::perform(self, |operation| async move {
            let state = operation.state();
            state.refresh().await?;
            let renewals = operation.context().renewals();
            renewals.renew(state, &agent_ids, &HeldClaims::All, state.clock.now_ms()).await
        })
        .await
    }
}

/// Checks the duration of a lease in seconds, and the name of the agent's instance.
pub(super) fn check_claim(seconds: i64, instance: Option<&str>) -> Result<()> {
    check_instance(instance)?;
    if !(1..=MAX_LEASE_S).contains(&seconds) {
        return Err(Error::invalid_at("/lease_seconds", format!("expected 1 to {MAX_LEASE_S} seconds")));
    }
    Ok(())
}

/// Checks the name of an agent's instance.
pub(in crate::workspace) fn check_instance(instance: Option<&str>) -> Result<()> {
    match instance.is_some_and(|instance| !(1..=MAX_INSTANCE).contains(&instance.len())) {
        true => Err(Error::invalid_at("/instance", format!("expected 1 to {MAX_INSTANCE} bytes"))),
        false => Ok(()),
    }
}

fn lease_ended() -> Error {
    Error::conflict(ErrorCode::NotLeaseHolder, "the lease has expired, or the claim has already ended")
}

impl Operation {
    /// Extends the lease of the claim on a task. Fails if the lease has ended.
    async fn renew_claim(&self, task: &Aggregate, until: i64) -> Result<HeldLease> {
        let lease = HeldLease::of(task).ok_or_else(lease_ended)?;
        let row = LeaseRow { task_id: task.id.text(), claim: lease.claim, until, expired: false };
        let renewed = self.context().renewals().renew_rows(&[row]).await?;
        let until = renewed.into_iter().flatten().next().ok_or_else(lease_ended)?;
        Ok(HeldLease { until, ..lease })
    }
}
