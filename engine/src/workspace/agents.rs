//! Agents and the presence of agents. An agent is a managed aggregate. The name of an agent is unique in the workspace.

use std::sync::Arc;

use indexmap::IndexSet;

use super::call_context::{CallContext, Operation, first_event};
use super::responses::IdempotentRequest;
use super::rights::{Reader, Writer};
use super::{Page, PageLimit};
use crate::append::request::Decide;
use crate::append::staging::object_of;
use crate::append::view::View;
use crate::error::{Error, ErrorCode, Result};
use crate::mailbox::offboarding::Departure;
use crate::model::agent::{self, AgentStatus, NAME_KEY, name_key};
use crate::model::aggregate::Aggregate;
use crate::model::builtin::AGENT;
use crate::model::event::StreamExpectation;
use crate::model::facts::Assignee;
use crate::model::fold::DELETED;
use crate::model::id::{NAME_FORM, is_valid_name};
use crate::model::value::{Object, Value};
use crate::model::violation::{Violations, segment};
pub use crate::resident::workload::Workload;

/// The maximum number of traits that an agent can subscribe to.
const MAX_TRAITS: usize = 100;
/// The maximum number of capabilities of an agent.
const MAX_CAPABILITIES: usize = 200;
const MAX_NAME: usize = 200;
const MAX_DESCRIPTION: usize = 10_000;

/// An agent to register.
#[derive(Debug, Clone, Default)]
pub struct NewAgent {
    pub name: String,
    pub change: AgentChange,
    pub request: Option<IdempotentRequest>,
}

/// A change to an agent. Fields that are `None` stay unchanged.
#[derive(Debug, Clone, Default)]
pub struct AgentChange {
    pub name: Option<String>,
    pub description: Option<String>,
    pub subscribed_traits: Option<Vec<String>>,
    /// All capabilities of the agent, which replace the earlier capabilities. Maps each name to whether the agent has
    /// the capability.
    pub capabilities: Option<Object>,
    pub is_disabled: Option<bool>,
    /// The assignee who takes over the tasks of an agent that the change disables. If `None` in such a change, the
    /// tasks become unassigned.
    pub successor: Option<Assignee>,
}

/// An agent and its presence.
pub struct AgentView {
    pub agent: Arc<Aggregate>,
    pub status: AgentStatus,
    pub last_seen_at: Option<i64>,
}

impl AgentChange {
    /// Validates the change.
    fn check(&self) -> Result<()> {
        let mut wrong = Violations::default();
        if let Some(name) = &self.name
            && !(1..=MAX_NAME).contains(&name.trim().chars().count())
        {
            wrong.add("/name", format!("expected 1 to {MAX_NAME} characters, not only white space"));
        }
        if self.description.as_ref().is_some_and(|text| text.chars().count() > MAX_DESCRIPTION) {
            wrong.add("/description", format!("expected at most {MAX_DESCRIPTION} characters"));
        }
        let traits = self.subscribed_traits.as_deref().unwrap_or_default();
        if traits.len() > MAX_TRAITS {
            wrong.add("/subscribed_traits", format!("expected at most {MAX_TRAITS} traits"));
        }
        for (index, name) in traits.iter().enumerate().take(MAX_TRAITS).filter(|(_, name)| !is_valid_name(name)) {
            let message = format!("'{name:.64}' is not a valid trait name: expected {NAME_FORM}");
            wrong.add(format!("/subscribed_traits/{index}"), message);
        }
        if let Some(capabilities) = &self.capabilities {
            if capabilities.len() > MAX_CAPABILITIES {
                wrong.add("/capabilities", format!("expected at most {MAX_CAPABILITIES} capabilities"));
            }
            let not_said = capabilities.iter().filter(|(_, can)| !matches!(can, Value::Bool(_)));
            for (name, _) in not_said.take(MAX_CAPABILITIES) {
                let shown: String = name.chars().take(64).collect();
                wrong.add(format!("/capabilities/{}", segment(&shown)), "expected true or false");
            }
        }
        if self.successor.is_some() && self.is_disabled != Some(true) {
            wrong.add("/reassign_to", "allowed only if the request sets `status` to `disabled`");
        }
        Ok(wrong.finish(())?)
    }

