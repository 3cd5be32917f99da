//! The table of the acts that are possible in each status of a task, and the only function that derives a new status
//! from this table.

use strum::VariantArray;

use super::act::{Act, Action, Deadline, Verb};
use super::status::Status;
use super::{MAX_ATTEMPTS, Task};

/// The effect of an act in a status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cell {
    /// The act is not possible.
    No,
    To(Status),
    /// The status does not change.
    Stays,
    /// The task changes to the given status if it has output. Otherwise the act is not possible.
    WithOutput(Status),
    /// The status does not change. The act is only possible if it changes the end of the deferral.
    OtherTime,
    /// The task changes to `review`, or to `completed` if no review is needed. The task's own settings may require a
    /// review.
    Done,
    /// The same as `Done` if the step that produced the output was replayed. Otherwise the act is not possible.
    Replayed,
    /// The task returns to the status that it had before the claim or the deferral.
    Back,
    /// The task returns to its earlier status for another attempt. After the last attempt, the task changes to
    /// `failed`, unless the attempt does not count.
    Again,
    /// The task changes to `pending` if it is reassigned. Otherwise the status does not change.
    Given,
    /// The same as `Again` if the failure is retryable. Otherwise the task changes to `failed`.
    Failed,
}

/// The conditions other than the status that determine the effect of an act.
#[derive(Debug, Clone, Copy, Default)]
pub struct Circumstances {
    /// Whether the delivered output needs no review.
    pub unreviewed: bool,
    /// Whether the delivered output comes from a replayed step.
    pub is_replayed: bool,
    /// Whether another attempt may succeed after the failure.
    pub retryable: bool,
    /// Whether the new deferral ends at a different time than the current deferral.
    pub other_time: bool,
    /// Whether the lease ended through no fault of the agent, so that the attempt does not count.
    pub uncounted: bool,
    /// Whether the task is assigned to a different agent or user.
    pub reassigned: bool,
}

/// Returns the status of a task after an act, or `None` if the act conflicts with the current status.
///
/// All changes of tasks use this function: the acts of people and agents, deliveries of scripted agents, deadlines, and
/// departures of assignees.
pub fn next(task: &Task<'_>, act: Act, circumstances: Circumstances) -> Option<Status> {
    let status = task.status();
    let is_last = task.attempt() >= MAX_ATTEMPTS && !circumstances.uncounted;
    let is_unreviewed = circumstances.unreviewed && !task.review().is_required();
    let done = || if is_unreviewed { Status::Completed } else { Status::Review };
    let again = || if is_last { Status::Failed } else { task.taken_from() };
    match cell(status, act) {
        Cell::No => None,
        Cell::To(next) => Some(next),
        Cell::Stays => Some(status),
        Cell::WithOutput(next) => task.has_output().then_some(next),
        Cell::OtherTime => circumstances.other_time.then_some(status),
        Cell::Done => Some(done()),
        Cell::Replayed => circumstances.is_replayed.then(done),
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
        Act::AssigneeLeft => of_leaving(status),
    }
}

/// Returns the effect on a task if its assignee leaves. The claim on a task in progress ends. Every other open status
/// stays, so that a new assignee can continue.
fn of_leaving(status: Status) -> Cell {
    use Status::*;
    match status {
        InProgress => Cell::Back,
        Pending | Review | InputRequired | AwaitingReply | Deferred => Cell::Stays,
        Approved | Rejected | Completed | Failed | Canceled => Cell::No,
    }
}

