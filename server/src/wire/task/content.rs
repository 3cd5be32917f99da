//! The contents of a task in responses: messages, artifacts and the timeline.

use foldwork_engine::model::date::format_date;
use foldwork_engine::model::task::view::{ArtifactView, MessageView, TimelineView};

use crate::wire::closed_sets::{OneOf, Speakers};
use crate::wire::json::{AnyObject, Text};
use crate::wire::shown::shown;

shown! {
    /// A message on a task.
    #[oai(rename = "Message")]
    pub struct MessageBody from view: MessageView;

    id: Text = view.id.into(),
    role: OneOf<Speakers> = view.role.name().into(),
    author: Text = view.author.into(),
    /// The content. Each part is `{text}`, `{data}` or `{file}`, with an optional `media_type`.
    parts: Vec<AnyObject> = view.parts.into_iter().map(AnyObject).collect(),
    text: Text = view.text.into(),
    created_at: Text = view.created_at.into(),
    @read_only in_reply_to: Option<Text> = view.in_reply_to.map(Text),
}

shown! {
    /// One version of a task's output.
    #[oai(rename = "Artifact")]
    pub struct ArtifactBody from view: ArtifactView;

    id: Text = view.id.into(),
    name: Text = view.name.into(),
    version: u64 = view.version,
    /// The content. Each part is `{text}`, `{data}` or `{file}`, with an optional `media_type`.
    parts: Vec<AnyObject> = view.parts.into_iter().map(AnyObject).collect(),
    created_by: Text = view.created_by.into(),
    created_at: Text = view.created_at.into(),
    /// The id of the previous version.
    @read_only supersedes: Option<Text> = view.supersedes.map(Text),
    /// The event that approval appends: `{aggregate_id, event_type, payload, expected_version}`.
    @read_only effect: Option<AnyObject> = view.effect.map(AnyObject),
    /// The changes that a person made to the previous version, as a JSON patch (RFC 6902).
    @read_only patch: Option<Vec<AnyObject>> = view.patch.map(|patch| patch.into_iter().map(AnyObject).collect()),
}

shown! {
    /// An event of a task.
    pub struct TimelineEntry from view: TimelineView;

    position: u64 = view.position,
    version: u64 = view.version,
    event_id: Text = view.event_id.into(),
    event_type: Text = view.event_type.into(),
    occurred_at: String = format_date(view.occurred_at),
    actor: Text = view.actor.into(),
    /// The id of the person who sent the request that appended the event.
    user_id: Option<Text> = view.user_id.map(Text),
    /// The id of the key that authenticated the request. Null for a session, and if no request appended the event.
    key_id: Option<Text> = view.key_id.map(Text),
    /// The id of the agent for which the request acted.
    agent_id: Option<Text> = view.agent_id.map(Text),
    /// The status after the event, even if the event did not change the status. Null if the event contains no status.
    status: Option<String> = view.status.map(|status| status.name().to_owned()),
    /// The ids of the messages that the event added.
    messages: Vec<Text> = view.messages.into_iter().map(Text).collect(),
    /// The ids of the artifacts that the event added.
    artifacts: Vec<Text> = view.artifacts.into_iter().map(Text).collect(),
    /// The fields of the event's payload, except the status, the messages, the artifacts and fields for internal use.
    detail: AnyObject = view.detail.into(),
}