    /// Returns the fields of the state that the change sets.
    fn payload(&self) -> Object {
        let traits = |names: &[String]| {
            let unique: IndexSet<&str> = names.iter().map(String::as_str).collect();
            Value::from(unique.into_iter().map(Value::from).collect::<Vec<_>>())
        };
        let status = |is_disabled: bool| if is_disabled { agent::DISABLED } else { agent::ENABLED };
        object_of([
            ("name", self.name.as_deref().map(|name| name.trim().into())),
            (NAME_KEY, self.name.as_deref().map(|name| name_key(name).into())),
            ("description", self.description.as_deref().map(Value::from)),
            (agent::SUBSCRIBED_TRAITS, self.subscribed_traits.as_deref().map(traits)),
            ("capabilities", self.capabilities.clone().map(Value::from)),
            (agent::STATUS, self.is_disabled.map(|is_disabled| status(is_disabled).into())),
            (agent::SUCCESSOR, self.successor.as_ref().map(|successor| successor.text().into())),
        ])
    }
}

impl Writer {
    /// Registers an agent. Returns the agent and whether an earlier request had already registered the agent.
    pub async fn create_agent(&self, new: NewAgent) -> Result<(AgentView, bool)> {
        let NewAgent { name, mut change, request } = new;
        change.name = Some(name);
        change.description.get_or_insert_default();
        change.subscribed_traits.get_or_insert_default();
        change.capabilities.get_or_insert_default();
        change.is_disabled.get_or_insert(false);
        change.check()?;
        let (id, payload) = (self.context.state().clock.new_id().to_string(), change.payload());
        let given_bytes = payload.size_bytes();
        let most = self.context.limits().await?.agents;
        let decide: Decide = Box::new(move |view: &View<'_>| {
            free_name(view, &payload, &id)?;
            view.check_count(AGENT, most, ErrorCode::AgentLimitReached)?;
            Ok(vec![first_event(&id, AGENT, None, payload.clone())])
        });
        Operation::perform(self, |operation| async move {
            let appended = operation.append(decide, request, given_bytes, None).await?;
            let (agent, repeated) = operation.context().created(&appended)?;
            Ok((operation.context().view(agent).await?, repeated))
        })
        .await
    }

    /// Changes an agent. If a plugin does the agent's work, only the agent's status and successor can be changed. If
    /// the agent is disabled after the change, hands over the agent's open tasks.
    pub async fn change_agent(&self, id: &str, change: AgentChange, expected: StreamExpectation) -> Result<AgentView> {
        change.check()?;
        self.context.check_successor(&Assignee::Agent(id.into()), change.successor.as_ref()).await?;
        let payload = change.payload();
        let agent = Operation::change(self, (AGENT, id), expected, "updated", 0, move |view, agent| {
            let is_own = |name: &str| [agent::STATUS, agent::SUCCESSOR].contains(&name);
            if agent::is_scripted(agent) && payload.keys().any(|name| !is_own(name)) {
                let message = "a plugin does the agent's work; only `status` and `reassign_to` can be changed";
                return Err(Error::conflict(ErrorCode::ScriptedAgent, message));
            }
            free_name(view, &payload, agent.id.as_str())?;
            // A new status removes the successor that was named with an earlier status.
            let mut payload = payload.clone();
            let had_successor = agent.state.get(agent::SUCCESSOR).is_some_and(|successor| !successor.is_null());
            if had_successor && payload.contains(agent::STATUS) && !payload.contains(agent::SUCCESSOR) {
                payload.push(agent::SUCCESSOR, Value::Null);
            }
            // Fields that keep their value are not part of the event.
            let differs = |(name, value): &(&Arc<str>, &Value)| agent.state.get(name) != Some(value);
            let changed: Object =
                payload.iter().filter(differs).map(|(name, value)| (name.clone(), value.clone())).collect();
            Ok((!changed.is_empty()).then_some(changed))
        });
        let view = self.context.view(agent.await?).await?;
        self.hand_over_tasks(&view.agent).await?;
        Ok(view)
    }

    /// Hands over the open tasks of an agent if the agent is disabled or deleted.
    async fn hand_over_tasks(&self, agent: &Aggregate) -> Result<()> {
        let Some(left) = Departure::agent(Some(agent), agent.id.as_str()) else { return Ok(()) };
        Operation::perform(self, |operation| async move { operation.hand_over(&left).await }).await
    }

    /// Deletes an agent. Its history stays. Its open tasks go to the successor, or become unassigned. Fails if an
    /// enabled plugin does the agent's work, because the next start would register the agent again.
    pub async fn delete_agent(&self, id: &str, expected: StreamExpectation, successor: Option<Assignee>) -> Result<()> {
        self.context.check_successor(&Assignee::Agent(id.into()), successor.as_ref()).await?;
        let payload = object_of([(agent::SUCCESSOR, successor.map(|successor| successor.text().into()))]);
        let deleted = Operation::change(self, (AGENT, id), expected, DELETED, 0, move |view, agent| {
            if agent::plugin_of(agent).is_some_and(|plugin| view.plugins().has_agent(plugin)) {
                let message = "an enabled plugin does the agent's work; disable the agent instead of deleting it";
                return Err(Error::conflict(ErrorCode::ScriptedAgent, message));
            }
            Ok(Some(payload.clone()))
        });
        let deleted = deleted.await?;
        self.hand_over_tasks(&deleted).await?;
        let state = self.context.state();
        // The agent is already deleted. The next start retries the removal of the presence.
        if let Err(error) = state.presence.forget(&[deleted.id.text()]).await {
            tracing::debug!(
                %error, workspace = %state.record.id, agent = %deleted.id,
                "failed to remove the presence of a deleted agent"
            );
        }
        Ok(())
    }
}

