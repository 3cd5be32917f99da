//! `act_on_task`: performs a person's action on a task.

use foldwork_engine::model::date::parse_date;
use foldwork_engine::model::event::StreamExpectation;
use foldwork_engine::model::facts::Assignee;
use foldwork_engine::model::task::Action;
use foldwork_engine::model::task::content::Message;
use foldwork_engine::model::task::edit::Edit;
use foldwork_engine::model::value::Object;
use foldwork_engine::model::violation::Violations;
use foldwork_engine::workspace::mailbox::actions::ActedTask;
use foldwork_engine::workspace::mailbox::{ApprovalOverrides, TaskCommand};
use foldwork_engine::{Error, Result, Writer};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::shown_effect::ShownEffect;
use super::shown_task::ShownTask;
use crate::mcp::closed_sets::OneOf;
use crate::mcp::tool::{ToolCall, ToolWords};

pub(super) const WORDS: ToolWords = ToolWords {
    name: "act_on_task",
    title: "Act on a task",
    description: "Performs a person's action on a task of the mailbox: `approve` accepts the output and carries out \
        its effects; `edit` accepts it with changes (`modifications` for fields of data, or `content` for a text); \
        `reject` rejects it (`text`: the reason); `request_changes` sends the output back to the agent and `answer` \
        answers its question (`text`; `ask` is the older name of both); `defer` postpones the task (`until`); `assign` \
        assigns it to an agent or user (`agent_id` or `user_id`; neither: to nobody); `retry` has a failed task tried \
        again; `read` and `unread` mark it. The task's `allowed_actions` lists what is possible now; any other action \
        is a `task_state_conflict`. Decide for people only if they have told you to.",
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    task_id: String,
    action: OneOf<Action>,
    /// The comment of `approve`, `edit` and `retry`, the reason of `reject` and `defer`, or the message of
    /// `request_changes`, `answer` and `ask`.
    text: Option<String>,
    /// For `edit`: the fields to merge into the data of the last artifact, as a JSON merge patch: null removes a field.
    /// If the artifact's data is missing or not an object, the fields are merged into the payload of the artifact's
    /// effect.
    #[schemars(with = "Option<serde_json::Map<String, serde_json::Value>>")]
    modifications: Option<Object>,
    /// For `edit`: the text that replaces the parts of the last artifact.
    content: Option<String>,
    /// For `approve` and `edit`: whether to append effects even if their aggregates have changed since the agent read
    /// the aggregates. Without this argument, the call fails with `stale` if an aggregate has changed. The `difference`
    /// of the error shows the changes, or is null if there are too many events to compare.
    accept_stale: Option<bool>,
    /// For `approve` and `edit`: whether output from before the last `request_changes` may be approved. Without this
    /// argument, an approval of such output fails with `superseded`.
    accept_superseded: Option<bool>,
    /// For `defer`: the time at which the deferral ends, in RFC 3339. Without `until`, `text` must state the reason for
    /// the deferral.
    until: Option<String>,
    /// For `assign`: the id of the agent.
    agent_id: Option<String>,
    /// For `assign`: the id of the user.
    user_id: Option<String>,
    /// The version that the task must have. If the task has another version, the call fails with `version_conflict`.
    #[schemars(range(min = 1))]
    expected_version: Option<u64>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Output {
    /// The task after the action.
    #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
    task: ShownTask,
    /// The events of effects that `approve` or `edit` has appended, each with the state of its aggregate after the
    /// event. A state is null if this state and the states of the preceding events together exceed the size limit.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Option<Vec<serde_json::Map<String, serde_json::Value>>>")]
    appended: Vec<ShownEffect>,
}

impl Arguments {
    /// Rejects arguments that the action does not use. Otherwise, `approve` with `modifications`, for example, would
    /// approve the output without the modifications.
    fn check_meant(&self) -> Result<()> {
        let action = self.action.0;
        let approves = matches!(action, Action::Approve | Action::Edit);
        let arguments = [
            ("text", self.text.is_some(), !matches!(action, Action::Assign | Action::Read | Action::Unread)),
            ("modifications", self.modifications.is_some(), action == Action::Edit),
            ("content", self.content.is_some(), action == Action::Edit),
            ("accept_stale", self.accept_stale.is_some(), approves),
            ("accept_superseded", self.accept_superseded.is_some(), approves),
            ("until", self.until.is_some(), action == Action::Defer),
            ("agent_id", self.agent_id.is_some(), action == Action::Assign),
            ("user_id", self.user_id.is_some(), action == Action::Assign),
        ];
        let mut wrong = Violations::default();
        for (name, _, _) in arguments.iter().filter(|(_, is_given, is_meant)| *is_given && !is_meant) {
            wrong.add(format!("/{name}"), format!("not allowed for the action '{}'", action.name()));
        }
        Ok(wrong.finish(())?)
    }
}

pub(super) async fn act_on_task(writer: Writer, mut arguments: Arguments, call: ToolCall) -> Result<Output> {
    arguments.modifications = arguments.modifications.map(|fields| call.exact("modifications", fields));
    let expected = arguments.expected_version.map(StreamExpectation::at).unwrap_or_default();
    arguments.check_meant()?;
    let id = arguments.task_id.clone();
    let command = command(arguments, writer.now_ms())?;
    let ActedTask { task, appended } = writer.act_on_task(&id, command, expected).await?;
    let appended = appended.into_iter().map(ShownEffect::from).collect();
    Ok(Output { task: ShownTask::from(writer.decider().view(&task)), appended })
}

fn command(arguments: Arguments, now_ms: i64) -> Result<TaskCommand> {
    let Arguments { text, modifications, content, until, agent_id, user_id, .. } = arguments;
    let accepted = ApprovalOverrides {
        stale: arguments.accept_stale.unwrap_or(false),
        superseded: arguments.accept_superseded.unwrap_or(false),
    };
    Ok(match arguments.action.0 {
        Action::Approve => TaskCommand::Approve { comment: text, accepted },
        Action::Reject => TaskCommand::Reject { reason: text },
        Action::Retry => TaskCommand::Retry { comment: text },
        Action::Read => TaskCommand::Read,
        Action::Unread => TaskCommand::Unread,
        Action::Edit => TaskCommand::Edit { edit: edit(modifications, content)?, comment: text, accepted },
        Action::Defer => TaskCommand::defer(until.map(|text| wakes_at(&text, now_ms)).transpose()?, text)?,
        Action::Ask => TaskCommand::Ask { message: message(text)? },
        Action::RequestChanges => TaskCommand::RequestChanges { message: message(text)? },
        Action::Answer => TaskCommand::Answer { message: message(text)? },
        Action::Assign => {
            let assignee = match (agent_id, user_id) {
                (Some(_), Some(_)) => {
                    return Err(Error::invalid_at("/user_id", "expected either `agent_id` or `user_id`, not both"));
                }
                (Some(id), None) => Some(Assignee::Agent(id.into())),
                (None, Some(id)) => Some(Assignee::User(id.into())),
                (None, None) => None,
            };
            TaskCommand::Assign { assignee, due_at: None }
        }
    })
}

fn message(text: Option<String>) -> Result<Message> {
    let text = text.filter(|text| !text.trim().is_empty());
    let text = text.ok_or_else(|| Error::invalid_at("/text", "expected a message to the agent"))?;
    Ok(Message::of_text(&text))
}

fn edit(modifications: Option<Object>, content: Option<String>) -> Result<Edit> {
    match (modifications, content) {
        (Some(fields), None) if !fields.is_empty() => Ok(Edit::Modifications(fields)),
        (None, Some(content)) => Ok(Edit::Content(content.into())),
        _ => Err(Error::invalid_at(
            "/modifications",
            "expected either `modifications` with at least one field, or `content`",
        )),
    }
}

fn wakes_at(text: &str, now_ms: i64) -> Result<i64> {
    let time = parse_date(text).ok_or_else(|| Error::invalid_at("/until", "expected an RFC 3339 time"))?;
    let is_to_come = time > now_ms;
    is_to_come.then_some(time).ok_or_else(|| Error::invalid_at("/until", "expected a time in the future"))
}
