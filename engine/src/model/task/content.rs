//! Messages and artifacts of a task, and their stored form.

use std::sync::Arc;

use strum::{EnumString, IntoStaticStr, VariantArray};
use uuid::Uuid;

use crate::model::access;
use crate::model::closed_set::closed_set;
use crate::model::date::format_date;
use crate::model::value::{Object, Value};
use crate::model::{json, written};

/// The name of an artifact that was sent without a name.
pub const DEFAULT_NAME: &str = "output";

/// The author, the sender and the creation time of a new message or artifact, and the seed of the generated ids. The
/// same seed results in the same ids.
#[derive(Debug, Clone)]
pub struct Stamp {
    pub seed: String,
    pub by: String,
    pub at_ms: i64,
    /// The caller of the request. `None` for plugins.
    pub sender: Option<Arc<TaskSender>>,
}

/// The caller of a request about a task.
#[derive(Debug, Clone)]
pub struct TaskSender {
    pub user_id: Arc<str>,
    pub key_id: Option<Arc<str>>,
    /// The role of the caller in the workspace.
    pub role: access::Role,
    /// The key or session of the request, followed by the credentials from which the key was derived, and by the user
    /// as `user:ID`. If the request has neither a key nor a session, the first item is the user as well.
    pub lineage: Vec<Arc<str>>,
    /// The agents to which the key of the request is bound. `None` if the request comes from a person: with a session,
    /// or with a key that is not bound to agents.
    pub agents: Option<Arc<[Arc<str>]>>,
    /// Whether the caller may decide on the caller's own deliveries.
    pub decides_on_own: bool,
}

impl TaskSender {
    /// Returns the key or session of the request, or the user as `user:ID` if the request has neither.
    pub fn origin(&self) -> Option<&Arc<str>> {
        self.lineage.first()
    }

    /// Returns the credentials from which the sender's key was derived, followed by the sender's user as `user:ID`.
    /// These credentials and this user may not make the final decision on the sender's deliveries, unless the settings
    /// allow decisions on own deliveries ([`TaskSender::decides_on_own`]). Returns an empty list for a key that is
    /// bound to agents. Such a key cannot decide, so the creator of the key may decide on the deliveries.
    pub fn above(&self) -> &[Arc<str>] {
        if self.agents.is_some() { &[] } else { self.lineage.get(1..).unwrap_or_default() }
    }

    /// Returns the last item of the lineage, which is the user as `user:ID`.
    pub fn user(&self) -> Option<&Arc<str>> {
        self.lineage.last()
    }

    /// Returns whether the sender may replace the output of an author. A key that is bound to agents may do so only if
    /// the author is one of these agents. The sender may claim an unassigned task only if the sender may replace the
    /// output of all authors in the task.
    pub fn may_replace(&self, author: &str) -> bool {
        self.agents.as_ref().is_none_or(|agents| agents.iter().any(|agent| **agent == *author))
    }
}

impl Stamp {
    /// Returns whether the plugin or caller that acts may replace the output of `author`. A plugin may replace only its
    /// own output. For a caller, returns the result of [`TaskSender::may_replace`].
    pub fn may_replace(&self, author: &str) -> bool {
        match &self.sender {
            Some(sender) => sender.may_replace(author),
            None => self.by == author,
        }
    }

    /// Returns the id that is generated for the item with this number and kind.
    pub fn id(&self, kind: &str, number: usize) -> String {
        Uuid::new_v5(&Uuid::NAMESPACE_OID, format!("{}/{kind}/{number}", self.seed).as_bytes()).to_string()
    }
}

closed_set!(AuthorRole);

/// The role of a message's author.
#[derive(Debug, Clone, Copy, PartialEq, Eq, EnumString, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "lowercase")]
pub enum AuthorRole {
    User,
    Agent,
    System,
}

/// A message about a task.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Message {
    /// The JSON pointer of the message's text in the request. `None` if the request contains the message as parts.
    pub at: Option<String>,
    pub parts: Vec<Value>,
    pub in_reply_to: Option<String>,
}

