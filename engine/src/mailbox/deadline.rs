//! Determines the deadlines of tasks, and the events to append when a deadline has passed.

use std::sync::Arc;

use strum::VariantArray;

use super::agent::again_or_failed;
use super::decision::{event, find_enabled_agent};
use super::offboarding;
use super::person::parts;
use crate::append::view::View;
use crate::model::date::format_date;
use crate::model::event::NewEvent;
use crate::model::facts::Assignee;
use crate::model::task::record::{Lease, field};
use crate::model::task::transition::{self, Circumstances};
use crate::model::task::{Act, Deadline, Status, Task, TaskEvent};
use crate::model::value::{Object, Value};

/// A deadline of a task, with the time when the deadline passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum DueTime {
    /// The lease of the claim with the number `claim` expires.
    Lease { claim: u64, seconds: i64, until: i64 },
    /// The deferral of the task ends.
    Deferral { until: i64 },
    /// The task's due date passes.
    Date { until: i64 },
    /// An escalation step begins, because the task has been overdue for the step's delay.
    Escalation { due_at: i64, step: usize, until: i64 },
    /// The agent that the task is assigned to has left. This deadline passes immediately.
    Assignee,
}

/// The kinds of deadlines. A task has at most one deadline of each kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, VariantArray)]
pub enum DeadlineKind {
    /// The end of the task's lease or deferral.
    Hold,
    /// The due date, or the start of the next escalation step.
    Overdue,
    /// The agent that the task is assigned to has left.
    Assignee,
}

impl DueTime {
    /// Returns the task's deadline of this kind, if there is one. `has_left` returns whether an agent has left.
    pub fn of(task: &Task<'_>, kind: DeadlineKind, has_left: impl FnOnce(&str) -> bool) -> Option<DueTime> {
        match kind {
            DeadlineKind::Assignee => {
                task.assigned_agent().filter(|id| task.status().is_open() && has_left(id)).map(|_| DueTime::Assignee)
            }
            DeadlineKind::Hold => {
                task.lease().map(DueTime::lease).or(task.wakes_at().map(|until| DueTime::Deferral { until }))
            }
            DeadlineKind::Overdue => DueTime::overdue(task),
        }
    }

    fn lease(lease: Lease<'_>) -> DueTime {
        DueTime::Lease { claim: lease.claim, seconds: lease.seconds, until: lease.until }
    }

    /// Returns the due date of an open task. After an event has recorded that the due date has passed, returns the
    /// start of the next escalation step, or `None` if no step is left.
    fn overdue(task: &Task<'_>) -> Option<DueTime> {
        let due_at = task.date(field::DUE_AT).filter(|_| task.status().is_open())?;
        if !task.is_overdue() {
            return Some(DueTime::Date { until: due_at });
        }
        let step = task.escalated();
        let next = task.review().escalation().into_iter().nth(step)?;
        Some(DueTime::Escalation { due_at, step, until: due_at.saturating_add(next.after_ms) })
    }

    pub fn until(&self) -> i64 {
        match self {
            DueTime::Lease { until, .. }
            | DueTime::Deferral { until }
            | DueTime::Date { until }
            | DueTime::Escalation { until, .. } => *until,
            DueTime::Assignee => i64::MIN,
        }
    }

    pub fn kind(&self) -> DeadlineKind {
        match self {
            DueTime::Lease { .. } | DueTime::Deferral { .. } => DeadlineKind::Hold,
            DueTime::Date { .. } | DueTime::Escalation { .. } => DeadlineKind::Overdue,
            DueTime::Assignee => DeadlineKind::Assignee,
        }
    }

    /// Returns whether a task still has this deadline. For a lease, compares only the claim, because the claim
    /// identifies the lease.
    fn is_of(&self, task: &Task<'_>) -> bool {
        // Assumes that the agent has left, because `offboarding` checks whether the agent has left.
        match (self, DueTime::of(task, self.kind(), |_| true)) {
            (DueTime::Lease { claim, .. }, Some(DueTime::Lease { claim: now, .. })) => *claim == now,
            (before, now) => Some(*before) == now,
        }
    }
}

/// Facts that a decision about a deadline needs, and that the log does not contain.
#[derive(Default)]
pub struct DeadlineFacts {
    /// Whether the lease expired while the timers of the workspace did not run or while a shared store was unavailable.
    /// Such an expiry does not count as an attempt, because the agent could not renew the lease during this time.
    pub uncounted: bool,
    /// Whether the escalation step names a user who is not a member of the workspace.
    pub has_left: bool,
    /// The owner of the workspace. A task goes to the owner if its escalation step names a user who is not a member, or
    /// an agent that is deleted or gets no work.
    pub owner: Option<Assignee>,
}