#[rustfmt::skip]
fn of_person(status: Status, action: Action) -> Cell {
    use Cell::{No, OtherTime, Stays, To, WithOutput};
    use Status::*;
    // The columns are the actions before `Read`, in the order of their declaration.
    let cells: [Cell; Action::Read as usize] = match status {
        //                 approve               edit                  reject        defer         ask                request_changes            answer             assign       retry
        Pending       => [To(Approved),         To(Approved),         To(Rejected), To(Deferred), To(AwaitingReply), WithOutput(AwaitingReply), No,                To(Pending), No],
        InProgress    => [WithOutput(Approved), WithOutput(Approved), To(Rejected), No,           Stays,             WithOutput(InProgress),    No,                To(Pending), No],
        Review        => [To(Approved),         To(Approved),         To(Rejected), To(Deferred), To(AwaitingReply), To(AwaitingReply),         No,                To(Pending), No],
        InputRequired => [No,                   No,                   To(Rejected), To(Deferred), To(AwaitingReply), No,                        To(AwaitingReply), To(Pending), No],
        AwaitingReply => [To(Approved),         To(Approved),         To(Rejected), To(Deferred), To(AwaitingReply), WithOutput(AwaitingReply), No,                To(Pending), No],
        Deferred      => [To(Approved),         To(Approved),         To(Rejected), OtherTime,    To(AwaitingReply), WithOutput(AwaitingReply), No,                To(Pending), No],
        Failed        => [No,                   No,                   No,           No,           No,                No,                        No,                No,          To(Pending)],
        Approved | Rejected | Completed | Canceled
                      => [No,                   No,                   No,           No,           No,                No,                        No,                No,          No],
    };
    // Every task may be marked as read or unread.
    cells.get(action as usize).copied().unwrap_or(Stays)
}

#[rustfmt::skip]
fn of_agent(status: Status, verb: Verb) -> Cell {
    use Cell::{Back, Done, No, Replayed, Stays, To};
    use Status::*;
    // The columns are the acts in the order of their declaration.
    let cells: [Cell; Verb::VARIANTS.len()] = match status {
        //                claim           message     artifact complete deliver   decline      give_up     request_input      fail          release cancel
        Pending       => [To(InProgress), Stays,      No,      No,      Done,     To(Pending), To(Failed), No,                No,           No,     To(Canceled)],
        InProgress    => [No,             Stays,      Stays,   Done,    No,       No,          No,         To(InputRequired), Cell::Failed, Back,   To(Canceled)],
        Review        => [No,             Stays,      No,      No,      No,       No,          No,         No,                No,           No,     To(Canceled)],
        InputRequired => [No,             Stays,      No,      No,      No,       No,          No,         No,                No,           No,     To(Canceled)],
        AwaitingReply => [To(InProgress), To(Review), No,      No,      Done,     To(Pending), To(Failed), No,                No,           No,     To(Canceled)],
        Deferred      => [No,             Stays,      No,      No,      No,       No,          No,         No,                No,           No,     To(Canceled)],
        Failed        => [No,             No,         No,      No,      Replayed, No,          No,         No,                No,           No,     No],
        Approved | Rejected | Completed | Canceled
                      => [No,             No,         No,      No,      No,       No,          No,         No,                No,           No,     No],
    };
    cells[verb as usize]
}

#[rustfmt::skip]
fn of_time(status: Status, deadline: Deadline) -> Cell {
    use Cell::{Again, Back, Given, No, Stays};
    use Status::*;
    // The columns are the deadlines in the order of their declaration.
    let cells: [Cell; Deadline::VARIANTS.len()] = match status {
        //                wake  expire overdue escalate
        InProgress    => [No,   Again, Stays,  Given],
        Deferred      => [Back, No,    Stays,  Given],
        Pending | Review | InputRequired | AwaitingReply
                      => [No,   No,    Stays,  Given],
        Approved | Rejected | Completed | Failed | Canceled
                      => [No,   No,    No,     No],
    };
    cells[deadline as usize]
}

/// Returns the actions that a person may take now, in the order of their declaration. An action must be possible in the
/// current status, and must be allowed by the task's review settings.
pub fn allowed_actions(task: &Task<'_>) -> Vec<Action> {
    let circumstances = Circumstances { other_time: true, ..Circumstances::default() };
    let goes =
        |action: &Action| next(task, Act::Person(*action), circumstances).is_some() && task.review().allows(*action);
    Action::VARIANTS.iter().copied().filter(goes).collect()
}
