//! The one table of what may happen to a task, and the one function that reads it.

use super::act::{Act, Action, Deadline, Verb};
use super::status::Status;
use super::{MAX_ATTEMPTS, Task};

/// What the table says of a status and an act.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cell {
    /// It does not go.
    No,
    To(Status),
    /// The status stays as it is.
    Stays,
    /// To this status where there is output, else it does not go.
    WithOutput(Status),
    /// The status stays, and only another time than before is something new.
    OtherTime,
    /// To `review`, or to `completed` where nobody has to look at it.
    Done,
    /// Back to the status that it was taken from.
    Back,
    /// Back for another attempt, or failed after the last one. What counts as no attempt is no last one.
    Again,
    /// To `pending` where somebody else gets the task, else the status stays.
    Given,
    /// Like `Again` if trying again is worth it, else failed.
    Failed,
}

/// What else an act depends on.
#[derive(Debug, Clone, Copy, Default)]
pub struct Circumstances {
    /// Nobody has to look at what is delivered.
    pub unreviewed: bool,
    /// What failed may go well another time.
    pub retryable: bool,
    /// The deferral is until another time than the one before.
    pub other_time: bool,
    /// The agent could do nothing about the end of its lease, so that it is no attempt.
    pub uncounted: bool,
    /// Somebody else gets the task.
    pub reassigned: bool,
}

/// The status of a task after an act; `None` where the act is in conflict with where the task stands.
///
/// Everybody asks this function: people, agents, scripted deliveries and deadlines.
pub fn next(task: &Task<'_>, act: Act, circumstances: Circumstances) -> Option<Status> {
    let status = task.status();
    let is_last = task.attempt() >= MAX_ATTEMPTS && !circumstances.uncounted;
    let again = || if is_last { Status::Failed } else { task.taken_from() };
    match cell(status, act) {
        Cell::No => None,
        Cell::To(next) => Some(next),
        Cell::Stays => Some(status),
        Cell::WithOutput(next) => task.has_output().then_some(next),
        Cell::OtherTime => circumstances.other_time.then_some(status),
        Cell::Done => Some(if circumstances.unreviewed { Status::Completed } else { Status::Review }),
        Cell::Back => Some(task.taken_from()),
        Cell::Again => Some(again()),
        Cell::Given => Some(if circumstances.reassigned { Status::Pending } else { status }),
        Cell::Failed => Some(if circumstances.retryable { again() } else { Status::Failed }),
    }
}

fn cell(status: Status, act: Act) -> Cell {
    match act {
        Act::Person(action) => of_person(status, action),
        Act::Agent(verb) => of_agent(status, verb),
        Act::Time(deadline) => of_time(status, deadline),
    }
}

#[rustfmt::skip]
fn of_person(status: Status, action: Action) -> Cell {
    use Cell::{No, OtherTime, Stays, To, WithOutput};
    use Status::*;
    let [approve, edit, reject, defer, ask, assign, read] = match status {
        //                 approve               edit                  reject        defer         ask                assign       read, unread
        Pending       => [To(Approved),         To(Approved),         To(Rejected), To(Deferred), To(AwaitingReply), To(Pending), Stays],
        InProgress    => [WithOutput(Approved), WithOutput(Approved), To(Rejected), No,           Stays,             To(Pending), Stays],
        Review        => [To(Approved),         To(Approved),         To(Rejected), To(Deferred), To(AwaitingReply), To(Pending), Stays],
        InputRequired => [No,                   No,                   To(Rejected), To(Deferred), To(AwaitingReply), To(Pending), Stays],
        AwaitingReply => [To(Approved),         To(Approved),         To(Rejected), To(Deferred), To(AwaitingReply), To(Pending), Stays],
        Deferred      => [To(Approved),         To(Approved),         To(Rejected), OtherTime,    To(AwaitingReply), To(Pending), Stays],
        Approved | Rejected | Completed | Failed | Canceled
                      => [No,                   No,                   No,           No,           No,                No,          Stays],
    };
    match action {
        Action::Approve => approve,
        Action::Edit => edit,
        Action::Reject => reject,
        Action::Defer => defer,
        Action::Ask => ask,
        Action::Assign => assign,
        Action::Read | Action::Unread => read,
    }
}

#[rustfmt::skip]
fn of_agent(status: Status, verb: Verb) -> Cell {
    use Cell::{Back, Done, No, Stays, To};
    use Status::*;
    let [claim, message, artifact, complete, deliver, request_input, fail, release, cancel] = match status {
        //                claim           message     artifact complete deliver request_input      fail          release cancel
        Pending       => [To(InProgress), Stays,      No,      No,      Done,   No,                No,           No,     To(Canceled)],
        InProgress    => [No,             Stays,      Stays,   Done,    No,     To(InputRequired), Cell::Failed, Back,   To(Canceled)],
        Review        => [No,             Stays,      No,      No,      No,     No,                No,           No,     To(Canceled)],
        InputRequired => [No,             Stays,      No,      No,      No,     No,                No,           No,     To(Canceled)],
        AwaitingReply => [To(InProgress), To(Review), No,      No,      Done,   No,                No,           No,     To(Canceled)],
        Deferred      => [No,             Stays,      No,      No,      No,     No,                No,           No,     To(Canceled)],
        Approved | Rejected | Completed | Failed | Canceled
                      => [No,             No,         No,      No,      No,     No,                No,           No,     No],
    };
    match verb {
        Verb::Claim => claim,
        Verb::Message => message,
        Verb::Artifact => artifact,
        Verb::Complete => complete,
        Verb::Deliver => deliver,
        Verb::RequestInput => request_input,
        Verb::Fail => fail,
        Verb::Release => release,
        Verb::Cancel => cancel,
    }
}

#[rustfmt::skip]
fn of_time(status: Status, deadline: Deadline) -> Cell {
    use Cell::{Again, Back, Given, No, Stays};
    use Status::*;
    let [wake, expire, overdue, escalate] = match status {
        //                wake  expire overdue escalate
        InProgress    => [No,   Again, Stays,  Given],
        Deferred      => [Back, No,    Stays,  Given],
        Pending | Review | InputRequired | AwaitingReply
                      => [No,   No,    Stays,  Given],
        Approved | Rejected | Completed | Failed | Canceled
                      => [No,   No,    No,     No],
    };
    match deadline {
        Deadline::Wake => wake,
        Deadline::Expire => expire,
        Deadline::Overdue => overdue,
        Deadline::Escalate => escalate,
    }
}

/// The actions that a person may take now, in their usual order: those that the table has for where the task stands, less
/// those that its review leaves out.
pub fn allowed_actions(task: &Task<'_>) -> Vec<Action> {
    let circumstances = Circumstances { other_time: true, ..Circumstances::default() };
    let goes =
        |action: &Action| next(task, Act::Person(*action), circumstances).is_some() && task.review().allows(*action);
    Action::ALL.into_iter().filter(goes).collect()
}
