//! Approval with changes. Creates the next versions of a task's artifacts, and records the changes as JSON patches.

use std::sync::Arc;

use super::content::{ArtifactDraft, Effect, Stamp, content_part, data_part, stored_parts};
use super::record::Task;
use super::review::plain;
use crate::model::depth::{self, MAX_CONTENT_DEPTH};
use crate::model::excerpt::excerpt;
use crate::model::json_schema::SchemaMeter;
use crate::model::value::{Object, Value};
use crate::model::violation::{Violation, Violations, segment};
use crate::model::written::{WrittenFields, replaced_at};

/// The maximum number of places in a payload that an error lists.
const MAX_PLACES: usize = 20;

/// The changes that a person requests.
#[derive(Debug, Clone, PartialEq)]
pub enum Edit {
    /// Fields to merge into the data of the last artifact (RFC 7396). If the data is missing or not an object, the
    /// fields are merged into the payload of the artifact's effect, if there is one.
    Modifications(Object),
    /// New content that replaces the parts of the last artifact.
    Content(Value),
    /// New versions of artifacts, and new artifacts. A draft with an id replaces the artifact that has this id. A draft
    /// with only a name replaces the artifact that has this name. A draft without id and name replaces the artifact at
    /// the same position, or the last artifact if the draft is the only one. If no artifact has the name or position,
    /// the draft adds a new artifact.
    Artifacts(Vec<ArtifactDraft>),
}

impl Edit {
    /// Rejects changes that are nested too deeply to be stored in an artifact. Does not check drafts, because drafts
    /// are checked when they are read.
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
            Edit::Artifacts(drafts) => drafts.iter().map(ArtifactDraft::size_bytes).sum(),
        }
    }
}

/// The reason why an edit is rejected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EditRefusal {
    Invalid(Vec<Violation>),
    /// The edit changes the content of this artifact, but does not specify the new effect.
    EffectUnchanged {
        name: String,
        why: EffectConflict,
    },
}

impl From<Vec<Violation>> for EditRefusal {
    fn from(violations: Vec<Violation>) -> EditRefusal {
        EditRefusal::Invalid(violations)
    }
}

/// The reason why an effect cannot be adapted to a change of its artifact's content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EffectConflict {
    /// The payload of the effect does not contain the previous content, or the edit changes more than the content.
    Absent,
    /// Several parts of the payload equal the previous content. Contains the JSON pointers of the first
    /// [`MAX_PLACES`] parts.
    Several(Vec<String>),
}

impl EffectConflict {
    /// Returns the reason as the predicate of a sentence whose subject is the effect.
    pub fn explain(&self) -> String {
        match self {
            EffectConflict::Absent => "does not contain the previous content".to_owned(),
            EffectConflict::Several(pointers) => {
                format!("contains the previous content in several places: {}", pointers.join(", "))
            }
        }
    }
}

/// A new version of an artifact, and the version that the new version replaces.
struct ArtifactChange<'a> {
    before: Option<&'a Object>,
    draft: ArtifactDraft,
    /// The reason why the effect cannot be adapted to the new content. `None` if the effect was adapted, or if no
    /// effect has to be adapted.
    unclear: Option<EffectConflict>,
}

/// Returns the artifact versions that an edit creates, after checking these versions against the schema of the task's
/// review.
pub fn edited(task: &Task<'_>, edit: &Edit, stamp: &Stamp) -> Result<Vec<Object>, EditRefusal> {
    edit.check()?;
    let current = task.current_artifacts();
    let changes: Vec<ArtifactChange<'_>> = match edit {
        Edit::Modifications(modifications) => vec![modified(task.last_artifact(), modifications)],
        Edit::Content(content) => vec![with_parts(task.last_artifact(), vec![content_part(content)])],
        Edit::Artifacts(drafts) => matched(task, drafts)?,
    };
    for change in &changes {
        if let ArtifactChange { before: Some(before), unclear: Some(why), .. } = change {
            let name = before.text("name").unwrap_or_default().to_owned();
            return Err(EditRefusal::EffectUnchanged { name, why: why.clone() });
        }
    }
    let schema = task.review().schema().map_err(|refused| vec![Violation { pointer: String::new(), ..refused }])?;
    let mut meter = SchemaMeter::default();
    let (mut entries, mut violations) = (Vec::with_capacity(changes.len()), Vec::new());
    for (number, ArtifactChange { before, draft, .. }) in changes.iter().enumerate() {
        let mut entry = draft.entry(*before, number, stamp);
        if let (Some(schema), Some(value)) = (&schema, checked_content(*before, &entry)) {
            violations.extend(schema.violations_within(&plain(&value), &mut meter));
        }
        entry.push_some("patch", before.map(|before| difference(before, &entry)));
        entries.push(entry);
    }
    check_names(&current, &changes, &entries)?;
    if violations.is_empty() { Ok(entries) } else { Err(EditRefusal::Invalid(violations)) }
}

