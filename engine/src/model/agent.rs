//! Agents: what is known of one, and whether it is there.

use super::aggregate::Aggregate;
use super::builtin::AGENT;
use super::value::Value;

/// How often an agent says that it is there, in milliseconds.
pub const HEARTBEAT_MS: i64 = 30_000;
/// How long an agent counts as there after it was heard from: three heartbeats.
pub const PRESENT_MS: i64 = 3 * HEARTBEAT_MS;

/// Fields of an agent's state.
pub const STATUS: &str = "status";
pub const PLUGIN: &str = "plugin";
/// The traits whose aggregates are its work.
pub const SUBSCRIBED_TRAITS: &str = "subscribed_traits";
/// What the name is compared by: no two agents of a workspace have the same.
pub const NAME_KEY: &str = "slug";
/// What [`STATUS`] says of an agent that gets work, and of one that gets none.
pub const ENABLED: &str = "active";
pub const DISABLED: &str = "disabled";

/// Whether an agent is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AgentStatus {
    /// It was heard from lately, or works here as a plugin.
    Active,
    Offline,
    /// It gets no work until a person says so.
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

    /// The status of an agent that was heard from last at a time, if ever.
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

/// Whether an aggregate is an agent that is registered.
pub fn is_agent(aggregate: &Aggregate) -> bool {
    &*aggregate.aggregate_type == AGENT && !aggregate.deleted
}

/// Whether the agent gets no work.
pub fn is_disabled(agent: &Aggregate) -> bool {
    agent.state.get(STATUS).and_then(Value::as_str) == Some(DISABLED)
}

/// Whether a plugin does the agent's work.
pub fn is_scripted(agent: &Aggregate) -> bool {
    agent.state.get(PLUGIN).is_some_and(|plugin| !plugin.is_null())
}

/// What a name is compared by: neither case nor space around it makes another name.
pub fn name_key(name: &str) -> String {
    name.trim().to_lowercase()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::model::aggregate::no_facts;
    use crate::model::id::AggregateId;
    use crate::model::value::Object;

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
    fn three_heartbeats_may_pass() {
        let external = agent(&[("name", "one"), (STATUS, ENABLED)]);
        assert_eq!(AgentStatus::of(&external, None, 0), AgentStatus::Offline);
        assert_eq!(AgentStatus::of(&external, Some(5), 5 + 3 * HEARTBEAT_MS), AgentStatus::Active);
        assert_eq!(AgentStatus::of(&external, Some(5), 6 + 3 * HEARTBEAT_MS), AgentStatus::Offline);
        // A clock that was set back makes nobody absent.
        assert_eq!(AgentStatus::of(&external, Some(500_000), 5), AgentStatus::Active);
    }

    #[test]
    fn a_plugin_is_always_there_unless_it_is_disabled() {
        assert_eq!(AgentStatus::of(&agent(&[(PLUGIN, "linker")]), None, 0), AgentStatus::Active);
        let disabled = agent(&[(PLUGIN, "linker"), (STATUS, DISABLED)]);
        assert_eq!(AgentStatus::of(&disabled, Some(0), 0), AgentStatus::Disabled);
    }
}
