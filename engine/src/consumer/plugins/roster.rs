//! The roster: the agents and their open tasks at the position of the log's follower. `route` hooks choose among these
//! agents.

use std::sync::Arc;

use indexmap::IndexMap;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::hook::Candidates;
use crate::model::agent::{SUBSCRIBED_TRAITS, gets_work};
use crate::model::aggregate::Aggregate;
use crate::model::builtin::{AGENT, TASK};
use crate::model::id::AggregateId;
use crate::model::task::Task;
use crate::model::value::{Object, Value};

#[derive(Default)]
pub struct Roster {
    agents: IndexMap<AggregateId, Arc<Aggregate>>,
    /// The id of the agent to which each open task is assigned, by the id of the task.
    tasks: FxHashMap<AggregateId, Arc<str>>,
    open: FxHashMap<Arc<str>, i64>,
    /// The enabled plugins that have an agent. An agent whose plugin is not in this set gets no work.
    plugins: FxHashSet<Arc<str>>,
    /// The lists of agents that hooks receive, built on demand. There is one list of all agents that get work, and one
    /// list for each set of traits that a type has.
    lists: FxHashMap<(Candidates, Vec<Arc<str>>), List>,
}

/// A list of candidates for `route` hooks: all agents that get work, or those that subscribe to a trait of a type.
struct List {
    /// The indices of the agents in the roster's list of all agents.
    agents: Vec<usize>,
    shown: Option<Arc<[Value]>>,
}

impl Roster {
    /// Creates an empty roster. `plugins` are the enabled plugins that have an agent.
    pub fn new(plugins: FxHashSet<Arc<str>>) -> Roster {
        Roster { plugins, ..Roster::default() }
    }

    /// Replaces the enabled plugins that have an agent.
    pub fn set_plugins(&mut self, plugins: FxHashSet<Arc<str>>) {
        self.plugins = plugins;
        self.lists.clear();
    }

    /// Updates the roster from the current state of an aggregate. Aggregates that are neither agents nor tasks change
    /// nothing.
    pub fn observe(&mut self, aggregate: &Arc<Aggregate>) {
        match &*aggregate.aggregate_type {
            AGENT => {
                match aggregate.deleted {
                    true => self.agents.shift_remove(&aggregate.id),
                    false => self.agents.insert(aggregate.id.clone(), aggregate.clone()),
                };
                self.lists.clear();
            }
            TASK => {
                self.observe_task(aggregate);
                self.lists.values_mut().for_each(|list| list.shown = None);
            }
            _ => {}
        }
    }

    fn observe_task(&mut self, task: &Aggregate) {
        let is_open = !task.deleted && Task::new(task).status().is_open();
        let agent = Task::new(task).assigned_agent().filter(|_| is_open).map(Arc::from);
        let before = match &agent {
            Some(agent) => self.tasks.insert(task.id.clone(), Arc::clone(agent)),
            None => self.tasks.remove(&task.id),
        };
        for (agent, change) in [(before, -1), (agent, 1)] {
            let Some(agent) = agent else { continue };
            let open = self.open.entry(agent.clone()).or_default();
            *open += change;
            if *open == 0 {
                self.open.remove(&agent);
            }
        }
    }

    /// Returns the agent with this id, if the agent is registered and gets work.
    pub fn agent(&self, id: &str) -> Option<&Arc<Aggregate>> {
        self.agents.get(id).filter(|agent| gets_work(agent, |plugin| self.plugins.contains(plugin)))
    }

    /// Returns the agents that get work and are candidates for a type with these traits, each as `{id, name, traits,
    /// capabilities, status, open_tasks}`.
    pub fn shown(&mut self, candidates: Candidates, traits: &[Arc<str>]) -> Arc<[Value]> {
        let (agents, open, plugins) = (&self.agents, &self.open, &self.plugins);
        let key = match candidates {
            Candidates::All => Vec::new(),
            Candidates::Subscribed => traits.to_vec(),
        };
        let list = self.lists.entry((candidates, key)).or_insert_with(|| {
            let admitted = |agent: &Aggregate| {
                gets_work(agent, |plugin| plugins.contains(plugin))
                    && candidates.admit(agent.state.get(SUBSCRIBED_TRAITS), traits)
            };
            let admitted = agents.values().enumerate().filter(|(_, agent)| admitted(agent));
            List { agents: admitted.map(|(place, _)| place).collect(), shown: None }
        });
        let shown = || list.agents.iter().filter_map(|place| Some(show(agents.get_index(*place)?.1, open))).collect();
        list.shown.get_or_insert_with(shown).clone()
    }
}

