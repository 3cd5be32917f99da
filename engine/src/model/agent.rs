//! Agents: the fields of their state, and their status.

use std::sync::Arc;

use super::aggregate::Aggregate;
use super::builtin::AGENT;
use super::value::{Object, Value};

/// Interval between an agent's heartbeats, in milliseconds.
pub const HEARTBEAT_MS: i64 = 30_000;
/// The time for which an agent counts as present after a heartbeat, in milliseconds.
pub const PRESENT_MS: i64 = 3 * HEARTBEAT_MS;

/// Names of fields in an agent's state.
pub const STATUS: &str = "status";
pub const PLUGIN: &str = "plugin";
/// The name of the field with the traits whose aggregates the agent works on.
pub const SUBSCRIBED_TRAITS: &str = "subscribed_traits";
/// The name of the field with the agent's normalized name, which is unique among the agents of a workspace.
pub const NAME_KEY: &str = "slug";
/// Values of [`STATUS`]: an enabled agent gets work, and a disabled agent gets none.
pub const ENABLED: &str = "active";
pub const DISABLED: &str = "disabled";

/// Whether an agent is present and gets work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AgentStatus {
    /// The agent has sent a heartbeat recently, or a plugin does the agent's work.
    Active,
    Offline,
    /// The agent gets no work until a person enables it again.
    Disabled,
}

impl AgentStatus {
    pub const ALL: [AgentStatus; 3] = [AgentStatus::Active, AgentStatus::Offline, AgentStatus::Disabled];

    pub fn name(self) -> &'static str {
        match self {
            AgentStatus::Active => ENABLED,
            AgentStatus::Offline => "offline",
            AgentStatus::Disabled => DISABLED,
        }
    }

    pub fn parse(name: &str) -> Option<AgentStatus> {
        AgentStatus::ALL.into_iter().find(|status| status.name() == name)
    }

    /// Returns the status of an agent. `last_seen_at` is the time of the last heartbeat, if there was one.
    pub fn of(agent: &Aggregate, last_seen_at: Option<i64>, now_ms: i64) -> AgentStatus {
        if is_disabled(agent) {
            AgentStatus::Disabled
        } else if is_scripted(agent) || last_seen_at.is_some_and(|at| now_ms.saturating_sub(at) <= PRESENT_MS) {
            AgentStatus::Active
        } else {
            AgentStatus::Offline
        }
    }
}

/// The fields of an agent that its registration and its changes set.
#[derive(Debug, Clone)]
pub struct AgentProfile {
    pub name: Arc<str>,
    pub description: Arc<str>,
    pub subscribed_traits: Vec<Arc<str>>,
    /// Maps the name of each capability to whether the agent has it.
    pub capabilities: Arc<Object>,
    /// The plugin that does the agent's work. `None` if a program does the work.
    pub plugin: Option<Arc<str>>,
}

impl From<&Aggregate> for AgentProfile {
    fn from(agent: &Aggregate) -> AgentProfile {
        let traits = agent.state.get(SUBSCRIBED_TRAITS).and_then(Value::as_array).unwrap_or_default();
        AgentProfile {
            name: agent.text("name").unwrap_or_default(),
            description: agent.text("description").unwrap_or_default(),
            subscribed_traits: traits.iter().filter_map(|name| name.as_str().map(Arc::from)).collect(),
            capabilities: match agent.state.get("capabilities") {
                Some(Value::Object(capabilities)) => capabilities.clone(),
                _ => Arc::default(),
            },
            plugin: agent.text(PLUGIN),
        }
    }
}

/// Returns whether an aggregate is a registered agent.
pub fn is_agent(aggregate: &Aggregate) -> bool {
    &*aggregate.aggregate_type == AGENT && !aggregate.deleted
}

/// Returns whether the agent is disabled and gets no work.
pub fn is_disabled(agent: &Aggregate) -> bool {
    agent.state.get(STATUS).and_then(Value::as_str) == Some(DISABLED)
}

/// Returns whether a plugin does the agent's work.
pub fn is_scripted(agent: &Aggregate) -> bool {
    agent.state.get(PLUGIN).is_some_and(|plugin| !plugin.is_null())
}

/// Returns the normalized form of a name. Two names that differ only in case or surrounding white space have the same
/// normalized form.
pub fn name_key(name: &str) -> String {
    name.trim().to_lowercase()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::model::aggregate::no_facts;
    use crate::model::id::AggregateId;

    fn agent(state: &[(&str, &str)]) -> Aggregate {
        Aggregate {
            id: AggregateId::from(Arc::from("a")),
            aggregate_type: AGENT.into(),
            project_id: None,
            version: 1,
            position: 1,
            first_position: 1,
            created_at: 0,
            last_event_at: 0,
            deleted: false,
            state: Arc::new(state.iter().map(|(name, value)| (*name, Value::from(*value))).collect::<Object>()),
            facts: no_facts(),
        }
    }

    #[test]
    fn an_agent_stays_active_for_three_missed_heartbeats() {
        let external = agent(&[("name", "one"), (STATUS, ENABLED)]);
        assert_eq!(AgentStatus::of(&external, None, 0), AgentStatus::Offline);
        assert_eq!(AgentStatus::of(&external, Some(5), 5 + 3 * HEARTBEAT_MS), AgentStatus::Active);
        assert_eq!(AgentStatus::of(&external, Some(5), 6 + 3 * HEARTBEAT_MS), AgentStatus::Offline);
        // An agent stays present when the clock is set back.
        assert_eq!(AgentStatus::of(&external, Some(500_000), 5), AgentStatus::Active);
    }

    #[test]
    fn a_plugin_agent_is_active_unless_disabled() {
        assert_eq!(AgentStatus::of(&agent(&[(PLUGIN, "linker")]), None, 0), AgentStatus::Active);
        let disabled = agent(&[(PLUGIN, "linker"), (STATUS, DISABLED)]);
        assert_eq!(AgentStatus::of(&disabled, Some(0), 0), AgentStatus::Disabled);
    }
}
