//! Counts the open tasks of a workspace by status, and finds the tasks that have waited longest for a person and for an
//! agent.

use strum::VariantArray;

use super::selection::{PATHS, TaskFilter, visit};
use crate::model::aggregate::Aggregate;
use crate::model::task::view::WaitingOn;
use crate::model::task::{Status, Task};
use crate::state::folded_states::FoldedStates;

/// The numbers of open tasks of a workspace, and the longest waits.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Backlog {
    /// The number of open tasks by status, in the order of [`Backlog::statuses`].
    counts: [u64; 6],
    /// The start of the longest wait of an open task for a person, in milliseconds since the epoch. A wait starts at
    /// the last change of the task.
    pub oldest_for_human: Option<i64>,
    /// The start of the longest wait for an agent, in milliseconds since the epoch. A wait starts at the last change of
    /// the task.
    pub oldest_for_agent: Option<i64>,
}

impl Backlog {
    /// Reads the open tasks from the resident states. Takes processor time in proportion to the number of
    /// aggregates.
    pub fn read(folded: &FoldedStates) -> Backlog {
        let paths: Vec<_> = PATHS.iter().collect();
        // Uses the columns only if they are already built. Otherwise, reads the states.
        let snapshot = folded.snapshot_with(if folded.has_columns(&paths) { &paths } else { &[] });
        let open = TaskFilter { statuses: Some(Backlog::statuses().collect()), ..TaskFilter::default() };
        let mut backlog = Backlog::default();
        visit(&snapshot, &open, |task| backlog.add(task));
        backlog
    }

    /// Returns the statuses of open tasks.
    pub fn statuses() -> impl Iterator<Item = Status> {
        Status::VARIANTS.iter().copied().filter(|status| status.is_open())
    }

    /// Returns the number of open tasks by status.
    pub fn counts(&self) -> impl Iterator<Item = (Status, u64)> {
        Backlog::statuses().zip(self.counts)
    }

    fn add(&mut self, aggregate: &Aggregate) {
        let task = Task::new(aggregate);
        let status = task.status();
        if let Some(index) = Backlog::statuses().position(|open| open == status) {
            self.counts[index] += 1;
        }
        let oldest = match WaitingOn::of(&task) {
            WaitingOn::Human => &mut self.oldest_for_human,
            WaitingOn::Agent => &mut self.oldest_for_agent,
            WaitingOn::None => return,
        };
        let changed_at = aggregate.last_event_at;
        *oldest = Some(oldest.map_or(changed_at, |oldest| oldest.min(changed_at)));
    }
}
