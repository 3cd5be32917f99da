//! Approval with changes: creates the next versions of a task's artifacts, and records the changes as JSON patches.

use super::content::{Draft, Effect, Stamp, content_part, data_part};
use super::record::Task;
use super::review::plain;
use crate::model::depth::{self, MAX_CONTENT_DEPTH};
use crate::model::excerpt::excerpt;
use crate::model::json_schema::Meter;
use crate::model::value::{Object, Value};
use crate::model::violation::{Violation, Violations};

/// The changes that a person requests.
#[derive(Debug, Clone, PartialEq)]
pub enum Edit {
    /// Fields to merge into the artifact's data (RFC 7396).
    Modifications(Object),
    /// New content that replaces the artifact's parts.
    Content(Value),
    /// New versions of artifacts. Each draft identifies the artifact by its id, by its name, or, without both, by its
    /// position.
    Artifacts(Vec<Draft>),
}

impl Edit {
    /// Rejects changes that are nested too deeply to be stored in an artifact. Does not check drafts, because
    /// they are checked when they are read.
    pub fn check(&self) -> Result<(), Vec<Violation>> {
        let mut violations = Violations::default();
        match self {
            Edit::Modifications(modifications) if !modifications.nests_within(MAX_CONTENT_DEPTH) => {
                violations.add("/modifications", depth::too_deep(MAX_CONTENT_DEPTH));
            }
            Edit::Content(content) => depth::check(content, MAX_CONTENT_DEPTH, "/content", &mut violations),
            Edit::Modifications(_) | Edit::Artifacts(_) => {}
        }
        violations.finish(())
    }

    /// Returns the approximate size of the changes, in bytes.
    pub fn size_bytes(&self) -> usize {
        match self {
            Edit::Modifications(modifications) => modifications.size_bytes(),
            Edit::Content(content) => content.size_bytes(),
            Edit::Artifacts(drafts) => drafts.iter().map(Draft::size_bytes).sum(),
        }
    }
}

/// Returns the artifact versions that an edit creates, after checking them against the schema of the task's review.
pub fn edited(task: &Task<'_>, edit: &Edit, stamp: &Stamp) -> Result<Vec<Object>, Vec<Violation>> {
    edit.check()?;
    let current = task.current_artifacts();
    let pairs: Vec<(Option<&Object>, Draft)> = match edit {
        Edit::Modifications(modifications) => {
            let before = current.last().copied();
            vec![(before, modified(before, modifications))]
        }
        Edit::Content(content) => {
            let before = current.last().copied();
            vec![(before, with_parts(before, vec![content_part(content)]))]
        }
        Edit::Artifacts(drafts) => matched(&current, drafts)?,
    };
    let schema = task.review().schema().map_err(|refused| vec![Violation { pointer: String::new(), ..refused }])?;
    let mut meter = Meter::default();
    let (mut entries, mut violations) = (Vec::with_capacity(pairs.len()), Vec::new());
    for (number, (before, draft)) in pairs.iter().enumerate() {
        let mut entry = draft.entry(*before, number, stamp);
        if let (Some(schema), Some(value)) = (&schema, argument(&entry)) {
            violations.extend(schema.violations_within(&plain(&value), &mut meter));
        }
        if let Some(before) = before {
            entry.push("patch", difference(before, &entry));
        }
        entries.push(entry);
    }
    if violations.is_empty() { Ok(entries) } else { Err(violations) }
}

/// Pairs each draft with the artifact version that the draft replaces, if there is one.
fn matched<'a>(current: &[&'a Object], drafts: &[Draft]) -> Result<Vec<(Option<&'a Object>, Draft)>, Vec<Violation>> {
    let has = |artifact: &Object, name: &str, text: &str| artifact.get(name).and_then(Value::as_str) == Some(text);
    let mut pairs = Vec::with_capacity(drafts.len());
    for (number, draft) in drafts.iter().enumerate() {
        let before = match (&draft.supersedes, &draft.name) {
            (Some(id), _) => match current.iter().find(|artifact| has(artifact, "id", id)) {
                Some(found) => Some(*found),
                None => {
                    let message = format!("the task has no artifact with the id {}", excerpt(&id.as_str().into()));
                    return Err(vec![Violation { pointer: format!("/artifacts/{number}/id"), message }]);
                }
            },
            (None, Some(name)) => current.iter().find(|artifact| has(artifact, "name", name)).copied(),
            // A draft without id and name means the only artifact, or the artifact at the same position.
            (None, None) if drafts.len() == 1 => current.last().copied(),
            (None, None) => current.get(number).copied(),
        };
        let draft = match (&draft.parts, &draft.effect) {
            (Some(parts), None) => Draft { name: draft.name.clone(), ..with_parts(before, parts.clone()) },
            _ => draft.clone(),
        };
        pairs.push((before, draft));
    }
    Ok(pairs)
}

