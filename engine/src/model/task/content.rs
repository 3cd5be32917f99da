//! Messages and artifacts of a task, and their stored form.

use std::sync::Arc;

use uuid::Uuid;

use crate::model::access;
use crate::model::date::format_date;
use crate::model::value::{Object, Value};

/// The name of an artifact that was sent without one.
pub const DEFAULT_NAME: &str = "output";

/// The author and creation time of a new message or artifact, and the seed of the generated ids. The same seed results
/// in the same ids.
#[derive(Debug, Clone)]
pub struct Stamp {
    pub seed: String,
    pub by: String,
    pub at_ms: i64,
    /// The caller of the request. `None` for plugins.
    pub sender: Option<Arc<Sender>>,
}

/// The caller of a request about a task.
#[derive(Debug, Clone)]
pub struct Sender {
    pub user_id: Arc<str>,
    pub key_id: Option<Arc<str>>,
    /// The role of the person in the workspace.
    pub role: access::Role,
    /// The key or session of the request.
    pub origin: Arc<str>,
    /// The origins of deliveries on which the caller does not decide: its own, and those above it.
    pub excluded: Vec<Arc<str>>,
}

impl Stamp {
    /// Returns the generated id of the item `number` of a kind.
    pub fn id(&self, kind: &str, number: usize) -> String {
        Uuid::new_v5(&Uuid::NAMESPACE_OID, format!("{}/{kind}/{number}", self.seed).as_bytes()).to_string()
    }
}

/// The role of a message's author.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    User,
    Agent,
    System,
}

impl Role {
    pub const ALL: [Role; 3] = [Role::User, Role::Agent, Role::System];

    /// Returns the role with this name.
    pub fn parse(name: &str) -> Option<Role> {
        Role::ALL.into_iter().find(|role| role.name() == name)
    }

    pub fn name(self) -> &'static str {
        match self {
            Role::User => "user",
            Role::Agent => "agent",
            Role::System => "system",
        }
    }
}

/// A message about a task.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Message {
    pub parts: Vec<Value>,
    pub in_reply_to: Option<String>,
}

impl Message {
    /// Creates a message that consists of a single text.
    pub fn of_text(text: &str) -> Message {
        Message { parts: vec![text_part(text)], in_reply_to: None }
    }

    /// Returns the approximate size of the stored message, in bytes.
    pub fn size_bytes(&self) -> usize {
        2 * self.parts.iter().map(Value::size_bytes).sum::<usize>()
    }

    /// Returns the message in its stored form.
    pub fn entry(&self, role: Role, stamp: &Stamp) -> Value {
        let texts: Vec<&str> = self.parts.iter().filter_map(|part| part.get("text")?.as_str()).collect();
        let mut entry = Object::from_iter([
            ("id", Value::from(stamp.id("message", 0))),
            ("role", role.name().into()),
            ("author", stamp.by.as_str().into()),
            ("parts", self.parts.clone().into()),
            ("text", texts.join("\n").into()),
            ("created_at", format_date(stamp.at_ms).into()),
        ]);
        if let Some(in_reply_to) = &self.in_reply_to {
            entry.push("in_reply_to", in_reply_to.as_str());
        }
        entry.into()
    }
}

/// An event that is appended when an artifact is approved.
#[derive(Debug, Clone, PartialEq)]
pub struct Effect {
    /// The id of the aggregate to which the event is appended. `None` means the task's subject.
    pub aggregate_id: Option<String>,
    pub event_type: String,
    pub payload: Object,
    /// The version of the aggregate that the author of the effect has read. 0 means that there was no such aggregate.
    /// Effects that were stored before versions were kept have none.
    pub expected_version: Option<u64>,
}

impl Effect {
    /// Returns the stored form of the effect.
    pub fn entry(&self) -> Value {
        let mut entry = Object::with_capacity(4);
        if let Some(aggregate_id) = &self.aggregate_id {
            entry.push("aggregate_id", aggregate_id.as_str());
        }
        entry.push("event_type", self.event_type.as_str());
        entry.push("payload", self.payload.clone());
        if let Some(version) = self.expected_version {
            entry.push("expected_version", version as i64);
        }
        entry.into()
    }

    /// Returns the effect of a stored artifact.
    pub fn of(artifact: &Object) -> Option<Effect> {
        let stored = named(artifact, "effect")?;
        let text = |name: &str| stored.get(name).and_then(Value::as_str).map(str::to_owned);
        let payload = match stored.get("payload") {
            None | Some(Value::Null) => Object::new(),
            Some(payload) => payload.as_object()?.clone(),
        };
        let expected_version = stored.get("expected_version").and_then(Value::as_int);
        Some(Effect {
            aggregate_id: text("aggregate_id"),
            event_type: text("event_type")?,
            payload,
            expected_version: expected_version.and_then(|version| u64::try_from(version).ok()),
        })
    }
}

/// An artifact in a request. Fields that are missing keep the values of the previous version.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Draft {
    /// The JSON pointer of the draft in its request.
    pub at: String,
    /// The id of the artifact version that this draft replaces.
    pub supersedes: Option<String>,
    pub name: Option<String>,
    pub parts: Option<Vec<Value>>,
    pub effect: Option<Effect>,
    /// Whether the artifact has no effect if `effect` is `None`, even if the previous version has one.
    pub drops_effect: bool,
}

impl Draft {
    /// Returns the approximate size of the stored artifact, in bytes. The effect counts twice because it is also
    /// appended as an event.
    pub fn size_bytes(&self) -> usize {
        let effect = self.effect.as_ref().map_or(0, |effect| effect.payload.size_bytes());
        2 * effect + self.parts.iter().flatten().map(Value::size_bytes).sum::<usize>()
    }

    /// Returns the stored form of the artifact version that this draft creates. `before` is the previous version, or
    /// `None` for the first one.
    pub fn entry(&self, before: Option<&Object>, number: usize, stamp: &Stamp) -> Object {
        let previous = |name: &str| before.and_then(|before| named(before, name)).cloned();
        let version = previous("version").and_then(|version| version.as_int()).unwrap_or(0) + 1;
        let name = self.name.as_deref().map(Value::from).or_else(|| previous("name"));
        let parts = self.parts.clone().map(Value::from).or_else(|| previous("parts"));
        let mut entry = Object::from_iter([
            ("id", Value::from(stamp.id("artifact", number))),
            ("name", name.unwrap_or_else(|| DEFAULT_NAME.into())),
            ("version", version.into()),
            ("parts", parts.unwrap_or_else(|| Vec::new().into())),
            ("created_by", stamp.by.as_str().into()),
            ("created_at", format_date(stamp.at_ms).into()),
        ]);
        if let Some(before) = previous("id") {
            entry.push("supersedes", before);
        }
        let kept = || previous("effect").filter(|_| !self.drops_effect);
        if let Some(effect) = self.effect.as_ref().map(Effect::entry).or_else(kept) {
            entry.push("effect", effect);
        }
        entry
    }
}

/// Maximum length of an artifact's name, in characters.
const MAX_NAME: usize = 200;

/// Returns what is allowed if the name of an artifact is not.
pub fn check_name(name: &str) -> Result<(), String> {
    let fits = !name.trim().is_empty() && name.chars().nth(MAX_NAME).is_none();
    if fits { Ok(()) } else { Err(format!("expected 1 to {MAX_NAME} characters")) }
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

/// Returns the value of a field, or `None` if the field is missing or null.
fn named<'o>(object: &'o Object, name: &str) -> Option<&'o Value> {
    object.get(name).filter(|value| !value.is_null())
}
