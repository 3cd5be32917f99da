//! Reads the fields of an action, in every accepted spelling, into an engine command.

use foldwork_engine::Error;
use foldwork_engine::model::date::parse_date;
use foldwork_engine::model::event::Expected;
use foldwork_engine::model::excerpt::excerpt;
use foldwork_engine::model::facts::{Assignee, Priority};
use foldwork_engine::model::task::content::{Message, drafts, first_text, named, text_of};
use foldwork_engine::model::task::edit::Edit;
use foldwork_engine::model::task::{Action, SourceType, Status};
use foldwork_engine::model::value::{Object, Value};
use foldwork_engine::model::violation::Violations;
use foldwork_engine::workspace::mailbox::tasks::TaskFilter;
use foldwork_engine::workspace::mailbox::{TaskCommand, Worker};

use crate::api::events::read_expected;
use crate::http::etag::expected;
use crate::wire::json::ExpectedVersion;

/// The longest deferral in seconds, about three thousand years.
const MAX_SECONDS: i64 = 100_000_000_000;

/// Returns the command for an action and its fields.
pub fn command(action: Action, fields: &Object, now_ms: i64) -> Result<TaskCommand, Error> {
    Ok(match action {
        Action::Approve => TaskCommand::Approve { comment: one_text(fields, &["comment"])? },
        Action::Edit => TaskCommand::Edit { edit: edit(fields)?, comment: one_text(fields, &["comment"])? },
        Action::Reject => TaskCommand::Reject { reason: one_text(fields, &["reason", "message", "comment"])? },
        Action::Defer => TaskCommand::Defer { until: until(fields, now_ms)?, reason: one_text(fields, &["reason"])? },
        Action::Ask => TaskCommand::Ask { message: required_message(fields, &["message", "question", "text"])? },
        Action::Assign => {
            let (assignee, due_at) = (new_assignee(fields)?, time(fields, "due_at")?);
            TaskCommand::Assign { assignee, due_at }
        }
        Action::Read => TaskCommand::Read,
        Action::Unread => TaskCommand::Unread,
    })
}

/// Returns the expected version from the body or, if the body has none, from the header `If-Match`.
pub fn expected_version(fields: &Object, if_match: Option<&str>) -> Result<Expected, Error> {
    match named(fields, "expected_version") {
        Some(version) => read_expected(Some(ExpectedVersion(version.clone()))),
        None => expected(if_match),
    }
}

/// Returns the text of the first of these fields that is present.
pub fn one_text(fields: &Object, names: &[&str]) -> Result<Option<String>, Error> {
    let mut wrong = Violations::default();
    let text = first_text(fields, names, &mut wrong);
    Ok(wrong.finish(text)?)
}

pub fn flag(fields: &Object, name: &str) -> Result<Option<bool>, Error> {
    match named(fields, name) {
        None => Ok(None),
        Some(Value::Bool(flag)) => Ok(Some(*flag)),
        Some(_) => Err(Error::invalid_at(format!("/{name}"), "expected true or false")),
    }
}

pub fn integer(fields: &Object, name: &str) -> Result<Option<i64>, Error> {
    match named(fields, name) {
        None => Ok(None),
        Some(Value::Int(number)) => Ok(Some(*number)),
        Some(_) => Err(Error::invalid_at(format!("/{name}"), "expected an integer")),
    }
}

/// Returns the object in a field, or an empty object if the field is absent.
pub fn object(fields: &Object, name: &str) -> Result<Object, Error> {
    match named(fields, name) {
        None => Ok(Object::new()),
        Some(Value::Object(object)) => Ok((**object).clone()),
        Some(_) => Err(Error::invalid_at(format!("/{name}"), "expected an object")),
    }
}

/// Returns the time in a field, in milliseconds since the epoch.
pub fn time(fields: &Object, name: &str) -> Result<Option<i64>, Error> {
    let Some(text) = one_text(fields, &[name])? else { return Ok(None) };
    let wrong = || Error::invalid_at(format!("/{name}"), "expected an RFC 3339 date");
    parse_date(&text).map(Some).ok_or_else(wrong)
}

pub fn required_message(fields: &Object, names: &[&str]) -> Result<Message, Error> {
    let missing = || Error::invalid_at(format!("/{}", names.first().unwrap_or(&"message")), "required string");
    let message = Message::read(fields, names)?.ok_or_else(missing)?;
    let says_nothing =
        |part: &Value| part.get("text").and_then(Value::as_str).is_some_and(|text| text.trim().is_empty());
    if message.parts.iter().all(says_nothing) { Err(missing()) } else { Ok(message) }
}

/// Returns the agent and the claim that a request names.
pub fn worker(fields: &Object) -> Result<Worker, Error> {
    let claim = integer(fields, "claim")?.map(u64::try_from).transpose();
    let claim = claim.map_err(|_| Error::invalid_at("/claim", "expected the number of a claim"))?;
    Ok(Worker::new(one_text(fields, &["agent_id"])?, claim))
}

