//! Messages, artifacts and effects in requests.

use std::sync::Arc;

use foldwork_engine::Error;
use foldwork_engine::model::depth::{self, MAX_CONTENT_DEPTH};
use foldwork_engine::model::task::content::{
    ArtifactDraft, Effect, Message, check_name, content_part, data_part, text_part,
};
use foldwork_engine::model::value::{Object, Value};
use foldwork_engine::model::violation::{Violation, Violations};

use super::AddArtifact;
use crate::wire::json::{AnyObject, AnyValue};
use crate::wire::names;
use crate::wire::request_body::{FromFields, SentField, SentText, exact, first, sent_fields, several};

/// The maximum number of parts in a message or artifact.
const MAX_PARTS: usize = 100;
/// The fields of a part.
const PART_FIELDS: [&str; 4] = ["text", "data", "file", "media_type"];
/// The maximum number of artifacts in the field `artifacts` of a request.
const MAX_ARTIFACTS: usize = 100;

/// The parts of a message or an artifact.
pub type SentParts = SentField<Option<Vec<AnyObject>>>;

/// Reads a message from its parts, or from the field of `texts` that is present. Returns `None` if the request contains
/// neither parts nor a text, and fails if the request contains several of these fields.
pub fn message(parts: &SentParts, in_reply_to: &SentText, texts: &[&SentText]) -> Result<Option<Message>, Error> {
    let mut violations = Violations::default();
    let given: Vec<(&str, bool)> =
        std::iter::once(parts.given()).chain(texts.iter().map(|text| text.given())).collect();
    several(&given).into_iter().for_each(|wrong| violations.add(wrong.pointer, wrong.message));
    let in_reply_to = in_reply_to.text_or_violation(&mut violations);
    let message = match parts.value() {
        Some(value) => {
            let parts = read_parts(value, "/parts", &mut violations);
            Some(Message { at: None, parts, in_reply_to })
        }
        None => first(texts).and_then(|sent| {
            let text = sent.text_or_violation(&mut violations)?;
            Some(Message { at: Some(sent.pointer()), parts: vec![text_part(&text)], in_reply_to })
        }),
    };
    Ok(violations.finish(message)?)
}

/// Reads a message that must have content.
pub fn required_message(parts: &SentParts, in_reply_to: &SentText, texts: &[&SentText]) -> Result<Message, Error> {
    const TEXT: &str = "expected a string that is not blank";
    let missing = || match texts.first() {
        Some(sent) => sent.invalid(TEXT),
        None => Error::invalid_at("/parts", "expected an array of parts"),
    };
    let message = message(parts, in_reply_to, texts)?.ok_or_else(missing)?;
    let is_blank = |part: &Value| part.get("text").and_then(Value::as_str).is_some_and(|text| text.trim().is_empty());
    if !message.parts.iter().all(is_blank) {
        return Ok(message);
    }
    Err(match message.at {
        Some(pointer) => Error::invalid_at(pointer, TEXT),
        None => Error::invalid_at("/parts", "expected at least one part that is not a blank text"),
    })
}

/// Reads the artifacts of a request: the artifact in `artifact`, followed by the artifacts in `artifacts`.
pub fn drafts(
    artifact: &SentField<Option<AnyObject>>,
    artifacts: &SentField<Option<Vec<AnyObject>>>,
) -> Result<Vec<ArtifactDraft>, Vec<Violation>> {
    let mut drafts = Vec::new();
    if let Some(one) = artifact.exact() {
        drafts.push(read_draft(&one, "/artifact")?);
    }
    if !artifacts.is_absent() {
        let Some(several) = artifacts.exact_items().filter(|items| items.len() <= MAX_ARTIFACTS) else {
            let message = format!("expected an array of at most {MAX_ARTIFACTS} artifacts");
            return Err(vec![Violation { pointer: "/artifacts".into(), message }]);
        };
        for (number, one) in several.iter().enumerate() {
            drafts.push(read_draft(one, &format!("/artifacts/{number}"))?);
        }
    }
    Ok(drafts)
}

sent_fields! {
    /// An artifact in a request: `{supersedes? | id?, name?, parts? | text? | data? | content?, effect?}`. A new
    /// version of an artifact may omit the content, and then keeps the content of the previous version.
    struct SentDraft;

    id: SentText,
    supersedes: SentText,
    name: SentText,
    parts: SentParts,
    text: SentText,
    data: SentField<Option<AnyValue>>,
    content: SentField<Option<AnyValue>>,
    effect: SentField<Option<AnyObject>>,
}

fn read_draft(value: &Value, at: &str) -> Result<ArtifactDraft, Vec<Violation>> {
    let mut violations = Violations::default();
    let Some(sent) = value.as_object() else {
        violations.add(at, "expected an object");
        return Err(violations.into_vec());
    };
    // Rejects unknown fields, because an artifact with a misspelled `effect` would append nothing on approval.
    names::add_unknown(sent, SentDraft::NAMES, at, &mut violations);
    violations.finish(())?;
    SentDraft::from_fields(sent).read(at)
}

