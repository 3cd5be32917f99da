//! The mailbox: decisions about tasks, and the deadlines of tasks.
//!
//! A decision is a function that takes the view of the log's end and returns events. The appender runs decisions. The
//! table in `model::task::transition` defines the possible actions, and every decision about an existing task checks
//! this table.
//!
//! 1. **Created** by a request, by a plugin's assignment, or by the program itself (`notice.rs`, and
//!    `consumer/worker.rs` for stopped plugins). The id of a task with an `idempotency_key` is derived from the key, so
//!    the key is unique for as long as the log exists.
//! 2. **Decided.** Every change is a decision in the appender. All decisions use `model::task::transition::next`, which
//!    implements `tests/mailbox/transitions.md`. Therefore only one of two conflicting changes succeeds, on one server
//!    or several.
//! 3. **Claimed.** The event contains the agent that holds the task, and the end of the lease. A heartbeat of the same
//!    worker, or another claim by this worker, extends the lease. A lease row stores the new end and the number of the
//!    claim. When the lease ends, a database statement checks the end in the row and marks the row as expired, so that
//!    the lease can no longer be renewed. Then an event in the log ends the lease. A completion that is appended before
//!    this event is still accepted.
//! 4. **Due.** The timers sleep until the next lease or deferral ends, a due date passes or a step of an escalation is
//!    due. If several servers share the store, the leader handles these deadlines, and the clock of the store decides
//!    whether a lease has ended. A workspace with a deadline stays open. A lease that ended before the timers started
//!    could not be renewed: its agent may continue for a while, and the loss of the lease does not count as an attempt.
//!    A task whose agent is disabled or deleted is due immediately. The task goes to the agent's successor or becomes
//!    unassigned (`offboarding.rs`), even if the request that removed the agent was interrupted.
//! 5. **Approved.** The append of the approval also contains the effects of all current artifacts. If one effect is
//!    rejected, the approval fails. Each effect passed the checks of the appender at its delivery (`effect.rs`), and
//!    records the version of the aggregate that the author of the effect has read. A preview of an approval stages the
//!    events without writing them (`append/staging.rs`). The diffs and schema checks of an edit take too long for a
//!    decision, so they run before the decision, and again if the output has changed.
//! 6. **Listed** from columns of the resident states, as in pipelines (`selection.rs`). For each segment, a mask
//!    selects the tasks. The segments are read from the newest one until the page is full.
//!
//! A user who has delivered output cannot approve, edit or reject this output, unless the user may decide on the user's
//! own deliveries. A task stores two lists: the deliverers, which are the keys and sessions that delivered output, and
//! the ancestors of the deliverers, including the users. Keys that are bound to agents add nothing to the second list.
//! The action is rejected if the first list contains the caller's key or session or one of its ancestors. The action is
//! also rejected if the second list contains the caller's key, session or user. A rotated key or another session of the
//! user is therefore rejected as well. Deliverers are never removed, so their number is limited.
//! `tests/mailbox/deciders.md` lists what each kind of caller may do.

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

pub use decision::{add_deliverers, check_gets_work, find, reason_for_no_work, signed};
