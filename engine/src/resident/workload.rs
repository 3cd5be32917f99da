//! The workload of each agent: current counts of the agent's open tasks, and the tasks that the agent holds.

use std::collections::BTreeSet;
use std::sync::Arc;

use parking_lot::Mutex;
use rustc_hash::{FxHashMap, FxHashSet};

use super::ResidentStates;
use crate::model::aggregate::Aggregate;
use crate::model::builtin::TASK;
use crate::model::id::AggregateId;
use crate::model::task::{Status, Task};

/// The counts of the open tasks of one agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Workload {
    pub pending: u64,
    pub in_progress: u64,
    pub review: u64,
    /// The number of unread tasks, in any open status.
    pub unread: u64,
    /// The creation time of the oldest pending task, in milliseconds since the epoch.
    pub oldest_pending_at: Option<i64>,
}

/// The workloads of all agents.
#[derive(Default)]
pub struct Workloads {
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    tasks: FxHashMap<AggregateId, OpenTask>,
    agents: FxHashMap<Arc<str>, WorkloadEntry>,
    /// The agent that holds each claimed task.
    holders: FxHashMap<AggregateId, Arc<str>>,
    /// The tasks that each agent holds. A heartbeat reads only this map.
    held: FxHashMap<Arc<str>, BTreeSet<AggregateId>>,
}

/// The fields of an agent's open task that the counts depend on.
#[derive(Clone, PartialEq, Eq)]
struct OpenTask {
    agent: Arc<str>,
    status: Status,
    is_unread: bool,
    created_at: i64,
}

#[derive(Default)]
struct WorkloadEntry {
    workload: Workload,
    tasks: usize,
    pending: BTreeSet<(i64, AggregateId)>,
}

impl Workloads {
    /// Returns the ids of the aggregates that are tasks.
    pub fn observed_among(aggregates: &[Arc<Aggregate>]) -> Vec<AggregateId> {
        let observed = aggregates.iter().filter(|aggregate| &*aggregate.aggregate_type == TASK);
        observed.map(|aggregate| aggregate.id.clone()).collect()
    }

    /// Updates the workloads from the current states of tasks.
    pub fn observe(&self, resident: &ResidentStates, observed: &[AggregateId]) {
        if observed.is_empty() {
            return;
        }
        let mut inner = self.inner.lock();
        for id in observed {
            // The state is read under the lock, so that a later call never applies an earlier state.
            let task = resident.get(id.as_str());
            inner.set(id, task.as_deref().and_then(open_task));
            inner.hold(id, task.as_deref().and_then(holder));
        }
    }

    /// Returns the tasks that the given agents hold.
    pub fn held_by(&self, agents: &[Arc<str>]) -> Vec<AggregateId> {
        let inner = self.inner.lock();
        let mut seen = FxHashSet::default();
        let agents = agents.iter().filter(|agent| seen.insert(Arc::clone(agent)));
        agents.filter_map(|agent| inner.held.get(agent)).flatten().cloned().collect()
    }

    /// Returns the workload of an agent.
    pub fn of(&self, agent: &str) -> Workload {
        let inner = self.inner.lock();
        let Some(counted) = inner.agents.get(agent) else { return Workload::default() };
        let oldest_pending_at = counted.pending.first().map(|(created_at, _)| *created_at);
        Workload { oldest_pending_at, ..counted.workload }
    }
}

impl Inner {
    fn hold(&mut self, id: &AggregateId, holder: Option<Arc<str>>) {
        let before = match &holder {
            Some(holder) => self.holders.insert(id.clone(), holder.clone()),
            None => self.holders.remove(id),
        };
        if before == holder {
            return;
        }
        if let Some(before) = before
            && self.held.get_mut(&before).is_some_and(|tasks| tasks.remove(id) && tasks.is_empty())
        {
            self.held.remove(&before);
        }
        if let Some(holder) = holder {
            self.held.entry(holder).or_default().insert(id.clone());
        }
    }

    fn set(&mut self, id: &AggregateId, task: Option<OpenTask>) {
        let before = match &task {
            Some(task) => self.tasks.insert(id.clone(), task.clone()),
            None => self.tasks.remove(id),
        };
        if before == task {
            return;
        }
        if let Some(before) = before
            && let Some(counted) = self.agents.get_mut(&before.agent)
        {
            counted.remove(id, &before);
            if counted.tasks == 0 {
                self.agents.remove(&before.agent);
            }
        }
        if let Some(task) = task {
            self.agents.entry(task.agent.clone()).or_default().add(id, &task);
        }
    }
}

impl WorkloadEntry {
    fn add(&mut self, id: &AggregateId, task: &OpenTask) {
        self.tasks += 1;
        self.workload.unread += u64::from(task.is_unread);
        if let Some(count) = self.count(task.status) {
            *count += 1;
        }
        if task.status == Status::Pending {
            self.pending.insert((task.created_at, id.clone()));
        }
    }

    fn remove(&mut self, id: &AggregateId, task: &OpenTask) {
        self.tasks -= 1;
        self.workload.unread -= u64::from(task.is_unread);
        if let Some(count) = self.count(task.status) {
            *count -= 1;
        }
        if task.status == Status::Pending {
            self.pending.remove(&(task.created_at, id.clone()));
        }
    }

