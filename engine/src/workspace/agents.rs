//! Agents: managed aggregates whose names are unique in the workspace, and whether each is there.

use std::sync::Arc;

use super::Page;
use super::answers::RequestId;
use super::entered::{Entered, Operation, first_event};
use super::rights::{Reader, Writer};
use crate::core::append::Decide;
use crate::core::staging::{View, object_of};
use crate::error::{Error, Result};
use crate::model::agent::{self, AgentStatus, NAME_KEY, name_key};
use crate::model::aggregate::Aggregate;
use crate::model::builtin::AGENT;
use crate::model::event::{Expected, NewEvent};
use crate::model::id::is_valid_name;
use crate::model::value::{Object, Value};
use crate::model::violation::Violation;
pub use crate::resident::workload::Workload;

/// Traits that an agent may be subscribed to, and capabilities that it may have.
const MAX_TRAITS: usize = 100;
const MAX_CAPABILITIES: usize = 200;
const MAX_NAME: usize = 200;
const MAX_DESCRIPTION: usize = 10_000;

/// An agent that is to be registered.
#[derive(Debug, Clone, Default)]
pub struct NewAgent {
    pub name: String,
    pub change: AgentChange,
    pub request: Option<RequestId>,
}

/// What is to be said of an agent; what is `None` stays.
#[derive(Debug, Clone, Default)]
pub struct AgentChange {
    pub name: Option<String>,
    pub description: Option<String>,
    pub subscribed_traits: Option<Vec<String>>,
    /// A name each, and whether the agent can do it.
    pub capabilities: Option<Object>,
    pub is_disabled: Option<bool>,
}

/// An agent, and whether it is there.
pub struct AgentView {
    pub agent: Arc<Aggregate>,
    pub status: AgentStatus,
    pub last_seen_at: Option<i64>,
}

impl AgentChange {
    /// Whether this may be said of an agent.
    fn check(&self) -> Result<()> {
        let mut wrong: Vec<Violation> = Vec::new();
        let mut refuse = |pointer: String, message: String| wrong.push(Violation { pointer, message });
        if let Some(name) = &self.name
            && !(1..=MAX_NAME).contains(&name.trim().chars().count())
        {
            refuse("/name".into(), format!("expected 1 to {MAX_NAME} characters"));
        }
        if self.description.as_ref().is_some_and(|text| text.chars().count() > MAX_DESCRIPTION) {
            refuse("/description".into(), format!("expected at most {MAX_DESCRIPTION} characters"));
        }
        let traits = self.subscribed_traits.as_deref().unwrap_or_default();
        if traits.len() > MAX_TRAITS {
            refuse("/subscribed_traits".into(), format!("expected at most {MAX_TRAITS} traits"));
        }
        for (index, name) in traits.iter().enumerate().take(MAX_TRAITS).filter(|(_, name)| !is_valid_name(name)) {
            let shown: String = name.chars().take(64).collect();
            refuse(format!("/subscribed_traits/{index}"), format!("'{shown}' is no name of a trait"));
        }
        if let Some(capabilities) = &self.capabilities {
            if capabilities.len() > MAX_CAPABILITIES {
                refuse("/capabilities".into(), format!("expected at most {MAX_CAPABILITIES} capabilities"));
            }
            let not_said = capabilities.iter().filter(|(_, can)| !matches!(can, Value::Bool(_)));
            for (name, _) in not_said.take(MAX_CAPABILITIES) {
                let shown: String = name.chars().take(64).collect();
                refuse(format!("/capabilities/{shown}"), "expected true or false".into());
            }
        }
        if wrong.is_empty() { Ok(()) } else { Err(Error::from(wrong)) }
    }

