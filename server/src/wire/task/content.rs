//! The contents of a task in responses: messages, artifacts and the timeline.

use foldwork_engine::model::date::format_date;
use foldwork_engine::model::task::view::{ArtifactView, MessageView, TimelineView};
use poem_openapi::Object;
use serde::Serialize;

use crate::wire::closed_sets::{OneOf, Speakers};
use crate::wire::json::{AnyObject, Text};

/// A message on a task.
#[derive(Object, Serialize)]
#[oai(rename = "Message")]
pub struct MessageBody {
    id: Text,
    role: OneOf<Speakers>,
    author: Text,
    /// The content. Each part is `{text}`, `{data}` or `{file}`, with an optional `media_type`.
    parts: Vec<AnyObject>,
    text: Text,
    created_at: Text,
    #[oai(read_only)]
    #[serde(skip_serializing_if = "Option::is_none")]
    in_reply_to: Option<Text>,
}

impl From<MessageView> for MessageBody {
    fn from(view: MessageView) -> MessageBody {
        let MessageView { id, role, author, parts, text, created_at, in_reply_to } = view;
        MessageBody {
            id: id.into(),
            role: role.name().into(),
            author: author.into(),
            parts: parts.into_iter().map(AnyObject).collect(),
            text: text.into(),
            created_at: created_at.into(),
            in_reply_to: in_reply_to.map(Text),
        }
    }
}

/// One version of a task's output.
#[derive(Object, Serialize)]
#[oai(rename = "Artifact")]
pub struct ArtifactBody {
    id: Text,
    name: Text,
    version: u64,
    /// The content. Each part is `{text}`, `{data}` or `{file}`, with an optional `media_type`.
    parts: Vec<AnyObject>,
    created_by: Text,
    created_at: Text,
    /// The id of the previous version.
    #[oai(read_only)]
    #[serde(skip_serializing_if = "Option::is_none")]
    supersedes: Option<Text>,
    /// The event that approval appends: `{aggregate_id, event_type, payload, expected_version}`.
    #[oai(read_only)]
    #[serde(skip_serializing_if = "Option::is_none")]
    effect: Option<AnyObject>,
    /// The changes that a person made to the previous version, as a JSON patch (RFC 6902).
    #[oai(read_only)]
    #[serde(skip_serializing_if = "Option::is_none")]
    patch: Option<Vec<AnyObject>>,
}

impl From<ArtifactView> for ArtifactBody {
    fn from(view: ArtifactView) -> ArtifactBody {
        let ArtifactView { id, name, version, parts, created_by, created_at, supersedes, effect, patch } = view;
        ArtifactBody {
            id: id.into(),
            name: name.into(),
            version,
            parts: parts.into_iter().map(AnyObject).collect(),
            created_by: created_by.into(),
            created_at: created_at.into(),
            supersedes: supersedes.map(Text),
            effect: effect.map(AnyObject),
            patch: patch.map(|patch| patch.into_iter().map(AnyObject).collect()),
        }
    }
}

/// An event of a task.
#[derive(Object, Serialize)]
pub struct TimelineEntry {
    position: u64,
    version: u64,
    event_id: Text,
    event_type: Text,
    occurred_at: String,
    actor: Text,
    /// The id of the person who sent the request.
    user_id: Option<Text>,
    /// The id of the key that authenticated the request. Null for a session.
    key_id: Option<Text>,
    /// The id of the agent for which the request acted.
    agent_id: Option<Text>,
    /// The status after the event, if the event changes the status.
    status: Option<String>,
    /// The ids of the messages that the event added.
    messages: Vec<Text>,
    /// The ids of the artifacts that the event added.
    artifacts: Vec<Text>,
    /// The other fields of the event.
    detail: AnyObject,
}

impl From<TimelineView> for TimelineEntry {
    fn from(view: TimelineView) -> TimelineEntry {
        let TimelineView { position, version, event_id, event_type, occurred_at, actor, status, .. } = view;
        TimelineEntry {
            position,
            version,
            event_id: event_id.into(),
            event_type: event_type.into(),
            occurred_at: format_date(occurred_at),
            actor: actor.into(),
            user_id: view.user_id.map(Text),
            key_id: view.key_id.map(Text),
            agent_id: view.agent_id.map(Text),
            status: status.map(|status| status.name().to_owned()),
            messages: view.messages.into_iter().map(Text).collect(),
            artifacts: view.artifacts.into_iter().map(Text).collect(),
            detail: view.detail.into(),
        }
    }
}
