//! Agents: the fields of their state, and their status.

use std::sync::Arc;

use strum::{EnumString, IntoStaticStr, VariantArray};

use super::aggregate::Aggregate;
use super::builtin::AGENT;
use super::closed_set::closed_set;
use super::value::{Object, Value};

/// The interval between an agent's heartbeats, in milliseconds.
pub const HEARTBEAT_MS: i64 = 30_000;
/// The time for which an agent counts as present after a heartbeat, a connection or an action on a task, in
/// milliseconds.
pub const PRESENT_MS: i64 = 3 * HEARTBEAT_MS;

/// The name of the field with the agent's status, [`ENABLED`] or [`DISABLED`].
pub const STATUS: &str = "status";
/// The name of the field with the plugin that does the agent's work.
pub const PLUGIN: &str = "plugin";
/// The name of the field with the traits whose aggregates the agent works on.
pub const SUBSCRIBED_TRAITS: &str = "subscribed_traits";
/// The name of the field with the agent's normalized name, which is unique among the agents of a workspace.
pub const NAME_KEY: &str = "slug";
/// The name of the field with the successor that takes over the tasks of a disabled or deleted agent: `agent:ID` or
/// `user:ID`.
pub const SUCCESSOR: &str = "reassign_to";
/// The status of an enabled agent. The agent gets work, unless its plugin is not enabled.
pub const ENABLED: &str = "active";
/// The status of a disabled agent, which gets no work.
pub const DISABLED: &str = "disabled";

closed_set!(AgentStatus);

/// The status of an agent. Shows whether the agent is present and gets work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EnumString, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "lowercase")]
pub enum AgentStatus {
    /// The agent was seen in the last [`PRESENT_MS`] milliseconds, or an enabled plugin does the agent's work.
    Active,
    /// The agent was not seen in the last [`PRESENT_MS`] milliseconds, or the plugin that does the agent's work is not
    /// enabled.
    Offline,
    /// The agent gets no work until a person enables the agent again.
    Disabled,
}

impl AgentStatus {
    /// Returns the status of an agent. `is_enabled` returns whether the plugin that does the agent's work is enabled.
    /// `last_seen_at` is the time of the agent's last heartbeat, connection or action on a task, in milliseconds since
    /// the epoch. `None` if there was none.
    pub fn of(
        agent: &Aggregate,
        is_enabled: impl FnOnce(&str) -> bool,
        last_seen_at: Option<i64>,
        now_ms: i64,
    ) -> AgentStatus {
        let is_present = match plugin_of(agent) {
            Some(plugin) => is_enabled(plugin),
            None => last_seen_at.is_some_and(|at| now_ms.saturating_sub(at) <= PRESENT_MS),
        };
        match is_present {
            _ if is_disabled(agent) => AgentStatus::Disabled,
            true => AgentStatus::Active,
            false => AgentStatus::Offline,
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
    /// The plugin that does the agent's work. `None` if a program outside the server does the work.
    pub plugin: Option<Arc<str>>,
}

impl From<&Aggregate> for AgentProfile {
    fn from(agent: &Aggregate) -> AgentProfile {
        let traits = agent.state.get(SUBSCRIBED_TRAITS).and_then(Value::as_array).unwrap_or_default();
        AgentProfile {
            name: agent.text("name").unwrap_or_default(),
            description: agent.text("description").unwrap_or_default(),
            subscribed_traits: traits.iter().filter_map(|name| name.as_str().map(Arc::from)).collect(),
            capabilities: agent.state.get("capabilities").and_then(Value::shared_object).unwrap_or_default(),
            plugin: agent.text(PLUGIN),
        }
    }
}

/// Returns whether an aggregate is a registered agent.
pub fn is_agent(aggregate: &Aggregate) -> bool {
    &*aggregate.aggregate_type == AGENT && !aggregate.deleted
}

/// Returns whether the agent gets work: the agent is not disabled, and if a plugin does the agent's work, `is_enabled`
/// returns `true` for this plugin.
pub fn gets_work(agent: &Aggregate, is_enabled: impl FnOnce(&str) -> bool) -> bool {
    !is_disabled(agent) && plugin_of(agent).is_none_or(is_enabled)
}

/// Returns whether the agent is disabled and gets no work.
pub fn is_disabled(agent: &Aggregate) -> bool {
    agent.state.get(STATUS).and_then(Value::as_str) == Some(DISABLED)
}

/// Returns whether a plugin does the agent's work.
pub fn is_scripted(agent: &Aggregate) -> bool {
    plugin_of(agent).is_some()
}

/// Returns the name of the plugin that does the agent's work. Returns `None` if a program does the work.
pub fn plugin_of(agent: &Aggregate) -> Option<&str> {
    agent.state.get(PLUGIN).and_then(Value::as_str)
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
        let status = |last_seen_at, now_ms| AgentStatus::of(&external, |_| false, last_seen_at, now_ms);
        assert_eq!(status(None, 0), AgentStatus::Offline);
        assert_eq!(status(Some(5), 5 + 3 * HEARTBEAT_MS), AgentStatus::Active);
        assert_eq!(status(Some(5), 6 + 3 * HEARTBEAT_MS), AgentStatus::Offline);
        // An agent stays present when the clock is set back.
        assert_eq!(status(Some(500_000), 5), AgentStatus::Active);
    }

    #[test]
    fn an_agent_of_a_plugin_gets_work_only_if_the_agent_and_the_plugin_are_enabled() {
        let (linker, disabled) = (agent(&[(PLUGIN, "linker")]), agent(&[(PLUGIN, "linker"), (STATUS, DISABLED)]));
        let is_enabled = |plugin: &str| plugin == "linker";
        let status = |agent: &Aggregate| AgentStatus::of(agent, is_enabled, Some(0), 0);
        assert_eq!((status(&linker), gets_work(&linker, is_enabled)), (AgentStatus::Active, true));
        assert_eq!((status(&disabled), gets_work(&disabled, is_enabled)), (AgentStatus::Disabled, false));
        let removed = agent(&[(PLUGIN, "removed")]);
        assert_eq!((status(&removed), gets_work(&removed, is_enabled)), (AgentStatus::Offline, false));
        assert!(gets_work(&agent(&[("name", "one")]), is_enabled), "a program does the work");
    }
}
