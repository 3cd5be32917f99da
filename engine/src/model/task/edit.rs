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

/// The reason for which an edit is rejected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    Invalid(Vec<Violation>),
    /// The edit changes the content of this artifact, and its effect would stay the same.
    EffectUnchanged {
        name: String,
    },
}

impl From<Vec<Violation>> for Refusal {
    fn from(violations: Vec<Violation>) -> Refusal {
        Refusal::Invalid(violations)
    }
}

/// A new version of an artifact with the version that it replaces.
struct Change<'a> {
    before: Option<&'a Object>,
    draft: Draft,
    /// Whether the effect follows the content, or the edit says what the effect becomes.
    is_carried: bool,
}

/// Returns the artifact versions that an edit creates, after checking them against the schema of the task's review.
pub fn edited(task: &Task<'_>, edit: &Edit, stamp: &Stamp) -> Result<Vec<Object>, Refusal> {
    edit.check()?;
    let current = task.current_artifacts();
    let changes: Vec<Change<'_>> = match edit {
        Edit::Modifications(modifications) => vec![modified(current.last().copied(), modifications)],
        Edit::Content(content) => vec![with_parts(current.last().copied(), vec![content_part(content)])],
        Edit::Artifacts(drafts) => matched(&current, drafts, task.subject())?,
    };
    if let Some(Change { before: Some(before), .. }) = changes.iter().find(|change| !change.is_carried) {
        let name = before.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
        return Err(Refusal::EffectUnchanged { name });
    }
    let schema = task.review().schema().map_err(|refused| vec![Violation { pointer: String::new(), ..refused }])?;
    let mut meter = Meter::default();
    let (mut entries, mut violations) = (Vec::with_capacity(changes.len()), Vec::new());
    for (number, Change { before, draft, .. }) in changes.iter().enumerate() {
        let mut entry = draft.entry(*before, number, stamp);
        if let (Some(schema), Some(value)) = (&schema, argued(*before, &entry)) {
            violations.extend(schema.violations_within(&plain(&value), &mut meter));
        }
        if let Some(before) = before {
            entry.push("patch", difference(before, &entry));
        }
        entries.push(entry);
    }
    check_names(&current, &changes, &entries)?;
    if violations.is_empty() { Ok(entries) } else { Err(Refusal::Invalid(violations)) }
}

/// Returns the value of an artifact that the schema of the review describes: the content or, if an edit changes the
/// effect alone, the payload of the effect.
fn argued(before: Option<&Object>, entry: &Object) -> Option<Value> {
    let is_kept = |field: &str| before.is_some_and(|before| before.get(field) == entry.get(field));
    if is_kept("parts") && !is_kept("effect") {
        return Effect::of(entry).map(|effect| effect.payload.into());
    }
    argument(entry)
}

/// Checks that an edit gives no artifact the name of another one, and changes none twice. Otherwise the effects of both
/// versions would be appended. Artifacts of older tasks may share a name already.
fn check_names(current: &[&Object], changes: &[Change<'_>], entries: &[Object]) -> Result<(), Vec<Violation>> {
    for (number, (change, entry)) in changes.iter().zip(entries).enumerate() {
        let is_same = |artifact: &Object, field: &str, other: &Object| artifact.get(field) == other.get(field);
        let keeps_name = change.before.is_some_and(|before| is_same(before, "name", entry));
        let is_taken = |other: &Object| !keeps_name && is_same(other, "name", entry);
        let is_replaced = |other: &Object| change.before.is_some_and(|before| is_same(before, "id", other));
        let mut earlier = changes.iter().zip(entries).take(number);
        let is_twice = earlier.any(|(other, its)| other.before.is_some_and(is_replaced) || is_taken(its));
        if is_twice || current.iter().any(|other| is_taken(other) && !is_replaced(other)) {
            let name = entry.get("name").map(excerpt).unwrap_or_default();
            let message = format!("another artifact of the request or of the task has the name {name}");
            return Err(vec![Violation { pointer: format!("/artifacts/{number}/name"), message }]);
        }
    }
    Ok(())
}

/// Pairs each draft with the artifact version that the draft replaces, if there is one.
fn matched<'a>(
    current: &[&'a Object],
    drafts: &[Draft],
    subject: Option<&str>,
) -> Result<Vec<Change<'a>>, Vec<Violation>> {
    let has = |artifact: &Object, name: &str, text: &str| artifact.get(name).and_then(Value::as_str) == Some(text);
    let mut changes = Vec::with_capacity(drafts.len());
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
        changes.push(carried(before, draft, subject));
    }
    Ok(changes)
}