impl AddArtifact {
    /// Reads the artifact from the fields of the request.
    pub fn into_draft(self) -> Result<ArtifactDraft, Vec<Violation>> {
        let AddArtifact { id, supersedes, name, parts, text, data, content, effect, .. } = self;
        SentDraft { id, supersedes, name, parts, text, data, content, effect }.read("")
    }
}

impl SentDraft {
    /// Checks and converts the artifact. `at` is the JSON pointer of the artifact.
    fn read(self, at: &str) -> Result<ArtifactDraft, Vec<Violation>> {
        let mut inner = Violations::default();
        let content = [self.parts.given(), self.text.given(), self.data.given(), self.content.given()];
        for fields in [&content[..], &[self.supersedes.given(), self.id.given()]] {
            several(fields).into_iter().for_each(|wrong| inner.add(wrong.pointer, wrong.message));
        }
        let id = self.id.text_or_violation(&mut inner);
        let supersedes = self.supersedes.text_or_violation(&mut inner);
        let name = self.name.text_or_violation(&mut inner);
        if let Some(Err(allowed)) = name.as_deref().map(check_name) {
            inner.add("/name", allowed);
        }
        for (name, sent) in [("data", &self.data), ("content", &self.content)] {
            if let Some(value) = sent.value() {
                depth::check(value, MAX_CONTENT_DEPTH, format!("/{name}"), &mut inner);
            }
        }
        let text = self.text.text_or_violation(&mut inner);
        let parts = match (self.parts.value(), self.data.value(), text) {
            (Some(value), ..) => {
                read_parts(value, "/parts", &mut inner);
                self.parts.exact_items().map(|parts| parts.into_iter().map(exact_part).collect())
            }
            (None, Some(_), _) => self.data.exact().map(|data| vec![data_part(data)]),
            (None, None, Some(text)) => Some(vec![text_part(&text)]),
            (None, None, None) => self.content.exact().map(|content| vec![content_part(&content)]),
        };
        let drops_effect = self.effect.is_null();
        let effect = self.effect.exact().and_then(|effect| read_effect(&effect, "/effect", &mut inner));
        let mut violations = Violations::default();
        violations.add_below(at, inner);
        let supersedes = supersedes.or(id);
        violations.finish(ArtifactDraft { at: at.to_owned(), supersedes, name, parts, effect, drops_effect })
    }
}

sent_fields! {
    /// An effect in a request: the event that approval appends.
    struct SentEffect;

    aggregate_id: SentText,
    event_type: SentText,
    payload: SentField<Option<AnyObject>>,
    /// The version of the aggregate that the author of the effect has read.
    expected_version: SentField<Option<u64>>,
}

fn read_effect(value: &Value, at: &str, violations: &mut Violations) -> Option<Effect> {
    let Some(sent) = value.as_object() else {
        violations.add(at, "expected an object {aggregate_id?, event_type, payload?, expected_version?}");
        return None;
    };
    let mut inner = Violations::default();
    // Rejects unknown fields, because a misspelled `expected_version` would be ignored, and the effect could overwrite
    // changes that its author has not seen.
    names::add_unknown(sent, SentEffect::NAMES, "", &mut inner);
    let sent = SentEffect::from_fields(sent);
    let aggregate_id = sent.aggregate_id.text_or_violation(&mut inner);
    let event_type = sent.event_type.text_or_violation(&mut inner);
    let payload = match sent.payload.exact() {
        None => Some(Object::new()),
        Some(Value::Object(payload)) => Some(Arc::unwrap_or_clone(payload)),
        Some(_) => None,
    };
    if let Some(payload) = sent.payload.value() {
        depth::check(payload, MAX_CONTENT_DEPTH, "/payload", &mut inner);
    }
    let expected_version = sent.expected_version.value().and_then(|version| {
        let version = version.as_int().and_then(|version| u64::try_from(version).ok());
        if version.is_none() {
            inner.add("/expected_version", "expected the version of the aggregate, a whole number of at least 0");
        }
        version
    });
    violations.add_below(at, inner);
    if event_type.is_none() {
        violations.add(format!("{at}/event_type"), "required string");
    }
    if payload.is_none() {
        violations.add(format!("{at}/payload"), "expected an object");
    }
    Some(Effect { aggregate_id, event_type: event_type?, payload: payload?, expected_version })
}

/// Returns a part whose numbers in `data` keep the text that the client wrote.
fn exact_part(part: Value) -> Value {
    let Value::Object(fields) = &part else { return part };
    let Some((data, numbers)) = part.get("data").zip(fields.numbers_in("data")) else { return part };
    let mut fields = fields.rounded();
    fields.insert("data", exact(data, Some(numbers)));
    fields.into()
}

/// Reads a list of parts. Each part is `{text}`, `{data}` or `{file}`, with an optional `media_type`.
fn read_parts(value: &Value, at: &str, violations: &mut Violations) -> Vec<Value> {
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
            violations.add(
                format!("{at}/{number}"),
                "expected an object with one of text (a string), data and file (a string or an object), \
                 and an optional media_type (a string)",
            );
        } else if let Some(fields) = part.as_object() {
            names::add_unknown(fields, &PART_FIELDS, &format!("{at}/{number}"), violations);
        }
        depth::check(part, MAX_CONTENT_DEPTH, format!("{at}/{number}"), violations);
    }
    items.to_vec()
}
