//! Converts the requests about tasks into commands of the engine. Some texts are accepted under several field names.

use foldwork_engine::Error;
use foldwork_engine::model::event::StreamExpectation;
use foldwork_engine::model::excerpt::excerpt;
use foldwork_engine::model::facts::{Assignee, Priority};
use foldwork_engine::model::task::edit::Edit;
use foldwork_engine::model::task::view::WaitingOn;
use foldwork_engine::model::task::{Action, SourceType, Status};
use foldwork_engine::model::value::Object;
use foldwork_engine::model::violation::Violations;
use foldwork_engine::workspace::mailbox::tasks::TaskFilter;
use foldwork_engine::workspace::mailbox::{ApprovalOverrides, Claimant, TaskCommand};
use strum::VariantArray;

use crate::http::etag::expected;
use crate::wire::json::ExpectedVersion;
use crate::wire::names;
use crate::wire::new_event::read_expected;
use crate::wire::request_body::{FromFields, SentField, SentText, first_text, several};
use crate::wire::task::{
    ActOnTasks, AnswerTask, ApproveTask, AskTask, AssignTask, DeferTask, EditTask, MarkTask, RejectTask,
    RequestChanges, RetryTask, SentFilter, drafts, required_message,
};

/// The longest deferral in seconds, about three thousand years.
const MAX_SECONDS: i64 = 100_000_000_000;

/// The field with the expected version of a task. Requests about many tasks do not have this field.
const EXPECTED_VERSION: &str = "expected_version";

/// Declares the commands of persons: for each action, the request and the conversion of the request into a command.
macro_rules! commands {
    ($($action:ident: $request:ident = $convert:expr;)+) => {
        /// The names of the fields of each request.
        const FIELDS: &[&[&str]] = &[$($request::NAMES),+];

        $(impl $request {
            /// Returns the command. `now_ms` is the current time, from which the end of a deferral is computed.
            pub fn command(&self, now_ms: i64) -> Result<TaskCommand, Error> {
                let convert: fn(&$request, i64) -> Result<TaskCommand, Error> = $convert;
                convert(self, now_ms)
            }
        })+

        /// Returns the command for an action on many tasks. `fields` are all fields of the request, including the
        /// fields of the action. `expected_version` is not allowed, because the request does not concern a single task.
        pub fn command(action: Action, fields: &Object, now_ms: i64) -> Result<TaskCommand, Error> {
            match action {
                $(Action::$action => of_many::<$request>(fields)?.command(now_ms),)+
                Action::Read => of_many::<MarkTask>(fields).map(|_| TaskCommand::Read),
                Action::Unread => of_many::<MarkTask>(fields).map(|_| TaskCommand::Unread),
            }
        }
    };
}

commands! {
    Approve: ApproveTask = |sent, _| {
        let accepted = accepted(&sent.accept_stale, &sent.accept_superseded)?;
        Ok(TaskCommand::Approve { comment: sent.comment.text()?, accepted })
    };
    Edit: EditTask = |sent, _| {
        let accepted = accepted(&sent.accept_stale, &sent.accept_superseded)?;
        Ok(TaskCommand::Edit { edit: edit(sent)?, comment: sent.comment.text()?, accepted })
    };
    Reject: RejectTask = |sent, _| {
        Ok(TaskCommand::Reject { reason: first_text(&[&sent.reason, &sent.message, &sent.comment])? })
    };
    Defer: DeferTask = |sent, now_ms| {
        only_one(&[sent.until.given(), sent.for_seconds.given()])?;
        TaskCommand::defer(end(sent, now_ms)?, sent.reason.text()?)
    };
    Ask: AskTask = |sent, _| {
        let texts = [&sent.message, &sent.question, &sent.text];
        Ok(TaskCommand::Ask { message: required_message(&sent.parts, &sent.in_reply_to, &texts)? })
    };
    RequestChanges: RequestChanges = |sent, _| {
        let texts = [&sent.message, &sent.text];
        Ok(TaskCommand::RequestChanges { message: required_message(&sent.parts, &sent.in_reply_to, &texts)? })
    };
    Answer: AnswerTask = |sent, _| {
        let texts = [&sent.message, &sent.answer, &sent.text];
        Ok(TaskCommand::Answer { message: required_message(&sent.parts, &sent.in_reply_to, &texts)? })
    };
    Assign: AssignTask = |sent, _| {
        Ok(TaskCommand::Assign { assignee: new_assignee(sent)?, due_at: sent.due_at.time()? })
    };
    Retry: RetryTask = |sent, _| Ok(TaskCommand::Retry { comment: sent.comment.text()? });
}