/// Returns the part of an edited artifact that is checked against the schema of the review: the payload of the effect
/// if the edit changes the effect but not the content, and otherwise the content.
fn checked_content(before: Option<&Object>, entry: &Object) -> Option<Value> {
    let is_kept = |field: &str| before.is_some_and(|before| before.get(field) == entry.get(field));
    if is_kept("parts") && !is_kept("effect") {
        return Effect::of(entry).map(|effect| effect.payload.into());
    }
    argument(entry)
}

/// Checks that an edit gives no artifact the name of another artifact, and that the edit changes no artifact twice.
/// Without these checks, the effects of both artifacts or of both changes would be appended. Artifacts of older tasks
/// may already share a name, and an edit may keep such a name.
fn check_names(current: &[&Object], changes: &[ArtifactChange<'_>], entries: &[Object]) -> Result<(), Vec<Violation>> {
    for (number, (change, entry)) in changes.iter().zip(entries).enumerate() {
        let is_same = |artifact: &Object, field: &str, other: &Object| artifact.get(field) == other.get(field);
        let keeps_name = change.before.is_some_and(|before| is_same(before, "name", entry));
        let is_taken = |other: &Object| !keeps_name && is_same(other, "name", entry);
        let is_replaced = |other: &Object| change.before.is_some_and(|before| is_same(before, "id", other));
        let earlier = || changes.iter().zip(entries).take(number);
        let name = || entry.get("name").map(excerpt).unwrap_or_default();
        let message = if earlier().any(|(other, _)| other.before.is_some_and(is_replaced)) {
            format!("the request changes the artifact {} twice", name())
        } else if earlier().any(|(_, its)| is_taken(its)) {
            format!("the request gives two artifacts the name {}", name())
        } else if current.iter().any(|other| is_taken(other) && !is_replaced(other)) {
            format!("another artifact of the task has the name {}", name())
        } else {
            continue;
        };
        return Err(vec![Violation { pointer: format!("/artifacts/{number}/name"), message }]);
    }
    Ok(())
}

/// Pairs each draft with the artifact version that the draft replaces, if there is one.
fn matched<'a>(task: &Task<'a>, drafts: &[ArtifactDraft]) -> Result<Vec<ArtifactChange<'a>>, Vec<Violation>> {
    let current = task.current_artifacts();
    let mut changes = Vec::with_capacity(drafts.len());
    for (number, draft) in drafts.iter().enumerate() {
        let before = match (&draft.supersedes, &draft.name) {
            (Some(id), _) => match current.iter().find(|artifact| artifact.text("id") == Some(id.as_str())) {
                Some(found) => Some(*found),
                None => {
                    let id = excerpt(&id.as_str().into());
                    let message = format!(
                        "the task has no artifact with the id {id}, or a later version has replaced the artifact"
                    );
                    return Err(vec![Violation { pointer: format!("/artifacts/{number}/id"), message }]);
                }
            },
            (None, Some(name)) => current.iter().find(|artifact| artifact.text("name") == Some(name.as_str())).copied(),
            // A draft without id and name replaces the last artifact if it is the only draft, and otherwise the
            // artifact at the same position.
            (None, None) if drafts.len() == 1 => task.last_artifact(),
            (None, None) => current.get(number).copied(),
        };
        changes.push(carried(before, draft, task.subject()));
    }
    Ok(changes)
}

