//! Messages and artifacts of a task: parsing from requests, and conversion to the stored form.

use uuid::Uuid;

use crate::model::date::format_date;
use crate::model::depth::{self, MAX_CONTENT_DEPTH};
use crate::model::value::{Object, Value};
use crate::model::violation::{Violation, Violations};

/// Maximum length of an artifact's name, in characters.
const MAX_NAME: usize = 200;
/// Maximum number of parts in a message or artifact, and of artifacts in a request.
const MAX_PARTS: usize = 100;
pub const MAX_ARTIFACTS: usize = 100;
/// The name of an artifact that was sent without one.
const DEFAULT_NAME: &str = "output";

/// The author and creation time of a new message or artifact, and the seed of the generated ids. The same seed results
/// in the same ids.
#[derive(Debug, Clone)]
pub struct Stamp {
    pub seed: String,
    pub by: String,
    pub at_ms: i64,
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

    /// Reads a message from the field `parts`, or from a text in one of the fields `names`. Returns `None` if there are
    /// neither parts nor a text.
    pub fn read(sent: &Object, names: &[&str]) -> Result<Option<Message>, Vec<Violation>> {
        let mut violations = Violations::default();
        let in_reply_to = text_of(sent, "in_reply_to", &mut violations);
        let parts = match named(sent, "parts") {
            Some(value) => Some(parts(value, "/parts", &mut violations)),
            None => first_text(sent, names, &mut violations).map(|text| vec![text_part(&text)]),
        };
        violations.finish(parts.map(|parts| Message { parts, in_reply_to }))
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
}

impl Effect {
    pub fn read(value: &Value, at: &str, violations: &mut Violations) -> Option<Effect> {
        let Some(sent) = value.as_object() else {
            violations.add(at, "expected an object {aggregate_id?, event_type, payload}");
            return None;
        };
        let mut inner = Violations::default();
        let aggregate_id = text_of(sent, "aggregate_id", &mut inner);
        let event_type = text_of(sent, "event_type", &mut inner);
        let payload = match named(sent, "payload") {
            None => Some(Object::new()),
            Some(Value::Object(payload)) => Some((**payload).clone()),
            Some(_) => None,
        };
        if let Some(payload) = named(sent, "payload") {
            depth::check(payload, MAX_CONTENT_DEPTH, "/payload", &mut inner);
        }
        for violation in inner.into_vec() {
            violations.add(format!("{at}{}", violation.pointer), violation.message);
        }
        if event_type.is_none() {
            violations.add(format!("{at}/event_type"), "required string");
        }
        if payload.is_none() {
            violations.add(format!("{at}/payload"), "expected an object");
        }
        Some(Effect { aggregate_id, event_type: event_type?, payload: payload? })
    }

    /// Returns the stored form of the effect.
    pub fn entry(&self) -> Value {
        let mut entry = Object::with_capacity(3);
        if let Some(aggregate_id) = &self.aggregate_id {
            entry.push("aggregate_id", aggregate_id.as_str());
        }
        entry.push("event_type", self.event_type.as_str());
        entry.push("payload", self.payload.clone());
        entry.into()
    }

    /// Returns the effect of a stored artifact.
    pub fn of(artifact: &Object) -> Option<Effect> {
        Effect::read(named(artifact, "effect")?, "", &mut Violations::default())
    }
}

/// An artifact in a request. Fields that are missing keep the values of the previous version.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Draft {
    /// The id of the artifact version that this draft replaces.
    pub supersedes: Option<String>,
    pub name: Option<String>,
    pub parts: Option<Vec<Value>>,
    pub effect: Option<Effect>,
}

