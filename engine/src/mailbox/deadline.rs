//! What happens to a task when its time has come, unless something else happened before.

use super::agent::again_or_failed;
use super::decision::{event, find_enabled_agent};
use super::person::parts;
use crate::core::staging::View;
use crate::model::date::format_date;
use crate::model::event::NewEvent;
use crate::model::facts::Assignee;
use crate::model::task::record::{Lease, field};
use crate::model::task::transition::{self, Circumstances};
use crate::model::task::{Act, Deadline, Status, Task, TaskEvent};
use crate::model::value::{Object, Value};

/// What a task waits for, and until when.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Due {
    /// The lease of this claim ends.
    Lease { claim: u64, seconds: i64, until: i64 },
    /// It wakes.
    Deferral { until: i64 },
    /// Its due date passes.
    Date { until: i64 },
    /// It has been overdue for as long as the step of this number waits.
    Escalation { due_at: i64, step: usize, until: i64 },
}

/// A task waits for at most one deadline of each kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// Until when it is held, or set aside.
    Hold,
    /// When it is overdue, and what follows from that.
    Overdue,
}

impl Kind {
    pub const ALL: [Kind; 2] = [Kind::Hold, Kind::Overdue];
}

impl Due {
    /// What a task waits for, if it does.
    pub fn of(task: &Task<'_>, kind: Kind) -> Option<Due> {
        match kind {
            Kind::Hold => task.lease().map(Due::lease).or(task.wakes_at().map(|until| Due::Deferral { until })),
            Kind::Overdue => Due::overdue(task),
        }
    }

    fn lease(lease: Lease<'_>) -> Due {
        Due::Lease { claim: lease.claim, seconds: lease.seconds, until: lease.until }
    }

    /// The due date, and after it each step of the escalation, one after the other.
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

    /// Whether a task waits for the same thing still. A claim is told by its number: its end may have been another one when
    /// it was renewed.
    fn is_of(&self, task: &Task<'_>) -> bool {
        match (self, Due::of(task, self.kind())) {
            (Due::Lease { claim, .. }, Some(Due::Lease { claim: now, .. })) => *claim == now,
            (before, now) => Some(*before) == now,
        }
    }
}

/// The event of a time that has come; none where the task waits for something else by now. A lease that ended while no server
/// ran is `uncounted`: its agent could not renew it.
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
            let told = Object::from_iter([(field::UNREAD, true)]);
            event(&task, TaskEvent::Resumed, next(Deadline::Wake, usual)?, told)
        }
        Due::Lease { .. } => {
            let next = next(Deadline::Expire, Circumstances { uncounted, ..usual })?;
            if uncounted && next != Status::Failed {
                let told = Object::from_iter([(field::UNREAD, true)]);
                return Some(event(&task, TaskEvent::Expired, next, told));
            }
            let error = "the agent was not heard from, nor was any in the attempts before";
            again_or_failed(&task, TaskEvent::Expired, next, "system", now_ms, error)
        }
        Due::Date { until } => {
            let told = Object::from_iter([
                (field::OVERDUE_FOR, Value::from(format_date(until))),
                (field::ESCALATED, Value::Int(0)),
                (field::UNREAD, true.into()),
            ]);
            event(&task, TaskEvent::Overdue, next(Deadline::Overdue, usual)?, told)
        }
        Due::Escalation { step, .. } => escalated(view, &task, step)?,
    })
}

/// A step of the escalation: the task goes to whom it names, as if a person had assigned it, and its priority only rises. An agent
/// that is gone or disabled gets nothing; the step is taken all the same.
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
    let mut told = Object::from_iter([(field::ESCALATED, Value::Int(number as i64 + 1)), (field::UNREAD, true.into())]);
    let mut metadata = Object::from_iter([("step", Value::Int(number as i64))]);
    if let Some(priority) = step.priority.filter(|priority| *priority > task.priority()) {
        told.push(field::PRIORITY, priority.name());
    }
    if reassigned {
        told.push(field::ASSIGNEE_TYPE, kind);
        told.push(field::ASSIGNEE_ID, id);
        told.push(field::ATTEMPT, Value::Int(1));
        metadata.push("previous_assignee_type", had_kind);
        metadata.push("previous_assignee_id", had_id);
    } else if is_another {
        metadata.push("not_assigned", "the agent is gone or disabled");
    }
    Some(NewEvent { metadata, ..event(task, TaskEvent::Escalated, next, told) })
}