    /// The fields of the state that this sets.
    fn payload(&self) -> Object {
        let traits = |names: &[String]| {
            let mut unique: Vec<&String> = Vec::new();
            names.iter().for_each(|name| {
                if !unique.contains(&name) {
                    unique.push(name)
                }
            });
            Value::from(unique.into_iter().map(|name| Value::from(name.as_str())).collect::<Vec<_>>())
        };
        let status = |is_disabled: bool| if is_disabled { agent::DISABLED } else { agent::ENABLED };
        object_of([
            ("name", self.name.as_deref().map(|name| name.trim().into())),
            (NAME_KEY, self.name.as_deref().map(|name| name_key(name).into())),
            ("description", self.description.as_deref().map(Value::from)),
            (agent::SUBSCRIBED_TRAITS, self.subscribed_traits.as_deref().map(traits)),
            ("capabilities", self.capabilities.clone().map(Value::from)),
            (agent::STATUS, self.is_disabled.map(|is_disabled| status(is_disabled).into())),
        ])
    }
}

impl Writer {
    /// Registers an agent. Returns too whether an earlier request did.
    pub async fn create_agent(&self, new: NewAgent) -> Result<(AgentView, bool)> {
        let NewAgent { name, mut change, request } = new;
        change.name = Some(name);
        change.description.get_or_insert_default();
        change.subscribed_traits.get_or_insert_default();
        change.capabilities.get_or_insert_default();
        change.is_disabled.get_or_insert(false);
        change.check()?;
        let (id, payload) = (self.entered.state().clock.new_id().to_string(), change.payload());
        let given_bytes = payload.size_bytes();
        let most = self.entered.limits().await?.agents;
        let decide: Decide = Box::new(move |view: &View<'_>| {
            free_name(view, &payload, &id)?;
            if let Some(most) = most
                && view.count(AGENT) >= most
            {
                let message = format!("the plan has room for {most} agents");
                return Err(Error::over_limit("agent_limit_reached", message));
            }
            Ok(vec![first_event(&id, AGENT, None, payload.clone())])
        });
        Operation::perform(self, |operation| async move {
            let appended = operation.append(decide, request, given_bytes).await?;
            let (agent, repeated) = operation.entered().made(&appended)?;
            Ok((operation.entered().view(agent).await?, repeated))
        })
        .await
    }

    /// Changes what is said of an agent. Of one whose work a plugin does only whether it is disabled can be changed.
    pub async fn change_agent(&self, id: &str, change: AgentChange, expected: Expected) -> Result<AgentView> {
        change.check()?;
        let payload = change.payload();
        self.append_to_agent(id, expected, "updated", move |view, agent| {
            if agent::is_scripted(agent) && payload.keys().any(|name| **name != *agent::STATUS) {
                let message = "a plugin does the agent's work and says what it is; only its status can be changed";
                return Err(Error::conflict("scripted_agent", message));
            }
            free_name(view, &payload, agent.id.as_str())?;
            // What is as it was is no change.
            let differs = |(name, value): &(&Arc<str>, &Value)| agent.state.get(name) != Some(value);
            let changed: Object =
                payload.iter().filter(differs).map(|(name, value)| (name.clone(), value.clone())).collect();
            Ok((!changed.is_empty()).then_some(changed))
        })
        .await
    }

    /// Takes an agent out of the workspace. Its history stays.
    pub async fn delete_agent(&self, id: &str, expected: Expected) -> Result<()> {
        let deleted = self.append_to_agent(id, expected, "deleted", |_, agent| match agent::is_scripted(agent) {
            true => Err(Error::conflict("scripted_agent", "a plugin does the agent's work: disable it instead")),
            false => Ok(Some(Object::new())),
        });
        let view = deleted.await?;
        let state = self.entered.state();
        // The agent is gone already; at the next start it is tried again.
        if let Err(error) = state.presence.forget(&[view.agent.id.text()]).await {
            tracing::debug!(%error, "what is kept of an agent that is gone was not removed");
        }
        Ok(())
    }

    /// Appends one event to an agent that is registered, unless there is nothing to say.
    async fn append_to_agent(
        &self,
        id: &str,
        expected: Expected,
        verb: &'static str,
        payload: impl Fn(&View<'_>, &Aggregate) -> Result<Option<Object>> + Send + Sync + 'static,
    ) -> Result<AgentView> {
        let id = id.to_owned();
        let aggregate_id = id.clone();
        let decide: Decide = Box::new(move |view: &View<'_>| {
            let found = view.aggregate(&id).filter(|found| agent::is_agent(found));
            let agent = found.ok_or_else(|| Error::not_found("agent", &id))?;
            if !expected.allows(agent.version) {
                return Err(Error::version_conflict(agent.version));
            }
            let event = |payload| NewEvent {
                aggregate_id: id.clone(),
                aggregate_type: AGENT.into(),
                event_type: format!("{AGENT}.{verb}"),
                payload,
                ..NewEvent::default()
            };
            Ok(payload(view, &agent)?.into_iter().map(event).collect())
        });
        Operation::perform(self, |operation| async move {
            operation.append(decide, None, 0).await?;
            let found = operation.state().folded.get(&aggregate_id);
            let agent = found.ok_or_else(|| Error::not_found("agent", &aggregate_id))?;
            operation.entered().view(agent).await
        })
        .await
    }
}