/// Returns a draft with new parts. If the artifact's effect contains the previous content, the new content replaces it
/// there as well.
fn with_parts(before: Option<&Object>, parts: Vec<Value>) -> Draft {
    let effect = before.and_then(Effect::of).map(|effect| {
        let previous_content = before.and_then(argument);
        let new_content = parts.first().and_then(held_by);
        match (previous_content, new_content) {
            (Some(previous_content), Some(new_content)) => {
                let payload = replaced(&Value::from(effect.payload.clone()), &previous_content, &new_content);
                Effect { payload: payload.as_object().cloned().unwrap_or(effect.payload), ..effect }
            }
            _ => effect,
        }
    });
    Draft { parts: Some(parts), effect, ..Draft::default() }
}

/// Returns a draft with changed fields. The changes are merged into the artifact's data, or into the artifact's effect
/// if the artifact has no data.
fn modified(before: Option<&Object>, modifications: &Object) -> Draft {
    let changes = plain(&modifications.clone().into());
    let merged = |value: &Value| {
        let mut value = plain(value);
        json_patch::merge(&mut value, &changes);
        Value::from(value)
    };
    let data = before.and_then(argument).filter(|previous_content| previous_content.as_object().is_some());
    let effect = before.and_then(Effect::of);
    match (data, effect) {
        (Some(data), _) => {
            let after = merged(&data);
            let mut draft = with_parts(before, vec![data_part(after.clone())]);
            if let Some(effect) = &mut draft.effect {
                carry(&mut effect.payload, &data, &after);
            }
            draft
        }
        (None, Some(effect)) => {
            let payload = merged(&effect.payload.clone().into());
            let payload = payload.as_object().cloned().unwrap_or_default();
            Draft { effect: Some(Effect { payload, ..effect }), ..Draft::default() }
        }
        (None, None) => Draft { parts: Some(vec![data_part(merged(&Object::new().into()))]), ..Draft::default() },
    }
}

/// Copies each changed field of the data into the effect's payload if the payload has the field's previous value.
fn carry(payload: &mut Object, before: &Value, after: &Value) {
    for (name, value) in after.as_object().into_iter().flat_map(Object::iter) {
        let was = before.get(name);
        if was != Some(value)
            && let Some(slot) = payload.get_mut(name).filter(|slot| Some(&**slot) == was)
        {
            *slot = value.clone();
        }
    }
}

/// Returns a copy of a value in which every part equal to `previous_content` is replaced by `new_content`.
fn replaced(value: &Value, previous_content: &Value, new_content: &Value) -> Value {
    if value == previous_content {
        return new_content.clone();
    }
    match value {
        Value::Object(object) => {
            let fields =
                object.iter().map(|(name, value)| (name.clone(), replaced(value, previous_content, new_content)));
            fields.collect::<Object>().into()
        }
        Value::Array(items) => {
            items.iter().map(|item| replaced(item, previous_content, new_content)).collect::<Vec<_>>().into()
        }
        other => other.clone(),
    }
}

/// Returns the content of an artifact: its data, or its text if it has no data.
fn argument(artifact: &Object) -> Option<Value> {
    let parts = artifact.get("parts").and_then(Value::as_array).unwrap_or_default();
    let data = parts.iter().find(|part| part.get("data").is_some());
    data.or_else(|| parts.iter().find(|part| part.get("text").is_some())).and_then(held_by)
}

fn held_by(part: &Value) -> Option<Value> {
    part.get("data").or_else(|| part.get("text")).cloned()
}

/// Returns the changes in an artifact's name, parts and effect as a JSON patch (RFC 6902).
fn difference(before: &Object, after: &Object) -> Value {
    let content = |artifact: &Object| {
        let fields = ["name", "parts", "effect"].into_iter();
        plain(&fields.filter_map(|name| Some((name, artifact.get(name)?.clone()))).collect::<Object>().into())
    };
    let patch = json_patch::diff(&content(before), &content(after));
    Value::from(serde_json::to_value(&patch).unwrap_or_default())
}