impl Message {
    /// Creates a message that consists of a single text.
    pub fn of_text(text: &str) -> Message {
        Message { parts: vec![text_part(text)], ..Message::default() }
    }

    /// Returns the texts of all parts, separated by line breaks.
    pub fn text(&self) -> String {
        let texts: Vec<&str> = self.parts.iter().filter_map(|part| part.get("text")?.as_str()).collect();
        texts.join("\n")
    }

    /// Returns the approximate size of the stored message, in bytes.
    pub fn size_bytes(&self) -> usize {
        2 * self.parts.iter().map(Value::size_bytes).sum::<usize>()
    }

    /// Returns the message in its stored form.
    pub fn entry(&self, role: AuthorRole, stamp: &Stamp) -> Value {
        let mut entry = Object::from_iter([
            ("id", Value::from(stamp.id("message", 0))),
            ("role", role.name().into()),
            ("author", stamp.by.as_str().into()),
            ("parts", self.parts.clone().into()),
            ("text", self.text().into()),
            ("created_at", format_date(stamp.at_ms).into()),
        ]);
        entry.push_some("in_reply_to", self.in_reply_to.as_deref());
        entry.into()
    }
}

/// The field of a stored effect that contains the payload as text. The field exists if the payload has numbers whose
/// written form must be kept.
const PAYLOAD_TEXT: &str = "payload_text";

/// An event that is appended when an artifact is approved, or when a scripted agent delivers the artifact without a
/// review.
#[derive(Debug, Clone, PartialEq)]
pub struct Effect {
    /// The id of the aggregate to which the event is appended. `None` means the task's subject.
    pub aggregate_id: Option<String>,
    pub event_type: String,
    /// The payload of the event, with the written forms of its numbers.
    pub payload: Object,
    /// The version in which the author of the effect has read the aggregate. 0 means that the aggregate did not exist.
    /// `None` if a request gives no version, and for effects that were stored before this field existed.
    pub expected_version: Option<u64>,
}

impl Effect {
    /// Returns the effect of a stored artifact in the form for readers. The numbers in the payload keep their written
    /// forms.
    pub fn shown(artifact: &Object) -> Option<Arc<Object>> {
        let Value::Object(stored) = artifact.given("effect")? else { return None };
        match Effect::of(artifact).filter(|_| stored.contains(PAYLOAD_TEXT)) {
            Some(Effect { payload, .. }) => {
                let mut shown = (**stored).clone();
                shown.insert("payload", payload);
                shown.remove(PAYLOAD_TEXT);
                Some(Arc::new(shown))
            }
            None => Some(stored.clone()),
        }
    }

    /// Returns a stored effect without the text of its payload.
    pub(super) fn without_text(stored: &Value) -> Value {
        match stored {
            Value::Object(stored) if stored.contains(PAYLOAD_TEXT) => {
                let mut effect = (**stored).clone();
                effect.remove(PAYLOAD_TEXT);
                effect.into()
            }
            other => other.clone(),
        }
    }

    /// Returns the stored form of the effect.
    pub fn entry(&self) -> Value {
        let mut entry = Object::with_capacity(5);
        entry.push_some("aggregate_id", self.aggregate_id.as_deref());
        entry.push("event_type", self.event_type.as_str());
        entry.push("payload", self.payload.rounded());
        if self.payload.has_numbers() {
            entry.push(PAYLOAD_TEXT, json::text(&self.payload));
        }
        entry.push_some("expected_version", self.expected_version.map(|version| version as i64));
        entry.into()
    }

    /// Returns the effect of a stored artifact.
    pub fn of(artifact: &Object) -> Option<Effect> {
        let stored = artifact.given("effect")?;
        let text = |name: &str| stored.get(name).and_then(Value::as_str).map(str::to_owned);
        let payload = match stored.get("payload") {
            None | Some(Value::Null) => Object::new(),
            Some(payload) => payload.as_object()?.clone(),
        };
        // The payload in the state has rounded numbers. The text of the payload has the written forms.
        let written = stored.get(PAYLOAD_TEXT).and_then(Value::as_str).and_then(written::read);
        let payload = written.filter(|written| *written == payload).unwrap_or(payload);
        let expected_version = stored.get("expected_version").and_then(Value::as_int);
        Some(Effect {
            aggregate_id: text("aggregate_id"),
            event_type: text("event_type")?,
            payload,
            expected_version: expected_version.and_then(|version| u64::try_from(version).ok()),
        })
    }
}

