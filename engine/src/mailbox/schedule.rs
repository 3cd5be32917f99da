//! The schedule of the timers: the deadlines of tasks, ordered by time.

use std::collections::{BTreeSet, HashMap};

use strum::VariantArray;

use super::deadline::{DeadlineKind, DueTime};
use crate::model::id::AggregateId;

/// The deadlines of tasks, ordered by time.
#[derive(Default)]
pub struct Schedule {
    /// The deadlines by task and kind, each with the time of its next check, in milliseconds since the epoch. This time
    /// may be later than the deadline in the task's state.
    by_task: HashMap<Key, (i64, DueTime)>,
    by_time: BTreeSet<(i64, Key)>,
}

/// The id of a task, and the kind of a deadline.
pub type Key = (AggregateId, DeadlineKind);

impl Schedule {
    pub fn set(&mut self, key: Key, due: Option<(i64, DueTime)>) {
        if let Some((at, _)) = self.by_task.remove(&key) {
            self.by_time.remove(&(at, key.clone()));
        }
        if let Some((at, due)) = due {
            self.by_time.insert((at, key.clone()));
            self.by_task.insert(key, (at, due));
        }
    }

    /// Returns the deadline that is scheduled for a task and a kind.
    pub fn get(&self, key: &Key) -> Option<DueTime> {
        self.by_task.get(key).map(|(_, due)| *due)
    }

    pub fn remove(&mut self, id: &AggregateId) {
        DeadlineKind::VARIANTS.iter().for_each(|kind| self.set((id.clone(), *kind), None));
    }

    pub fn next(&self) -> Option<i64> {
        self.by_time.first().map(|(at, _)| *at)
    }

    /// Removes and returns up to `most` deadlines that are due for a check.
    pub fn take_due(&mut self, now_ms: i64, most: usize) -> Vec<(AggregateId, DueTime)> {
        let mut due = Vec::new();
        while due.len() < most && self.next().is_some_and(|at| at <= now_ms) {
            let Some((_, key)) = self.by_time.pop_first() else { break };
            due.extend(self.by_task.remove(&key).map(|(_, what)| (key.0, what)));
        }
        due
    }
}