/// Returns the next version of an artifact. If the draft has new parts and no effect, the effect of the previous
/// version follows the content. `subject` is the id of the aggregate that the task is about.
fn carried<'a>(before: Option<&'a Object>, draft: &Draft, subject: Option<&str>) -> Change<'a> {
    let effect_before = before.and_then(Effect::of);
    let is_about_same = |one: &Effect, other: &Effect| {
        one.aggregate_id.as_deref().or(subject) == other.aggregate_id.as_deref().or(subject)
    };
    match (&draft.parts, &draft.effect, effect_before) {
        (Some(parts), None, Some(_)) if !draft.drops_effect => {
            let change = with_parts(before, parts.clone());
            let (at, supersedes, name) = (draft.at.clone(), draft.supersedes.clone(), draft.name.clone());
            Change { draft: Draft { at, supersedes, name, ..change.draft }, ..change }
        }
        // The author of the effect has read what the previous effect was about.
        (_, Some(effect), Some(previous)) if is_about_same(effect, &previous) => {
            let expected_version = effect.expected_version.or(previous.expected_version);
            let effect = Effect { expected_version, ..effect.clone() };
            Change { before, draft: Draft { effect: Some(effect), ..draft.clone() }, is_carried: true }
        }
        _ => Change { before, draft: draft.clone(), is_carried: true },
    }
}

/// Returns an agent's draft of the next version of an artifact. If the draft has new parts and no effect, the effect of
/// the previous version follows the content. Returns `None` if the effect does not contain the previous content.
pub fn redrafted(before: &Object, draft: &Draft) -> Option<Draft> {
    if draft.effect.is_some() {
        return Some(draft.clone());
    }
    let change = carried(Some(before), draft, None);
    change.is_carried.then_some(change.draft)
}

/// Returns a draft with new parts. If the artifact's effect contains the previous content, the new content replaces it
/// there as well.
fn with_parts(before: Option<&Object>, parts: Vec<Value>) -> Change<'_> {
    let is_changed = before.is_some_and(|before| before.get("parts").and_then(Value::as_array) != Some(&*parts));
    let mut is_carried = true;
    let effect = before.and_then(Effect::of).map(|effect| {
        let previous_content = before.and_then(argument);
        let new_content = parts.first().and_then(held_by);
        let payload = match (previous_content, new_content) {
            (Some(previous_content), Some(new_content)) => {
                replaced(&Value::from(effect.payload.clone()), &previous_content, &new_content)
            }
            _ => Value::Null,
        };
        let payload = payload.as_object().cloned().unwrap_or_else(|| effect.payload.clone());
        is_carried = !is_changed || (payload != effect.payload && changes_only_first(before, &parts));
        Effect { payload, ..effect }
    });
    Change { before, draft: Draft { parts: Some(parts), effect, ..Draft::default() }, is_carried }
}

/// Returns whether all parts but the first are those of the previous version. An effect follows the first part only.
fn changes_only_first(before: Option<&Object>, parts: &[Value]) -> bool {
    let previous = before.and_then(|before| before.get("parts")?.as_array()).unwrap_or_default();
    previous.get(1..).unwrap_or_default() == parts.get(1..).unwrap_or_default()
}

/// Returns a draft with changed fields. The changes are merged into the artifact's data, or into the artifact's effect
/// if the artifact has no data.
fn modified<'a>(before: Option<&'a Object>, modifications: &Object) -> Change<'a> {
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
            let mut change = with_parts(before, vec![data_part(after.clone())]);
            // An effect that contains the whole data has followed already.
            if let Some(effect) = change.draft.effect.as_mut().filter(|_| !change.is_carried) {
                change.is_carried = carry(&mut effect.payload, &data, &after);
            }
            change
        }
        (None, Some(effect)) => {
            let payload = merged(&effect.payload.clone().into());
            let payload = payload.as_object().cloned().unwrap_or_default();
            let draft = Draft { effect: Some(Effect { payload, ..effect }), ..Draft::default() };
            Change { before, draft, is_carried: true }
        }
        (None, None) => {
            let draft = Draft { parts: Some(vec![data_part(merged(&Object::new().into()))]), ..Draft::default() };
            Change { before, draft, is_carried: true }
        }
    }
}

/// Copies each changed field of the data into the effect's payload if the payload has the field's previous value.
/// Returns whether the payload now has all changes.
fn carry(payload: &mut Object, before: &Value, after: &Value) -> bool {
    let mut is_carried = true;
    let is_removed = |name: &str| after.get(name).is_none();
    for (name, was) in before.as_object().into_iter().flat_map(Object::iter).filter(|(name, _)| is_removed(name)) {
        if payload.get(name) == Some(was) {
            payload.remove(name);
        } else {
            is_carried = false;
        }
    }
    for (name, value) in after.as_object().into_iter().flat_map(Object::iter) {
        let was = before.get(name);
        if was == Some(value) {
            continue;
        }
        match payload.get_mut(name).filter(|slot| Some(&**slot) == was) {
            Some(slot) => *slot = value.clone(),
            None => is_carried = false,
        }
    }
    is_carried
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