/// Returns the next version of an artifact. If the draft has new parts and no effect, the effect of the previous
/// version is adapted to the new content. `subject` is the id of the aggregate that the task is about.
fn carried<'a>(before: Option<&'a Object>, draft: &ArtifactDraft, subject: Option<&str>) -> ArtifactChange<'a> {
    let effect_before = before.and_then(Effect::of);
    let is_about_same = |one: &Effect, other: &Effect| {
        one.aggregate_id.as_deref().or(subject) == other.aggregate_id.as_deref().or(subject)
    };
    match (&draft.parts, &draft.effect, effect_before) {
        (Some(parts), None, Some(_)) if !draft.drops_effect => {
            let change = with_parts(before, parts.clone());
            let (at, supersedes, name) = (draft.at.clone(), draft.supersedes.clone(), draft.name.clone());
            ArtifactChange { draft: ArtifactDraft { at, supersedes, name, ..change.draft }, ..change }
        }
        // An effect without an expected version gets the expected version of the previous effect on the same aggregate:
        // the author of the previous effect has read this version.
        (_, Some(effect), Some(previous)) if is_about_same(effect, &previous) => {
            let expected_version = effect.expected_version.or(previous.expected_version);
            let effect = Effect { expected_version, ..effect.clone() };
            ArtifactChange { before, draft: ArtifactDraft { effect: Some(effect), ..draft.clone() }, unclear: None }
        }
        _ => ArtifactChange { before, draft: draft.clone(), unclear: None },
    }
}

/// Returns an agent's draft of the next version of an artifact. If the draft has new parts and no effect, the effect of
/// the previous version is adapted to the new content. Fails if the effect cannot be adapted.
pub fn redrafted(before: &Object, draft: &ArtifactDraft) -> Result<ArtifactDraft, EffectConflict> {
    if draft.effect.is_some() {
        return Ok(draft.clone());
    }
    let change = carried(Some(before), draft, None);
    change.unclear.map_or(Ok(change.draft), Err)
}

/// Returns a draft with new parts. If the artifact's effect contains the previous content exactly once, the new content
/// replaces the previous content in the effect as well.
fn with_parts(before: Option<&Object>, parts: Vec<Value>) -> ArtifactChange<'_> {
    let is_changed = before.is_some_and(|before| before.get("parts") != Some(&stored_parts(&parts)));
    let mut unclear = None;
    let effect = before.and_then(Effect::of).map(|effect| {
        let followed = match before.and_then(|before| changed_argument(before, &parts)) {
            Some((previous, new)) => with_new_content(&effect.payload, &previous, &new),
            None => Err(EffectConflict::Absent),
        };
        match followed {
            Ok(payload) => Effect { payload, ..effect },
            Err(why) => {
                unclear = is_changed.then_some(why);
                effect
            }
        }
    });
    ArtifactChange { before, draft: ArtifactDraft { parts: Some(parts), effect, ..ArtifactDraft::default() }, unclear }
}

/// Returns the payload of an effect with the new content in place of the previous content. Fails unless exactly one
/// part of the payload equals the previous content: among several equal parts, a replacement of the wrong part would go
/// unnoticed.
fn with_new_content(payload: &Object, previous_content: &Value, new_content: &Value) -> Result<Object, EffectConflict> {
    let mut places = Vec::new();
    find(&Value::from(payload.clone()), previous_content, &mut (Vec::new(), String::new()), &mut places);
    match places.as_slice() {
        [] => Err(EffectConflict::Absent),
        [(path, _)] => replaced_at(payload, path, new_content).ok_or(EffectConflict::Absent),
        several => Err(EffectConflict::Several(several.iter().map(|(_, pointer)| pointer.clone()).collect())),
    }
}

/// Finds the parts of a value that equal `content`. Adds the path and the JSON pointer of each such part to `places`,
/// until `places` has [`MAX_PLACES`] entries. `at` is the path and the JSON pointer of the value.
fn find(value: &Value, content: &Value, at: &mut (Vec<usize>, String), places: &mut Vec<(Vec<usize>, String)>) {
    if places.len() == MAX_PLACES {
        return;
    }
    if value == content {
        places.push(at.clone());
        return;
    }
    let mut below = |place: usize, name: String, value: &Value| {
        let length = at.1.len();
        at.0.push(place);
        at.1.push('/');
        at.1.push_str(&name);
        find(value, content, at, places);
        at.0.pop();
        at.1.truncate(length);
    };
    match value {
        Value::Object(object) => {
            object.iter().enumerate().for_each(|(place, (name, value))| below(place, segment(name), value));
        }
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(place, item)| below(place, place.to_string(), item));
        }
        _ => {}
    }
}

/// Returns the previous and the new content of an artifact. Returns `None` if the previous or the new content is
/// missing. Also returns `None` if another part of the artifact changes: an effect is adapted only if nothing but the
/// content changes.
fn changed_argument(before: &Object, parts: &[Value]) -> Option<(Value, Value)> {
    let previous = parts_of(before);
    let place = argument_place(previous)?;
    let is_kept = |at: usize| at == place || previous.get(at) == parts.get(at);
    let content = |parts: &[Value]| held_by(parts.get(place)?);
    Some((content(previous)?, content(parts)?)).filter(|_| (0..previous.len().max(parts.len())).all(is_kept))
}

