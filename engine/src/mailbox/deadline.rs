//! What happens to a task when its time has come, unless something else happened before.

use super::agent::again_or_failed;
use super::decision::event;
use crate::core::staging::View;
use crate::model::event::NewEvent;
use crate::model::task::record::field;
use crate::model::task::transition::{self, Circumstances};
use crate::model::task::{Act, Deadline, Task, TaskEvent};
use crate::model::value::Object;

/// What a task waits for, and until when.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Due {
    /// The lease of this claim ends.
    Lease { claim: u64, until: i64 },
    /// It wakes.
    Deferral { until: i64 },
}

impl Due {
    /// What a task waits for, if it does.
    pub fn of(task: &Task<'_>) -> Option<Due> {
        let lease = task.lease().map(|lease| Due::Lease { claim: lease.claim, until: lease.until });
        lease.or(task.wakes_at().map(|until| Due::Deferral { until }))
    }

    pub fn until(&self) -> i64 {
        match self {
            Due::Lease { until, .. } | Due::Deferral { until } => *until,
        }
    }

    fn act(&self) -> Act {
        Act::Time(match self {
            Due::Lease { .. } => Deadline::Expire,
            Due::Deferral { .. } => Deadline::Wake,
        })
    }
}

/// The event of a time that has come; none where the task waits for something else by now.
pub fn decide(view: &View<'_>, id: &str, due: Due, now_ms: i64) -> Option<NewEvent> {
    let found = view.aggregate(id).filter(|found| !found.deleted)?;
    let task = Task::new(&found);
    // A claim is told by its number: its end may have been another one when it was renewed.
    let is_same = match (due, Due::of(&task)?) {
        (Due::Lease { claim, .. }, Due::Lease { claim: now, .. }) => claim == now,
        (before, now) => before == now,
    };
    let next = transition::next(&task, due.act(), Circumstances::default()).filter(|_| is_same)?;
    Some(match due {
        Due::Deferral { .. } => {
            let told = Object::from_iter([(field::UNREAD, true)]);
            event(&task, TaskEvent::Resumed, next, told)
        }
        Due::Lease { .. } => {
            let error = "the agent was not heard from, nor was any in the attempts before";
            again_or_failed(&task, TaskEvent::Expired, next, "system", now_ms, error)
        }
    })
}
