//! The mailbox: decisions about tasks, and the deadlines of tasks.
//!
//! A decision is a function that takes the view of the log's end and returns events. The appender runs decisions. The
//! table in `model::task::transition` defines the possible actions, and every decision here checks this table first.
//!
//! 1. **Created** by a request or by assignment. An `idempotency_key` is part of the task's id, so it is unique for as
//!    long as the log exists.
//! 2. **Decided.** Every change is a decision in the appender, and all of them use `model::task::transition::next`,
//!    which is `tests/mailbox/transitions.md` as code. So one of two concurrent changes wins, on one server or several.
//! 3. **Claimed.** The event says which agent holds the task, and until when. A heartbeat of the same worker, or the
//!    same claim again, moves the end in a lease row, under the number of the claim. When the time has come, a
//!    statement that checks the row's own end marks the row first, and the lease cannot be renewed any more; then the
//!    log decides that it expired. What the agent completes between the two counts, because the log has it first.
//! 4. **Due.** The timers sleep until the next lease or deferral ends, a due date passes or a step of an escalation is
//!    due. If several servers share the store, the leader handles what is due, and the clock of the store decides
//!    whether a lease has ended. A workspace with something due stays open. A lease that ended before the timers
//!    started could not be renewed: its agent may come back for a while, and losing it is not an attempt. A task whose
//!    agent is disabled or deleted is due at once, and goes to the agent's successor or to nobody (`offboarding.rs`),
//!    even if the request that removed the agent was interrupted.
//! 5. **Approved.** The effects of the current artifacts are events of the same append: all of them, or no approval.
//!    They were checked at delivery (`effect.rs`) by the checks of the appender, and keep the version that their author
//!    read. What approval would append is staged and not written (`append/staging.rs`). Diffs and schema checks of an
//!    edit take longer than a decision may, so they run before it, and again if the output has changed.
//! 6. **Listed** from columns of the resident states, as pipelines are (`selection.rs`): masks of whole segments, from
//!    the newest to the page's end.
//!
//! Who has delivered output does not decide on it: a task keeps the keys and sessions that delivered, and what is above
//! them, which ends with the user. A decision compares the caller and all above it with the first, and the caller and
//! its user with the second, so no rotation and no other session helps. No deliverer is forgotten, so a task has a
//! limited number of them. `tests/mailbox/deciders.md` has what each kind of caller may do.

pub mod agent;
pub mod artifacts;
pub mod backlog;
mod command;
mod deadline;
mod decision;
pub mod deliver;
pub mod effect;
pub mod leases;
pub mod limits;
pub mod members;
pub mod notice;
pub mod offboarding;
pub mod person;
mod schedule;
pub mod selection;
pub mod superseded_output;
pub mod timers;

pub use decision::{add_deliverers, find, signed};