/// Returns a draft with changed fields. The changes are merged into the artifact's data, the effect is adapted to the
/// new data, and the other parts are kept. If the artifact's data is missing or not an object, the changes are merged
/// into the effect. If the artifact has no effect either, one part with the changes as its data replaces all parts.
fn modified<'a>(before: Option<&'a Object>, modifications: &Object) -> ArtifactChange<'a> {
    let merged = |object: &Object| WrittenFields::of(object).merge(modifications).into_object();
    let data = before.and_then(argument).and_then(|content| content.as_object().cloned());
    match (data, before.and_then(Effect::of)) {
        (Some(data), _) => {
            let after = merged(&data);
            let mut change = with_parts(before, before.map(|before| with_data(before, &after)).unwrap_or_default());
            // `with_parts` has already adapted an effect that contains the whole data.
            if let Some(effect) =
                change.draft.effect.as_mut().filter(|_| change.unclear == Some(EffectConflict::Absent))
            {
                change.unclear = copy_changed_fields(effect, &data, &after).err();
            }
            change
        }
        (None, Some(effect)) => {
            let effect = Effect { payload: merged(&effect.payload), ..effect };
            let draft = ArtifactDraft { effect: Some(effect), ..ArtifactDraft::default() };
            ArtifactChange { before, draft, unclear: None }
        }
        (None, None) => {
            let data = data_part(merged(&Object::new()).into());
            let draft = ArtifactDraft { parts: Some(vec![data]), ..ArtifactDraft::default() };
            ArtifactChange { before, draft, unclear: None }
        }
    }
}

/// Copies each changed field of the data into the effect's payload. Fails if the payload does not have the previous
/// value of the field under the same name, or if the data had no such field.
fn copy_changed_fields(effect: &mut Effect, before: &Object, after: &Object) -> Result<(), EffectConflict> {
    // A field with the written form of a number counts as changed, because the previous data has only the nearest
    // double.
    let changed = |name: &&Arc<str>| before.get(name) != after.get(name) || after.is_written(name);
    let names: Vec<&Arc<str>> = before.keys().chain(after.keys().filter(|name| !before.contains(name))).collect();
    let mut payload = WrittenFields::of(&effect.payload);
    for name in names.into_iter().filter(changed) {
        if before.get(name).is_none() || effect.payload.get(name) != before.get(name) {
            return Err(EffectConflict::Absent);
        }
        match after.contains(name) {
            true => payload.copy(name, after),
            false => payload.remove(name),
        }
    }
    effect.payload = payload.into_object();
    Ok(())
}

/// Returns the content of an artifact: its data, or its text if it has no data.
fn argument(artifact: &Object) -> Option<Value> {
    let parts = parts_of(artifact);
    held_by(parts.get(argument_place(parts)?)?)
}

/// Returns the index of the part with the content of an artifact.
fn argument_place(parts: &[Value]) -> Option<usize> {
    let first_with = |name: &str| parts.iter().position(|part| part.get(name).is_some());
    first_with("data").or_else(|| first_with("text"))
}

/// Returns the parts of an artifact after setting `data` in the part that contains the content. The other fields of
/// this part, such as the media type, stay unchanged.
fn with_data(artifact: &Object, data: &Object) -> Vec<Value> {
    let mut parts = parts_of(artifact).to_vec();
    let part = argument_place(&parts).and_then(|place| parts.get_mut(place));
    if let Some(Value::Object(fields)) = part {
        Arc::make_mut(fields).insert("data", data.clone());
    }
    parts
}

fn parts_of(artifact: &Object) -> &[Value] {
    artifact.get("parts").and_then(Value::as_array).unwrap_or_default()
}

fn held_by(part: &Value) -> Option<Value> {
    part.get("data").or_else(|| part.get("text")).cloned()
}

/// Returns the changes in an artifact's name, parts and effect as a JSON patch (RFC 6902).
fn difference(before: &Object, after: &Object) -> Value {
    let content = |artifact: &Object| {
        let field = |name: &'static str| {
            let value = artifact.get(name)?;
            Some((name, if name == "effect" { Effect::without_text(value) } else { value.clone() }))
        };
        plain(&["name", "parts", "effect"].into_iter().filter_map(field).collect::<Object>().into())
    };
    let patch = json_patch::diff(&content(before), &content(after));
    Value::from(serde_json::to_value(&patch).unwrap_or_default())
}