fn edit(fields: &Object) -> Result<Edit, Error> {
    if let Some(modifications) = named(fields, "modifications") {
        let modified = modifications.as_object().filter(|modified| !modified.is_empty());
        let wrong = || Error::invalid_at("/modifications", "expected an object with fields");
        return Ok(Edit::Modifications(modified.ok_or_else(wrong)?.clone()));
    }
    if let Some(content) = named(fields, "content") {
        return Ok(Edit::Content(content.clone()));
    }
    if let Some(text) = one_text(fields, &["text"])? {
        return Ok(Edit::Content(text.into()));
    }
    match drafts(fields)? {
        drafts if drafts.is_empty() => {
            let message = "required: modifications, content, text, artifact or artifacts";
            Err(Error::invalid_at("/modifications", message))
        }
        drafts => Ok(Edit::Artifacts(drafts)),
    }
}

fn until(fields: &Object, now_ms: i64) -> Result<Option<i64>, Error> {
    if let Some(until) = time(fields, "until")? {
        return match until > now_ms {
            true => Ok(Some(until)),
            false => Err(Error::invalid_at("/until", "expected a time in the future")),
        };
    }
    match integer(fields, "for_seconds")? {
        None => Ok(None),
        Some(seconds @ 1..=MAX_SECONDS) => Ok(Some(now_ms.saturating_add(seconds * 1_000))),
        Some(_) => Err(Error::invalid_at("/for_seconds", format!("expected 1 to {MAX_SECONDS}"))),
    }
}

/// Returns the assignee. Type and id must be given together or not at all.
pub fn assignee(fields: &Object) -> Result<Option<Assignee>, Error> {
    let mut wrong = Violations::default();
    let (kind, id) = (text_of(fields, "assignee_type", &mut wrong), text_of(fields, "assignee_id", &mut wrong));
    wrong.finish(())?;
    match (kind.as_deref(), id) {
        (None | Some("none"), None) => Ok(None),
        (Some("agent"), Some(id)) => Ok(Some(Assignee::Agent(id.into()))),
        (Some("user"), Some(id)) => Ok(Some(Assignee::User(id.into()))),
        (Some("agent" | "user"), None) => Err(Error::invalid_at("/assignee_id", "required string")),
        (None, Some(_)) => Err(Error::invalid_at("/assignee_type", "expected agent or user")),
        (Some(other), _) => {
            let found = excerpt(&other.into());
            Err(Error::invalid_at("/assignee_type", format!("expected agent or user, found {found}")))
        }
    }
}

fn new_assignee(fields: &Object) -> Result<Option<Assignee>, Error> {
    if let Some(id) = one_text(fields, &["agent_id"])? {
        return Ok(Some(Assignee::Agent(id.into())));
    }
    if let Some(id) = one_text(fields, &["user_id"])? {
        return Ok(Some(Assignee::User(id.into())));
    }
    if named(fields, "assignee_type").is_none() && named(fields, "assignee_id").is_none() {
        return Err(Error::invalid_at(
            "/assignee_type",
            "required: assignee_type and assignee_id, agent_id or user_id",
        ));
    }
    assignee(fields)
}

pub fn priority(name: &str) -> Option<Priority> {
    Priority::ALL.into_iter().find(|priority| priority.name() == name)
}

/// Returns the task filter from the parameters of a list. `text` returns the value of the parameter with a given name.
pub fn filter(text: impl Fn(&str) -> Result<Option<String>, Error>, unread: Option<bool>) -> Result<TaskFilter, Error> {
    let wrong = |name: &str, allowed: &str| Error::invalid(format!("{name} must be {allowed}"));
    let statuses = match text("status")?.as_deref() {
        None => None,
        Some("open") => Some(Status::ALL.into_iter().filter(|status| status.is_open()).collect()),
        Some("closed") => Some(Status::ALL.into_iter().filter(|status| !status.is_open()).collect()),
        Some(list) => {
            let found: Option<Vec<Status>> = list.split(',').map(|name| Status::parse(name.trim())).collect();
            Some(found.ok_or_else(|| wrong("status", "a comma-separated list of statuses, open or closed"))?)
        }
    };
    let assignee_type = match text("assignee_type")?.as_deref() {
        None => None,
        Some("agent") => Some(Some("agent")),
        Some("user") => Some(Some("user")),
        Some("none") => Some(None),
        Some(_) => return Err(wrong("assignee_type", "agent, user or none")),
    };
    let source_type = text("source_type")?
        .map(|name| SourceType::parse(&name).ok_or_else(|| wrong("source_type", "agent, event, user or api")))
        .transpose()?;
    let priorities = text("priority")?.map(|list| {
        let found: Option<Vec<Priority>> = list.split(',').map(|name| priority(name.trim())).collect();
        found.ok_or_else(|| wrong("priority", "a comma-separated list of low, normal, high and urgent"))
    });
    Ok(TaskFilter {
        statuses,
        assignee_type,
        assignee_id: text("assignee_id")?,
        project: text("project_id")?,
        source_type,
        unread,
        priorities: priorities.transpose()?,
    })
}
