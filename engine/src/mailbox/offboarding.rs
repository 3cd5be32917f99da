//! Reassigns the tasks of assignees who have left: removed members, and agents that are disabled or deleted. A task
//! goes to the assignee's successor. Without a successor, the task becomes unassigned, so that no task waits for an
//! assignee who has left.

use super::decision::{find_enabled_agent, signed};
use super::person::given_to;
use crate::append::view::View;
use crate::model::agent::{self, SUCCESSOR};
use crate::model::aggregate::Aggregate;
use crate::model::event::NewEvent;
use crate::model::facts::Assignee;
use crate::model::task::content::Stamp;
use crate::model::task::transition::{self, Circumstances};
use crate::model::task::{Act, Task};

/// An assignee who has left, and the assignee's successor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Departure {
    pub who: Assignee,
    pub successor: Option<Assignee>,
    /// The reason for the reassignment. The event of each reassigned task contains this reason.
    reason: &'static str,
}

impl Departure {
    /// Returns the departure of a user who is no longer a member.
    pub fn member(id: &str, successor: Option<Assignee>) -> Departure {
        Departure { who: Assignee::User(id.into()), successor, reason: "member_removed" }
    }

    /// Returns the departure of an agent that is disabled, deleted or unknown. Returns `None` for an enabled agent.
    pub fn agent(found: Option<&Aggregate>, id: &str) -> Option<Departure> {
        let reason = match found.filter(|found| agent::is_agent(found)) {
            Some(agent) if agent::is_disabled(agent) => "agent_disabled",
            Some(_) => return None,
            None => "agent_deleted",
        };
        let successor = found.and_then(|agent| agent.state.get(SUCCESSOR)?.as_str()).and_then(Assignee::parse);
        Some(Departure { who: Assignee::Agent(id.into()), successor, reason })
    }
}

/// Returns the departure of the agent that a task is assigned to. Returns `None` if the task has no assigned agent, or
/// if the agent has not left.
pub fn agent_left(view: &View<'_>, task: &Task<'_>) -> Option<Departure> {
    let id = task.assigned_agent()?;
    Departure::agent(view.aggregate(id).as_deref(), id)
}

/// Returns the event that reassigns a task from an assignee who has left to the assignee's successor. The task becomes
/// unassigned if there is no successor, or if the successor is an agent that gets no work. Returns `None` if the task
/// does not exist, has ended, or is not assigned to the assignee who has left.
pub fn decide(view: &View<'_>, id: &str, left: &Departure, stamp: Option<&Stamp>) -> Option<NewEvent> {
    let found = view.aggregate(id).filter(|found| !found.deleted)?;
    let task = Task::new(&found);
    if task.assignee().as_ref() != Some(&left.who) {
        return None;
    }
    let next = transition::next(&task, Act::AssigneeLeft, Circumstances::default())?;
    let successor = left.successor.as_ref().filter(|successor| match successor {
        Assignee::Agent(id) => find_enabled_agent(view, id).is_ok(),
        Assignee::User(_) => true,
    });
    let mut event = given_to(&task, successor, next);
    event.metadata.push("reason", left.reason);
    Some(match stamp {
        Some(stamp) => signed(event, stamp, None),
        None => event,
    })
}
