//! Agents: the fields of their state, and their status.

use std::sync::Arc;

use strum::{EnumString, IntoStaticStr, VariantArray};

use super::aggregate::Aggregate;
use super::builtin::AGENT;
use super::value::{Object, Value};

/// The interval between an agent's heartbeats, in milliseconds.
pub const HEARTBEAT_MS: i64 = 30_000;
/// The time for which an agent counts as present after a heartbeat, in milliseconds.
pub const PRESENT_MS: i64 = 3 * HEARTBEAT_MS;

/// The name of the field with the agent's status, [`ENABLED`] or [`DISABLED`].
pub const STATUS: &str = "status";
/// The name of the field with the plugin that does the agent's work.
pub const PLUGIN: &str = "plugin";
/// The name of the field with the traits whose aggregates the agent works on.
pub const SUBSCRIBED_TRAITS: &str = "subscribed_traits";
/// The name of the field with the agent's normalized name, which is unique among the agents of a workspace.
pub const NAME_KEY: &str = "slug";
/// The name of the field with the successor, who takes over the tasks of a disabled or deleted agent: `agent:ID` or
/// `user:ID`.
pub const SUCCESSOR: &str = "reassign_to";
/// The status of an enabled agent, which gets work.
pub const ENABLED: &str = "active";
/// The status of a disabled agent, which gets no work.
pub const DISABLED: &str = "disabled";

/// The status of an agent. Shows whether the agent is present and gets work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EnumString, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "lowercase")]
pub enum AgentStatus {
    /// The agent has sent a heartbeat recently, or a plugin does the agent's work.
    Active,
    Offline,
    /// The agent gets no work until a person enables it again.
    Disabled,
}

impl AgentStatus {
    pub fn name(self) -> &'static str {
        self.into()
    }

    pub fn parse(name: &str) -> Option<AgentStatus> {
        name.parse().ok()
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

/// The fields of an agent that are set by its registration and by later changes.
#[derive(Debug, Clone)]
pub struct AgentProfile {
    pub name: Arc<str>,
    pub description: Arc<str>,
    pub subscribed_traits: Vec<Arc<str>>,
    /// The agent's capabilities. Maps the name of each capability to a flag that is `true` if the agent has the
    /// capability.
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
    use super::*;

    fn agent(state: &[(&str, &str)]) -> Aggregate {
        Aggregate::sample(AGENT, "a", state.iter().map(|(name, value)| (*name, Value::from(*value))).collect())
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