impl Draft {
    /// Reads a draft from `{id?, name?, parts | text | data | content, effect?}`. `at` is the JSON pointer of the
    /// value.
    pub fn read(value: &Value, at: &str) -> Result<Draft, Vec<Violation>> {
        let mut violations = Violations::default();
        let Some(sent) = value.as_object() else {
            violations.add(at, "expected an object");
            return Err(violations.into_vec());
        };
        let mut inner = Violations::default();
        let (id, supersedes) = (text_of(sent, "id", &mut inner), text_of(sent, "supersedes", &mut inner));
        let name = text_of(sent, "name", &mut inner);
        if name.as_ref().is_some_and(|name| name.trim().is_empty() || name.chars().count() > MAX_NAME) {
            inner.add("/name", format!("expected 1 to {MAX_NAME} characters"));
        }
        for name in ["data", "content"] {
            if let Some(value) = named(sent, name) {
                depth::check(value, MAX_CONTENT_DEPTH, &format!("/{name}"), &mut inner);
            }
        }
        let parts = match (named(sent, "parts"), named(sent, "data"), first_text(sent, &["text"], &mut inner)) {
            (Some(value), ..) => Some(parts(value, "/parts", &mut inner)),
            (None, Some(data), _) => Some(vec![data_part(data.clone())]),
            (None, None, Some(text)) => Some(vec![text_part(&text)]),
            (None, None, None) => named(sent, "content").map(|content| vec![content_part(content)]),
        };
        let effect = named(sent, "effect").and_then(|effect| Effect::read(effect, "/effect", &mut inner));
        for violation in inner.into_vec() {
            violations.add(format!("{at}{}", violation.pointer), violation.message);
        }
        violations.finish(Draft { supersedes: supersedes.or(id), name, parts, effect })
    }

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
        if let Some(effect) = self.effect.as_ref().map(Effect::entry).or_else(|| previous("effect")) {
            entry.push("effect", effect);
        }
        entry
    }
}

/// Reads the artifacts of a request: one under `artifact`, several under `artifacts`.
pub fn drafts(sent: &Object) -> Result<Vec<Draft>, Vec<Violation>> {
    let mut drafts = Vec::new();
    if let Some(one) = named(sent, "artifact") {
        drafts.push(Draft::read(one, "/artifact")?);
    }
    if let Some(several) = named(sent, "artifacts") {
        let is_bounded = |items: &&[Value]| items.len() <= MAX_ARTIFACTS;
        let Some(several) = several.as_array().filter(is_bounded) else {
            let message = format!("expected an array of at most {MAX_ARTIFACTS} artifacts");
            return Err(vec![Violation { pointer: "/artifacts".into(), message }]);
        };
        for (number, one) in several.iter().enumerate() {
            drafts.push(Draft::read(one, &format!("/artifacts/{number}"))?);
        }
    }
    Ok(drafts)
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

/// Reads a list of parts. Each part is `{text}`, `{data}` or `{file}`, with an optional `media_type`.
fn parts(value: &Value, at: &str, violations: &mut Violations) -> Vec<Value> {
    let is_bounded = |items: &&[Value]| !items.is_empty() && items.len() <= MAX_PARTS;
    let Some(items) = value.as_array().filter(is_bounded) else {
        violations.add(at, format!("expected an array of 1 to {MAX_PARTS} parts"));
        return Vec::new();
    };
    for (number, part) in items.iter().enumerate() {
        let has = |name: &str| part.get(name).is_some();
        let kinds = ["text", "data", "file"].into_iter().filter(|kind| has(kind)).count();
        let is_text = part.get("text").is_none_or(|text| text.as_str().is_some());
        let is_file = part.get("file").is_none_or(|file| file.as_str().is_some() || file.as_object().is_some());
        let is_typed = part.get("media_type").is_none_or(|media_type| media_type.as_str().is_some());
        if kinds != 1 || !is_text || !is_file || !is_typed {
            violations.add(format!("{at}/{number}"), "expected {text}, {data} or {file}, with an optional media_type");
        }
        depth::check(part, MAX_CONTENT_DEPTH, &format!("{at}/{number}"), violations);
    }
    items.to_vec()
}

/// Returns the value of a field, or `None` if the field is missing or null.
pub fn named<'o>(object: &'o Object, name: &str) -> Option<&'o Value> {
    object.get(name).filter(|value| !value.is_null())
}

/// Returns the text of a field. Adds a violation if the field has a value of another type.
pub fn text_of(object: &Object, name: &str, violations: &mut Violations) -> Option<String> {
    match named(object, name)? {
        Value::String(text) => Some(text.to_string()),
        _ => {
            violations.add(format!("/{name}"), "expected a string");
            None
        }
    }
}

/// Returns the text of the first field that is present, in the order of the given names.
pub fn first_text(object: &Object, names: &[&str], violations: &mut Violations) -> Option<String> {
    let name = names.iter().find(|name| named(object, name).is_some())?;
    text_of(object, name, violations)
}