/// Refuses a name that another agent has.
fn free_name(view: &View<'_>, payload: &Object, own_id: &str) -> Result<()> {
    let Some(key) = payload.get(NAME_KEY).and_then(Value::as_str) else { return Ok(()) };
    match view.by_slug(AGENT, None, key) {
        Some(other) if other.id.as_str() != own_id => {
            Err(Error::conflict("name_taken", format!("an agent has the name '{key}' already")))
        }
        _ => Ok(()),
    }
}

impl Reader {
    /// One agent.
    pub async fn agent(&self, id: &str) -> Result<AgentView> {
        let state = self.entered.state();
        state.refresh().await?;
        let found = state.folded.get(id).filter(|found| agent::is_agent(found));
        self.entered.view(found.ok_or_else(|| Error::not_found("agent", id))?).await
    }

    /// Agents, of one status or all, newest first.
    pub async fn list_agents(
        &self,
        status: Option<AgentStatus>,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Page<AgentView>> {
        let state = self.entered.state();
        let now = state.clock.now_ms();
        state.presence.refresh(now).await?;
        let view = |agent: Arc<Aggregate>| {
            let last_seen_at = state.presence.last_seen_at(agent.id.as_str());
            AgentView { status: AgentStatus::of(&agent, last_seen_at, now), agent, last_seen_at }
        };
        let wanted = |agent: &Aggregate| {
            let last_seen_at = || state.presence.last_seen_at(agent.id.as_str());
            status.is_none_or(|status| AgentStatus::of(agent, last_seen_at(), now) == status)
        };
        let page = self.entered.agents(before, limit, wanted).await?;
        Ok(Page { items: page.items.into_iter().map(view).collect(), next: page.next })
    }

    /// Every agent and what it has to do, newest first.
    pub async fn roster(&self) -> Result<Vec<(Arc<Aggregate>, Workload)>> {
        let agents = self.entered.agents(None, usize::MAX, |_| true).await?.items;
        let state = self.entered.state();
        let with_load = |agent: Arc<Aggregate>| {
            let workload = state.folded.workload(agent.id.as_str());
            (agent, workload)
        };
        Ok(agents.into_iter().map(with_load).collect())
    }
}

impl Entered {
    /// A page of agents, newest first, without a look at whatever else there is.
    pub(super) async fn agents(
        &self,
        before: Option<u64>,
        limit: usize,
        admits: impl Fn(&Aggregate) -> bool,
    ) -> Result<Page<Arc<Aggregate>>> {
        let state = self.state();
        state.refresh().await?;
        let ids = state.folded.agents_before(before.unwrap_or(u64::MAX)).into_iter();
        let agents = ids.filter_map(|id| state.folded.get(id.as_str()));
        let mut found = agents.filter(|agent| agent::is_agent(agent) && admits(agent));
        let items: Vec<_> = found.by_ref().take(limit).collect();
        let next = found.next().and(items.last()).map(|last| last.first_position);
        Ok(Page { items, next })
    }

    async fn view(&self, agent: Arc<Aggregate>) -> Result<AgentView> {
        let state = self.state();
        let now = state.clock.now_ms();
        state.presence.refresh(now).await?;
        let last_seen_at = state.presence.last_seen_at(agent.id.as_str());
        Ok(AgentView { status: AgentStatus::of(&agent, last_seen_at, now), agent, last_seen_at })
    }
}