/// An artifact in a request. A missing field keeps the value of the previous version.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ArtifactDraft {
    /// The JSON pointer of the draft in its request.
    pub at: String,
    /// The id of the artifact version that this draft replaces.
    pub supersedes: Option<String>,
    pub name: Option<String>,
    /// The content. Data in a part keeps the written forms of its numbers.
    pub parts: Option<Vec<Value>>,
    pub effect: Option<Effect>,
    /// Whether a draft without an effect removes the effect of the previous version.
    pub drops_effect: bool,
}

impl ArtifactDraft {
    pub fn has_effect(&self) -> bool {
        self.effect.is_some()
    }

    /// Returns the approximate size of the stored artifact, in bytes. The effect counts twice because it is also
    /// appended as an event.
    pub fn size_bytes(&self) -> usize {
        let effect = self.effect.as_ref().map_or(0, |effect| effect.payload.size_bytes());
        2 * effect + self.parts.iter().flatten().map(Value::size_bytes).sum::<usize>()
    }

    /// Returns the stored form of the artifact version that this draft creates. `before` is the previous version, or
    /// `None` for the first version.
    pub fn entry(&self, before: Option<&Object>, number: usize, stamp: &Stamp) -> Object {
        let previous = |name: &str| before.and_then(|before| before.given(name)).cloned();
        let version = previous("version").and_then(|version| version.as_int()).unwrap_or(0) + 1;
        let name = self.name.as_deref().map(Value::from).or_else(|| previous("name"));
        let parts = self.parts.as_deref().map(stored_parts).or_else(|| previous("parts"));
        let mut entry = Object::from_iter([
            ("id", Value::from(stamp.id("artifact", number))),
            ("name", name.unwrap_or_else(|| DEFAULT_NAME.into())),
            ("version", version.into()),
            ("parts", parts.unwrap_or_else(|| Vec::new().into())),
            ("created_by", stamp.by.as_str().into()),
            ("created_at", format_date(stamp.at_ms).into()),
        ]);
        entry.push_some("supersedes", previous("id"));
        let kept = || previous("effect").filter(|_| !self.drops_effect);
        entry.push_some("effect", self.effect.as_ref().map(Effect::entry).or_else(kept));
        entry
    }
}

/// Returns the stored form of an artifact's parts. Numbers become the nearest doubles, as in every state.
pub fn stored_parts(parts: &[Value]) -> Value {
    let stored = |part: &Value| match (part.as_object(), part.get("data")) {
        (Some(fields), Some(Value::Object(data))) if data.has_numbers() => {
            let mut fields = fields.clone();
            fields.insert("data", data.rounded());
            Value::from(fields)
        }
        _ => part.clone(),
    };
    parts.iter().map(stored).collect()
}

/// The maximum length of an artifact's name, in characters.
const MAX_NAME: usize = 200;

/// Checks the name of an artifact. The error describes the allowed names.
pub fn check_name(name: &str) -> Result<(), String> {
    let fits = !name.trim().is_empty() && name.chars().nth(MAX_NAME).is_none();
    if fits { Ok(()) } else { Err(format!("expected 1 to {MAX_NAME} characters, not only white space")) }
}

pub fn text_part(text: &str) -> Value {
    Object::from_iter([("text", text)]).into()
}

pub fn data_part(data: Value) -> Value {
    Object::from_iter([("data", data)]).into()
}

/// Converts content to a part: a text to a text part, and any other content to a data part.
pub fn content_part(content: &Value) -> Value {
    content.as_str().map_or_else(|| data_part(content.clone()), text_part)
}
