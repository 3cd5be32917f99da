//! Decisions about a task when one of its deadlines passes.

use super::agent::again_or_failed;
use super::decision::{event, find_enabled_agent};
use super::person::parts;
use crate::core::view::View;
use crate::model::date::format_date;
use crate::model::event::NewEvent;
use crate::model::facts::Assignee;
use crate::model::task::record::{Lease, field};
use crate::model::task::transition::{self, Circumstances};
use crate::model::task::{Act, Deadline, Status, Task, TaskEvent};
use crate::model::value::{Object, Value};

/// A deadline of a task, with the time when it passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Due {
    /// The lease of claim `claim` expires.
    Lease { claim: u64, seconds: i64, until: i64 },
    /// The deferral of the task ends.
    Deferral { until: i64 },
    /// The task's due date passes.
    Date { until: i64 },
    /// An escalation step begins: the task has been overdue for that step's delay.
    Escalation { due_at: i64, step: usize, until: i64 },
}

/// The kinds of deadlines. A task has at most one deadline of each kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// The end of the task's lease or deferral.
    Hold,
    /// The due date, or the start of the next escalation step.
    Overdue,
}

impl Kind {
    pub const ALL: [Kind; 2] = [Kind::Hold, Kind::Overdue];
}

impl Due {
    /// Returns the task's deadline of this kind, if there is one.
    pub fn of(task: &Task<'_>, kind: Kind) -> Option<Due> {
        match kind {
            Kind::Hold => task.lease().map(Due::lease).or(task.wakes_at().map(|until| Due::Deferral { until })),
            Kind::Overdue => Due::overdue(task),
        }
    }

    fn lease(lease: Lease<'_>) -> Due {
        Due::Lease { claim: lease.claim, seconds: lease.seconds, until: lease.until }
    }

    /// Returns the due date of an open task. After the due date has passed, returns the start of the next escalation
    /// step.
    fn overdue(task: &Task<'_>) -> Option<Due> {
        let due_at = task.date(field::DUE_AT).filter(|_| task.status().is_open())?;
        if !task.is_overdue() {
            return Some(Due::Date { until: due_at });
        }
        let step = task.escalated();
        let next = task.review().escalation().into_iter().nth(step)?;
        Some(Due::Escalation { due_at, step, until: due_at.saturating_add(next.after_ms) })
    }

    pub fn until(&self) -> i64 {
        match self {
            Due::Lease { until, .. }
            | Due::Deferral { until }
            | Due::Date { until }
            | Due::Escalation { until, .. } => *until,
        }
    }

    pub fn kind(&self) -> Kind {
        match self {
            Due::Lease { .. } | Due::Deferral { .. } => Kind::Hold,
            Due::Date { .. } | Due::Escalation { .. } => Kind::Overdue,
        }
    }

    /// Returns whether a task still has this deadline. Leases are compared by the number of their claim, because a
    /// renewal changes the time.
    fn is_of(&self, task: &Task<'_>) -> bool {
        match (self, Due::of(task, self.kind())) {
            (Due::Lease { claim, .. }, Some(Due::Lease { claim: now, .. })) => *claim == now,
            (before, now) => Some(*before) == now,
        }
    }
}

/// Returns the event of a deadline that has passed, or `None` if the task no longer has this deadline. A lease that
/// expired while no server ran is `uncounted`, because its agent could not renew the lease.
pub fn decide(view: &View<'_>, id: &str, due: Due, now_ms: i64, uncounted: bool) -> Option<NewEvent> {
    let found = view.aggregate(id).filter(|found| !found.deleted)?;
    let task = Task::new(&found);
    if !due.is_of(&task) {
        return None;
    }
    let next = |deadline, circumstances| transition::next(&task, Act::Time(deadline), circumstances);
    let usual = Circumstances::default();
    Some(match due {
        Due::Deferral { .. } => {
            let fields = Object::from_iter([(field::UNREAD, true)]);
            event(&task, TaskEvent::Resumed, next(Deadline::Wake, usual)?, fields)
        }
        Due::Lease { .. } => {
            let next = next(Deadline::Expire, Circumstances { uncounted, ..usual })?;
            if uncounted && next != Status::Failed {
                let fields = Object::from_iter([(field::UNREAD, true)]);
                return Some(event(&task, TaskEvent::Expired, next, fields));
            }
            let error = "the lease expired and no attempt is left";
            again_or_failed(&task, TaskEvent::Expired, next, "system", now_ms, error)
        }
        Due::Date { until } => {
            let fields = Object::from_iter([
                (field::OVERDUE_FOR, Value::from(format_date(until))),
                (field::ESCALATED, Value::Int(0)),
                (field::UNREAD, true.into()),
            ]);
            event(&task, TaskEvent::Overdue, next(Deadline::Overdue, usual)?, fields)
        }
        Due::Escalation { step, .. } => escalated(view, &task, step)?,
    })
}

/// Returns the event of an escalation step. The step assigns the task as a person would, and can only raise the task's
/// priority. If the step names an agent that is deleted or disabled, the assignee does not change, but the step counts.
fn escalated(view: &View<'_>, task: &Task<'_>, number: usize) -> Option<NewEvent> {
    let step = task.review().escalation().into_iter().nth(number)?;
    let (kind, id) = parts(step.to.as_ref());
    let (had_kind, had_id) = (task.text(field::ASSIGNEE_TYPE), task.text(field::ASSIGNEE_ID));
    let gets_work = match &step.to {
        Some(Assignee::Agent(id)) => find_enabled_agent(view, id).is_ok(),
        Some(Assignee::User(_)) | None => true,
    };
    let is_another = step.to.is_some() && (kind, id.as_deref()) != (had_kind, had_id);
    let reassigned = is_another && gets_work;
    let circumstances = Circumstances { reassigned, ..Circumstances::default() };
    let next = transition::next(task, Act::Time(Deadline::Escalate), circumstances)?;
    let mut fields =
        Object::from_iter([(field::ESCALATED, Value::Int(number as i64 + 1)), (field::UNREAD, true.into())]);
    let mut metadata = Object::from_iter([("step", Value::Int(number as i64))]);
    if let Some(priority) = step.priority.filter(|priority| *priority > task.priority()) {
        fields.push(field::PRIORITY, priority.name());
    }
    if reassigned {
        fields.push(field::ASSIGNEE_TYPE, kind);
        fields.push(field::ASSIGNEE_ID, id);
        fields.push(field::ATTEMPT, Value::Int(1));
        metadata.push("previous_assignee_type", had_kind);
        metadata.push("previous_assignee_id", had_id);
    } else if is_another {
        metadata.push("not_assigned", "the agent is deleted or disabled");
    }
    Some(NewEvent { metadata, ..event(task, TaskEvent::Escalated, next, fields) })
}
