//! The agents and their open tasks, as the follower of the log sees them: what a `route` hook chooses among.

use std::sync::Arc;

use indexmap::IndexMap;
use rustc_hash::FxHashMap;

use crate::model::agent::is_disabled;
use crate::model::aggregate::Aggregate;
use crate::model::builtin::{AGENT, TASK};
use crate::model::id::AggregateId;
use crate::model::task::Task;
use crate::model::value::{Object, Value};

#[derive(Default)]
pub struct Roster {
    agents: IndexMap<AggregateId, Arc<Aggregate>>,
    /// Open tasks and the agent that each waits for.
    tasks: FxHashMap<AggregateId, Arc<str>>,
    open: FxHashMap<Arc<str>, i64>,
    /// The agents as hooks are given them; made when it is asked for.
    shown: Option<Arc<[Value]>>,
}

impl Roster {
    /// Takes in an aggregate as it is now; most are neither agents nor tasks.
    pub fn observe(&mut self, aggregate: &Arc<Aggregate>) {
        match &*aggregate.aggregate_type {
            AGENT if aggregate.deleted => drop(self.agents.shift_remove(&aggregate.id)),
            AGENT => drop(self.agents.insert(aggregate.id.clone(), aggregate.clone())),
            TASK => self.observe_task(aggregate),
            _ => return,
        }
        self.shown = None;
    }

    fn observe_task(&mut self, task: &Aggregate) {
        let is_open = !task.deleted && Task::new(task).status().is_open();
        let agent = Task::new(task).assigned_agent().filter(|_| is_open).map(Arc::from);
        let before = match &agent {
            Some(agent) => self.tasks.insert(task.id.clone(), Arc::clone(agent)),
            None => self.tasks.remove(&task.id),
        };
        for (agent, change) in [(before, -1), (agent, 1)] {
            if let Some(agent) = agent {
                *self.open.entry(agent).or_default() += change;
            }
        }
    }

    /// An agent that gets work.
    pub fn agent(&self, id: &str) -> Option<&Arc<Aggregate>> {
        self.agents.get(id).filter(|agent| !is_disabled(agent))
    }

    /// All agents that get work, `{id, name, traits, capabilities, status, open_tasks}` each.
    pub fn shown(&mut self) -> Arc<[Value]> {
        let (agents, open) = (&self.agents, &self.open);
        self.shown
            .get_or_insert_with(|| {
                agents.values().filter(|agent| !is_disabled(agent)).map(|agent| show(agent, open)).collect()
            })
            .clone()
    }
}

fn show(agent: &Aggregate, open: &FxHashMap<Arc<str>, i64>) -> Value {
    let field = |name: &str| agent.state.get(name).cloned();
    Object::from_iter([
        ("id", Value::from(agent.id.text())),
        ("name", field("name").unwrap_or_default()),
        ("traits", field("subscribed_traits").unwrap_or_else(|| Vec::new().into())),
        ("capabilities", field("capabilities").unwrap_or_else(|| Object::new().into())),
        ("status", field("status").unwrap_or_else(|| "active".into())),
        ("open_tasks", Value::Int(open.get(agent.id.as_str()).copied().unwrap_or(0))),
    ])
    .into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::aggregate::no_facts;

    fn aggregate(kind: &str, id: &str, state: &[(&str, &str)]) -> Arc<Aggregate> {
        Arc::new(Aggregate {
            id: AggregateId::from(Arc::from(id)),
            aggregate_type: kind.into(),
            project_id: None,
            version: 1,
            position: 1,
            first_position: 1,
            created_at: 0,
            last_event_at: 0,
            deleted: false,
            state: Arc::new(state.iter().map(|(name, value)| (*name, Value::from(*value))).collect()),
            facts: no_facts(),
        })
    }

    #[test]
    fn an_agent_that_is_disabled_or_gone_gets_no_work() {
        let mut roster = Roster::default();
        roster.observe(&aggregate(AGENT, "a", &[("name", "one"), ("status", "active")]));
        assert_eq!((roster.shown().len(), roster.agent("a").is_some()), (1, true));
        roster.observe(&aggregate(AGENT, "a", &[("name", "one"), ("status", "disabled")]));
        assert_eq!((roster.shown().len(), roster.agent("a").is_some()), (0, false));
        roster.observe(&aggregate(AGENT, "a", &[("name", "one"), ("status", "active")]));
        assert_eq!((roster.shown().len(), roster.agent("a").is_some()), (1, true));
        let gone = Aggregate { deleted: true, ..Aggregate::clone(&aggregate(AGENT, "a", &[("name", "one")])) };
        roster.observe(&Arc::new(gone));
        assert_eq!((roster.shown().len(), roster.agent("a").is_some()), (0, false));
    }

    #[test]
    fn a_task_is_open_for_whoever_it_waits_for() {
        let mut roster = Roster::default();
        roster.observe(&aggregate(AGENT, "a", &[("name", "one")]));
        roster.observe(&aggregate(AGENT, "b", &[("name", "two")]));
        let task = |agent: &str, status: &str| {
            aggregate(TASK, "t", &[("assignee_type", "agent"), ("assignee_id", agent), ("status", status)])
        };
        let open = |roster: &mut Roster| -> Vec<i64> {
            let tasks = |agent: &Value| agent.as_object()?.get("open_tasks")?.as_int();
            roster.shown().iter().filter_map(tasks).collect()
        };
        roster.observe(&task("a", "pending"));
        assert_eq!(open(&mut roster), [1, 0]);
        roster.observe(&task("a", "review"));
        assert_eq!(open(&mut roster), [1, 0]);
        roster.observe(&task("b", "pending"));
        assert_eq!(open(&mut roster), [0, 1]);
        roster.observe(&task("b", "approved"));
        assert_eq!(open(&mut roster), [0, 0]);
    }
}