/// Rejects a name that another agent has.
fn free_name(view: &View<'_>, payload: &Object, own_id: &str) -> Result<()> {
    let Some(key) = payload.get(NAME_KEY).and_then(Value::as_str) else { return Ok(()) };
    if view.by_slug(AGENT, None, key).is_none_or(|other| other.id.as_str() == own_id) {
        return Ok(());
    }
    let message = format!("another agent already has the name '{key}'; names that differ only in case are equal");
    Err(Error::conflict(ErrorCode::NameTaken, message))
}

impl Reader {
    /// Returns the agent with this id.
    pub async fn agent(&self, id: &str) -> Result<AgentView> {
        self.context.refresh().await?;
        self.context.view(self.context.live(AGENT, id)?).await
    }

    /// Returns a page of agents, newest first. With `status`, returns only agents with this status.
    pub async fn list_agents(
        &self,
        status: Option<AgentStatus>,
        before: Option<u64>,
        limit: PageLimit,
    ) -> Result<Page<AgentView>> {
        let state = self.context.state();
        let now = state.clock.now_ms();
        self.context.refresh_presence(now).await?;
        let has_status = |agent: &Aggregate| status.is_none_or(|status| self.context.status_of(agent, now).0 == status);
        let page = self.context.list(Some(AGENT), before, limit, has_status).await?;
        let view = |agent: Arc<Aggregate>| {
            let (status, last_seen_at) = self.context.status_of(&agent, now);
            AgentView { status, agent, last_seen_at }
        };
        Ok(Page { items: page.items.into_iter().map(view).collect(), next: page.next })
    }

    /// Returns a page of agents with their workloads, newest first.
    pub async fn roster(&self, before: Option<u64>, limit: PageLimit) -> Result<Page<(Arc<Aggregate>, Workload)>> {
        let page = self.context.list(Some(AGENT), before, limit, |_| true).await?;
        let state = self.context.state();
        let with_load = |agent: Arc<Aggregate>| {
            let workload = state.folded.workloads.of(agent.id.as_str());
            (agent, workload)
        };
        Ok(Page { items: page.items.into_iter().map(with_load).collect(), next: page.next })
    }
}

impl CallContext {
    async fn view(&self, agent: Arc<Aggregate>) -> Result<AgentView> {
        let now = self.state().clock.now_ms();
        self.refresh_presence(now).await?;
        let (status, last_seen_at) = self.status_of(&agent, now);
        Ok(AgentView { status, agent, last_seen_at })
    }

    /// Returns the status of an agent, and the time at which the agent was last seen.
    fn status_of(&self, agent: &Aggregate, now_ms: i64) -> (AgentStatus, Option<i64>) {
        let state = self.state();
        let last_seen_at = state.presence.last_seen_at(agent.id.as_str());
        let is_enabled = |plugin: &str| state.plugins.has_agent(plugin);
        (AgentStatus::of(agent, is_enabled, last_seen_at, now_ms), last_seen_at)
    }
}