/// Returns the user that an escalation step names, if `due` is the deadline of an escalation step. Returns `None` for
/// other deadlines, and for a step that names an agent or nobody.
pub fn user_of(task: &Task<'_>, due: DueTime) -> Option<Arc<str>> {
    let DueTime::Escalation { step, .. } = due else { return None };
    match task.review().escalation().into_iter().nth(step)?.to? {
        Assignee::User(id) => Some(id),
        Assignee::Agent(_) => None,
    }
}

/// Returns the event of a deadline that has passed, or `None` if the task no longer has this deadline.
pub fn decide(view: &View<'_>, id: &str, due: DueTime, now_ms: i64, known: &DeadlineFacts) -> Option<NewEvent> {
    let uncounted = known.uncounted;
    let found = view.aggregate(id).filter(|found| !found.deleted)?;
    let task = Task::new(&found);
    if !due.is_of(&task) {
        return None;
    }
    let next = |deadline, circumstances| transition::next(&task, Act::Time(deadline), circumstances);
    let usual = Circumstances::default();
    Some(match due {
        DueTime::Deferral { .. } => {
            let fields = Object::from_iter([(field::UNREAD, true)]);
            event(&task, TaskEvent::Resumed, next(Deadline::Wake, usual)?, fields)
        }
        DueTime::Lease { .. } => {
            let next = next(Deadline::Expire, Circumstances { uncounted, ..usual })?;
            if uncounted && next != Status::Failed {
                let fields = Object::from_iter([(field::UNREAD, true)]);
                return Some(event(&task, TaskEvent::Expired, next, fields));
            }
            let error = "the lease expired and no attempt is left";
            again_or_failed(&task, TaskEvent::Expired, next, "system", now_ms, error)
        }
        DueTime::Date { until } => {
            let fields = Object::from_iter([
                (field::OVERDUE_FOR, Value::from(format_date(until))),
                (field::ESCALATED, Value::Int(0)),
                (field::UNREAD, true.into()),
            ]);
            event(&task, TaskEvent::Overdue, next(Deadline::Overdue, usual)?, fields)
        }
        DueTime::Escalation { step, .. } => escalated(view, &task, step, known)?,
        DueTime::Assignee => offboarding::decide(view, id, &offboarding::agent_left(view, &task)?, None)?,
    })
}

/// Returns the event of an escalation step. The step assigns the task in the same way as a person does, and never
/// lowers the task's priority. If the step names an agent that is deleted or gets no work, or a user who is not a
/// member, the task goes to the owner of the workspace.
fn escalated(view: &View<'_>, task: &Task<'_>, number: usize, known: &DeadlineFacts) -> Option<NewEvent> {
    let step = task.review().escalation().into_iter().nth(number)?;
    let not_assigned = match &step.to {
        Some(Assignee::Agent(id)) if find_enabled_agent(view, id).is_err() => {
            Some("the agent is deleted or gets no work")
        }
        Some(Assignee::User(_)) if known.has_left => Some("the user is not a member"),
        _ => None,
    };
    let to = if not_assigned.is_some() { known.owner.as_ref() } else { step.to.as_ref() };
    let (kind, id) = parts(to);
    let (had_kind, had_id) = (task.text(field::ASSIGNEE_TYPE), task.text(field::ASSIGNEE_ID));
    let reassigned = to.is_some() && (kind, id.as_deref()) != (had_kind, had_id);
    let circumstances = Circumstances { reassigned, ..Circumstances::default() };
    let next = transition::next(task, Act::Time(Deadline::Escalate), circumstances)?;
    let mut fields =
        Object::from_iter([(field::ESCALATED, Value::Int(number as i64 + 1)), (field::UNREAD, true.into())]);
    let mut metadata = Object::from_iter([("step", Value::Int(number as i64))]);
    let raised = step.priority.filter(|priority| *priority > task.priority());
    fields.push_some(field::PRIORITY, raised.map(|priority| priority.name()));
    if reassigned {
        fields.push(field::ASSIGNEE_TYPE, kind);
        fields.push(field::ASSIGNEE_ID, id);
        fields.push(field::ATTEMPT, Value::Int(1));
        metadata.push("previous_assignee_type", had_kind);
        metadata.push("previous_assignee_id", had_id);
    }
    metadata.push_some("not_assigned", not_assigned);
    Some(NewEvent { metadata, ..event(task, TaskEvent::Escalated, next, fields) })
}