/// Fails if a request for an action on many tasks has a field that no action has.
pub fn check_fields(fields: &Object) -> Result<(), Error> {
    let mut known = ActOnTasks::NAMES.to_vec();
    for name in FIELDS.concat() {
        if name != EXPECTED_VERSION && !known.contains(&name) {
            known.push(name);
        }
    }
    names::only(fields, &known)
}

fn of_many<T: FromFields>(fields: &Object) -> Result<T, Error> {
    let own = T::NAMES.iter().filter(|name| **name != EXPECTED_VERSION);
    let allowed: Vec<&str> = ActOnTasks::NAMES.iter().chain(own).copied().collect();
    names::only(fields, &allowed)?;
    Ok(T::from_fields(fields))
}

fn accepted(stale: &SentField<Option<bool>>, superseded: &SentField<Option<bool>>) -> Result<ApprovalOverrides, Error> {
    Ok(ApprovalOverrides { stale: stale.flag()?.unwrap_or(false), superseded: superseded.flag()?.unwrap_or(false) })
}

/// Fails if the request contains more than one of `fields`. Without this check, the server would ignore all but one of
/// these fields.
fn only_one(fields: &[(&str, bool)]) -> Result<(), Error> {
    several(fields).map_or(Ok(()), |wrong| Err(vec![wrong].into()))
}

fn edit(sent: &EditTask) -> Result<Edit, Error> {
    let EditTask { modifications, content, text, artifact, artifacts, .. } = sent;
    only_one(&[modifications.given(), content.given(), text.given(), artifact.given(), artifacts.given()])?;
    if let Some(modifications) = sent.modifications.exact() {
        let modified = modifications.as_object().filter(|modified| !modified.is_empty());
        let wrong = || sent.modifications.invalid("expected an object with at least one field");
        return Ok(Edit::Modifications(modified.ok_or_else(wrong)?.clone()));
    }
    if let Some(content) = sent.content.exact() {
        return Ok(Edit::Content(content));
    }
    if let Some(text) = sent.text.text()? {
        return Ok(Edit::Content(text.into()));
    }
    let drafts = drafts(&sent.artifact, &sent.artifacts)?;
    if drafts.is_empty() {
        let message = "one of `modifications`, `content`, `text`, `artifact` and `artifacts` is required";
        return Err(sent.modifications.invalid(message));
    }
    Ok(Edit::Artifacts(drafts))
}

fn end(sent: &DeferTask, now_ms: i64) -> Result<Option<i64>, Error> {
    if let Some(until) = sent.until.time()? {
        let is_future = until > now_ms;
        return is_future.then_some(Some(until)).ok_or_else(|| sent.until.invalid("expected a time in the future"));
    }
    match sent.for_seconds.integer()? {
        None => Ok(None),
        Some(seconds @ 1..=MAX_SECONDS) => Ok(Some(now_ms.saturating_add(seconds * 1_000))),
        Some(_) => Err(sent.for_seconds.invalid(format!("expected 1 to {MAX_SECONDS}"))),
    }
}

fn new_assignee(sent: &AssignTask) -> Result<Option<Assignee>, Error> {
    let AssignTask { assignee_type, assignee_id, agent_id, user_id, .. } = sent;
    only_one(&[agent_id.given(), user_id.given(), assignee_id.given()])?;
    only_one(&[agent_id.given(), user_id.given(), assignee_type.given()])?;
    if let Some(id) = sent.agent_id.text()? {
        return Ok(Some(Assignee::Agent(id.into())));
    }
    if let Some(id) = sent.user_id.text()? {
        return Ok(Some(Assignee::User(id.into())));
    }
    if sent.assignee_type.is_absent() && sent.assignee_id.is_absent() {
        let message = "an assignee is required: assignee_type with assignee_id, or assignee_type none without \
                       assignee_id, or agent_id, or user_id";
        return Err(sent.assignee_type.invalid(message));
    }
    assignee(&sent.assignee_type, &sent.assignee_id)
}

/// Returns the expected version from the body, the header `If-Match`, or both.
pub fn expected_version(sent: &SentField<Option<u64>>, if_match: Option<&str>) -> Result<StreamExpectation, Error> {
    let stated = read_expected(sent.value().cloned().map(ExpectedVersion))?;
    expected(stated, if_match)
}

/// Returns the agent and the claim that a request names.
pub fn worker<T>(agent_id: &SentField<T>, claim: &SentField<Option<u64>>) -> Result<Claimant, Error> {
    let number = claim.integer()?.map(u64::try_from).transpose();
    let number = number.map_err(|_| claim.invalid("expected a claim number, a whole number of at least 0"))?;
    Ok(Claimant::new(agent_id.text()?, number))
}