fn show(agent: &Aggregate, open: &FxHashMap<Arc<str>, i64>) -> Value {
    let field = |name: &str| agent.state.get(name).cloned();
    Object::from_iter([
        ("id", Value::from(agent.id.text())),
        ("name", field("name").unwrap_or_default()),
        ("traits", field(SUBSCRIBED_TRAITS).unwrap_or_else(|| Vec::new().into())),
        ("capabilities", field("capabilities").unwrap_or_else(|| Object::new().into())),
        ("status", field("status").unwrap_or_else(|| "active".into())),
        ("open_tasks", Value::Int(open.get(agent.id.as_str()).copied().unwrap_or(0))),
    ])
    .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn aggregate(kind: &str, id: &str, state: &[(&str, &str)]) -> Arc<Aggregate> {
        let state = state.iter().map(|(name, value)| (*name, Value::from(*value))).collect();
        Arc::new(Aggregate::sample(kind, id, state))
    }

    #[test]
    fn disabled_and_deleted_agents_get_no_work() {
        let mut roster = Roster::default();
        roster.observe(&aggregate(AGENT, "a", &[("name", "one"), ("status", "active")]));
        assert_eq!((roster.shown(Candidates::All, &[]).len(), roster.agent("a").is_some()), (1, true));
        roster.observe(&aggregate(AGENT, "a", &[("name", "one"), ("status", "disabled")]));
        assert_eq!((roster.shown(Candidates::All, &[]).len(), roster.agent("a").is_some()), (0, false));
        roster.observe(&aggregate(AGENT, "a", &[("name", "one"), ("status", "active")]));
        assert_eq!((roster.shown(Candidates::All, &[]).len(), roster.agent("a").is_some()), (1, true));
        let gone = Aggregate { deleted: true, ..Aggregate::clone(&aggregate(AGENT, "a", &[("name", "one")])) };
        roster.observe(&Arc::new(gone));
        assert_eq!((roster.shown(Candidates::All, &[]).len(), roster.agent("a").is_some()), (0, false));
    }

    #[test]
    fn an_agent_gets_no_work_while_its_plugin_is_not_enabled() {
        let mut roster = Roster::new(FxHashSet::from_iter(["linker".into()]));
        roster.observe(&aggregate(AGENT, "a", &[("name", "one"), ("plugin", "linker")]));
        roster.observe(&aggregate(AGENT, "b", &[("name", "two")]));
        assert_eq!((roster.shown(Candidates::All, &[]).len(), roster.agent("a").is_some()), (2, true));
        roster.set_plugins(FxHashSet::default());
        assert_eq!((roster.shown(Candidates::All, &[]).len(), roster.agent("a").is_some()), (1, false));
        assert!(roster.agent("b").is_some(), "the agent without a plugin gets no work");
    }

    #[test]
    fn a_task_counts_as_open_for_its_assigned_agent_until_the_task_is_approved() {
        let mut roster = Roster::default();
        roster.observe(&aggregate(AGENT, "a", &[("name", "one")]));
        roster.observe(&aggregate(AGENT, "b", &[("name", "two")]));
        let task = |agent: &str, status: &str| {
            aggregate(TASK, "t", &[("assignee_type", "agent"), ("assignee_id", agent), ("status", status)])
        };
        let open = |roster: &mut Roster| -> Vec<i64> {
            let tasks = |agent: &Value| agent.as_object()?.get("open_tasks")?.as_int();
            roster.shown(Candidates::All, &[]).iter().filter_map(tasks).collect()
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

    #[test]
    fn candidates_keep_registration_order_and_can_be_limited_to_subscribed_agents() {
        let agent = |id: &str, traits: &[&str]| {
            let subscribed: Vec<Value> = traits.iter().copied().map(Value::from).collect();
            let state = Object::from_iter([(SUBSCRIBED_TRAITS, Value::from(subscribed))]);
            Arc::new(Aggregate { state: Arc::new(state), ..Aggregate::clone(&aggregate(AGENT, id, &[])) })
        };
        let mut roster = Roster::default();
        for (id, traits) in [("c", &["billable"][..]), ("a", &["publishable", "billable"]), ("b", &[])] {
            roster.observe(&agent(id, traits));
        }
        let shown = |roster: &mut Roster, candidates, traits: &[&str]| -> Vec<String> {
            let traits: Vec<Arc<str>> = traits.iter().map(|name| Arc::from(*name)).collect();
            let id = |agent: &Value| agent.as_object()?.get("id")?.as_str().map(str::to_owned);
            roster.shown(candidates, &traits).iter().filter_map(id).collect()
        };
        assert_eq!(shown(&mut roster, Candidates::All, &["billable"]), ["c", "a", "b"]);
        assert_eq!(shown(&mut roster, Candidates::Subscribed, &["billable"]), ["c", "a"]);
        assert_eq!(shown(&mut roster, Candidates::Subscribed, &["content-bearing", "publishable"]), ["a"]);
        assert!(shown(&mut roster, Candidates::Subscribed, &[]).is_empty());
        roster.observe(&agent("b", &["billable"]));
        let gone = Aggregate { deleted: true, ..Aggregate::clone(&agent("c", &["billable"])) };
        roster.observe(&Arc::new(gone));
        assert_eq!(shown(&mut roster, Candidates::Subscribed, &["billable"]), ["a", "b"]);
    }
}