    fn count(&mut self, status: Status) -> Option<&mut u64> {
        match status {
            Status::Pending => Some(&mut self.workload.pending),
            Status::InProgress => Some(&mut self.workload.in_progress),
            Status::Review => Some(&mut self.workload.review),
            _ => None,
        }
    }
}

/// Returns the fields of a task that the counts depend on, or `None` if the task is deleted, has ended or is not
/// assigned to an agent.
fn open_task(task: &Aggregate) -> Option<OpenTask> {
    let read = Task::new(task);
    let agent = read.assigned_agent().filter(|_| !task.deleted && read.status().is_open())?;
    let (status, is_unread) = (read.status(), read.is_unread());
    Some(OpenTask { agent: agent.into(), status, is_unread, created_at: task.created_at })
}

/// Returns the agent that holds a task, if there is one.
fn holder(task: &Aggregate) -> Option<Arc<str>> {
    Task::new(task).lease().filter(|_| !task.deleted).map(|lease| lease.agent_id.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::value::{Object, Value};

    fn task(id: &str, version: u64, agent: &str, status: &str) -> Arc<Aggregate> {
        let state = Object::from_iter([
            ("status", Value::from(status)),
            ("assignee_type", "agent".into()),
            ("assignee_id", agent.into()),
            ("unread", Value::Bool(status == "pending")),
        ]);
        Arc::new(Aggregate {
            version,
            position: version,
            first_position: id.len() as u64,
            created_at: id.len() as i64,
            ..Aggregate::sample(TASK, id, state)
        })
    }

    #[test]
    fn the_tasks_that_an_agent_holds_follow_the_states_of_the_tasks() {
        let (resident, workloads) = (ResidentStates::default(), Workloads::default());
        let claimed = |id: &str, version: u64, agent: &str| {
            let waiting = task(id, version, agent, "in_progress");
            let mut state = Object::clone(&waiting.state);
            state.push("claimed_by", agent);
            state.push("claim", 1_i64);
            state.push("lease_until", Value::Date(1));
            Arc::new(Aggregate { state: Arc::new(state), ..Aggregate::clone(&waiting) })
        };
        let observe = |tasks: Vec<Arc<Aggregate>>| {
            let ids = Workloads::observed_among(&tasks);
            resident.publish(tasks, 1);
            workloads.observe(&resident, &ids);
        };
        let held = |agents: &[&str]| -> Vec<String> {
            let agents: Vec<Arc<str>> = agents.iter().map(|agent| Arc::from(*agent)).collect();
            workloads.held_by(&agents).iter().map(ToString::to_string).collect()
        };
        observe((0..1_000).map(|number| task(&format!("t{number}"), 1, "a", "pending")).collect());
        assert!(held(&["a"]).is_empty());
        observe(vec![claimed("t1", 2, "a"), claimed("t2", 2, "a"), claimed("t3", 2, "b")]);
        assert_eq!(held(&["a", "a", "nobody"]), ["t1", "t2"]);
        observe(vec![task("t1", 3, "a", "pending"), claimed("t2", 3, "b")]);
        assert_eq!((held(&["a"]), held(&["b"])), (Vec::new(), vec!["t2".to_owned(), "t3".to_owned()]));
        observe(vec![task("t2", 4, "b", "approved"), task("t3", 3, "b", "failed")]);
        let inner = workloads.inner.lock();
        assert!(inner.holders.is_empty() && inner.held.is_empty());
    }

    #[test]
    fn tasks_are_counted_per_agent() {
        let (resident, workloads) = (ResidentStates::default(), Workloads::default());
        let observe = |tasks: &[Arc<Aggregate>]| {
            resident.publish(tasks.iter().cloned(), 1);
            workloads.observe(&resident, &Workloads::observed_among(tasks));
        };
        observe(&[task("t", 1, "a", "pending"), task("tt", 1, "a", "pending"), task("ttt", 1, "b", "review")]);
        let both = Workload { pending: 2, unread: 2, oldest_pending_at: Some(1), ..Workload::default() };
        assert_eq!(workloads.of("a"), both);
        assert_eq!(workloads.of("b"), Workload { review: 1, ..Workload::default() });
        observe(&[task("t", 2, "a", "in_progress")]);
        let one = Workload { pending: 1, unread: 1, in_progress: 1, oldest_pending_at: Some(2), ..Workload::default() };
        assert_eq!(workloads.of("a"), one);
        // Observing a state with fewer events than the resident state changes nothing.
        observe(&[task("t", 1, "a", "pending")]);
        assert_eq!(workloads.of("a"), one);
        observe(&[task("t", 3, "b", "awaiting_reply"), task("tt", 2, "a", "approved")]);
        assert_eq!(workloads.of("a"), Workload::default());
        assert_eq!(workloads.of("b"), Workload { review: 1, ..Workload::default() });
        observe(&[task("t", 4, "b", "canceled"), task("ttt", 2, "b", "failed")]);
        let inner = workloads.inner.lock();
        assert!(inner.tasks.is_empty() && inner.agents.is_empty());
    }
}