/// Returns the assignee, or `None` if the type is absent or is `none`. The types `agent` and `user` require an id, and
/// an id requires one of these types.
pub fn assignee<T>(kind: &SentField<T>, id: &SentText) -> Result<Option<Assignee>, Error> {
    let mut wrong = Violations::default();
    let (named, given) = (kind.text_or_violation(&mut wrong), id.text_or_violation(&mut wrong));
    wrong.finish(())?;
    match (named.as_deref(), given) {
        (None | Some("none"), None) => Ok(None),
        (Some("agent"), Some(id)) => Ok(Some(Assignee::Agent(id.into()))),
        (Some("user"), Some(id)) => Ok(Some(Assignee::User(id.into()))),
        (Some("agent" | "user"), None) => Err(id.invalid("required string")),
        (None, Some(_)) => Err(kind.invalid("expected `agent` or `user`")),
        (Some(other), given) => {
            let found = excerpt(&other.into());
            let allowed = if given.is_some() { "`agent` or `user`" } else { "`agent`, `user` or `none`" };
            Err(kind.invalid(format!("expected {allowed}, found {found}")))
        }
    }
}

/// The unparsed filters of a request for a list of tasks.
#[derive(Default)]
pub struct FilterTexts {
    pub status: Option<String>,
    pub assignee_type: Option<String>,
    pub assignee_id: Option<String>,
    pub project_id: Option<String>,
    pub source_type: Option<String>,
    pub unread: Option<bool>,
    pub waiting_on: Option<String>,
    pub priority: Option<String>,
}

impl FilterTexts {
    pub fn read(sent: &SentFilter) -> Result<FilterTexts, Error> {
        Ok(FilterTexts {
            unread: sent.unread.flag()?,
            waiting_on: sent.waiting_on.text()?,
            status: sent.status.text()?,
            assignee_type: sent.assignee_type.text()?,
            source_type: sent.source_type.text()?,
            priority: sent.priority.text()?,
            assignee_id: sent.assignee_id.text()?,
            project_id: sent.project_id.text()?,
        })
    }

    /// Converts the texts to a filter. Fails if a text is not valid.
    pub fn filter(self) -> Result<TaskFilter, Error> {
        let wrong = |name: &str, allowed: &str| Error::invalid(format!("`{name}` must be {allowed}"));
        let statuses = match self.status.as_deref() {
            None => None,
            Some("open") => Some(Status::VARIANTS.iter().copied().filter(|status| status.is_open()).collect()),
            Some("closed") => Some(Status::VARIANTS.iter().copied().filter(|status| !status.is_open()).collect()),
            Some(list) => {
                let found = named(list, Status::parse);
                Some(found.ok_or_else(|| wrong("status", "`open`, `closed` or a comma-separated list of statuses"))?)
            }
        };
        let assignee_type = match self.assignee_type.as_deref() {
            None => None,
            Some("agent") => Some(Some("agent")),
            Some("user") => Some(Some("user")),
            Some("none") => Some(None),
            Some(_) => return Err(wrong("assignee_type", "`agent`, `user` or `none`")),
        };
        let source_type = self.source_type.map(|name| {
            SourceType::parse(&name).ok_or_else(|| wrong("source_type", "`agent`, `event`, `user` or `api`"))
        });
        let waiting_on = self
            .waiting_on
            .map(|name| WaitingOn::parse(&name).ok_or_else(|| wrong("waiting_on", "`human`, `agent` or `none`")));
        let priorities = self.priority.map(|list| {
            let found = named(&list, Priority::parse);
            found.ok_or_else(|| wrong("priority", "a comma-separated list of `low`, `normal`, `high` and `urgent`"))
        });
        Ok(TaskFilter {
            statuses,
            assignee_type,
            assignee_id: self.assignee_id,
            project: self.project_id,
            source_type: source_type.transpose()?,
            unread: self.unread,
            waiting_on: waiting_on.transpose()?,
            priorities: priorities.transpose()?,
        })
    }
}

/// Returns the values in a comma-separated list, or `None` if a name is unknown. Leaves out repeated values, because
/// each task is compared with every value.
fn named<T: VariantArray + Copy + PartialEq>(list: &str, parse: impl Fn(&str) -> Option<T>) -> Option<Vec<T>> {
    let found: Vec<T> = list.split(',').map(|name| parse(name.trim())).collect::<Option<_>>()?;
    Some(T::VARIANTS.iter().copied().filter(|value| found.contains(value)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comma_separated_list_ignores_repeated_values_and_rejects_an_empty_value() {
        let statuses = |list: &str| named(list, Status::parse);
        assert_eq!(statuses("review,pending, review,pending"), Some(vec![Status::Pending, Status::Review]));
        assert_eq!(statuses("review,"), None);
        assert_eq!(named("high,high", Priority::parse), Some(vec![Priority::High]));
    }
}
