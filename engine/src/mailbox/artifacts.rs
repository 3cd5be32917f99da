//! The artifacts of a delivery. Each artifact is new or the next version of an existing artifact. Effects are checked
//! at the delivery, while the author can still correct the effects.

use super::effect::{self, EffectOrigin};
use super::limits;
use crate::append::view::View;
use crate::error::{Error, ErrorCode, Result};
use crate::model::excerpt::excerpt;
use crate::model::task::Task;
use crate::model::task::content::{ArtifactDraft, DEFAULT_NAME, Stamp};
use crate::model::task::edit;
use crate::model::value::{Object, Value};

/// Returns the stored form of the artifacts with which a task is created.
pub fn first_versions(
    view: &View<'_>,
    origin: EffectOrigin<'_>,
    drafts: &[ArtifactDraft],
    stamp: &Stamp,
) -> Result<Value> {
    stored(view, None, origin, drafts, stamp)
}

/// Returns the stored form of the artifacts that are delivered for a task.
pub(super) fn versions(view: &View<'_>, task: &Task<'_>, drafts: &[ArtifactDraft], stamp: &Stamp) -> Result<Value> {
    stored(view, Some(task), EffectOrigin::from(task), drafts, stamp)
}

fn stored(
    view: &View<'_>,
    task: Option<&Task<'_>>,
    origin: EffectOrigin<'_>,
    drafts: &[ArtifactDraft],
    stamp: &Stamp,
) -> Result<Value> {
    let current = task.map(Task::current_artifacts).unwrap_or_default();
    let mut entries: Vec<Object> = Vec::with_capacity(drafts.len());
    let mut unnamed = 0;
    for (number, draft) in drafts.iter().enumerate() {
        let draft = named(draft, &mut unnamed);
        let before = previous(&current, &draft)?;
        if let Some(author) = before.and_then(author).filter(|author| !stamp.may_replace(author)) {
            return Err(not_author(author));
        }
        if before.is_none() && draft.parts.is_none() {
            return Err(Error::invalid_at(
                format!("{}/parts", draft.at),
                "expected `parts`, `text`, `data` or `content`",
            ));
        }
        let mut next = match before {
            None => draft,
            Some(before) => edit::redrafted(before, &draft).map_err(|why| {
                let message = format!(
                    "required, because the effect of the previous version cannot be adapted: the effect {}",
                    why.explain()
                );
                Error::invalid_at(format!("{}/effect", draft.at), message)
            })?,
        };
        if let Some(effect) = &mut next.effect {
            effect.expected_version = Some(effect::check(view, origin, effect, &format!("{}/effect", next.at))?);
        }
        let entry = next.entry(before, number, stamp);
        let is_taken = |artifact: &&Object| artifact.get("name") == entry.get("name");
        let is_replaced = |artifact: &&Object| before.is_some_and(|before| before.get("id") == artifact.get("id"));
        if entries.iter().any(|other| is_taken(&other))
            || current.iter().any(|other| is_taken(other) && !is_replaced(other))
        {
            let name = entry.get("name").map(excerpt).unwrap_or_default();
            let message = format!("another artifact of the task or of the request has the name {name}");
            return Err(Error::invalid_at(format!("{}/name", next.at), message));
        }
        // Two versions that replace the same artifact would both be current and keep the effect. An approval would then
        // append the effect twice.
        let replaced = entry.get("supersedes");
        if replaced.is_some() && entries.iter().any(|other| other.get("supersedes") == replaced) {
            let message = "another artifact of the request replaces the same artifact";
            return Err(Error::invalid_at(format!("{}/id", next.at), message));
        }
        entries.push(entry);
    }
    limits::check_artifacts(task, &current, &entries)?;
    Ok(entries.into_iter().collect())
}

/// Returns the author of a stored artifact: an agent, a user or a plugin.
fn author(artifact: &Object) -> Option<&str> {
    artifact.text("created_by")
}

/// Returns whether the sender may replace all output of a task.
pub(super) fn may_replace_all(task: &Task<'_>, stamp: &Stamp) -> bool {
    task.artifacts().iter().filter_map(|artifact| author(artifact.as_object()?)).all(|by| stamp.may_replace(by))
}

fn not_author(author: &str) -> Error {
    let author = excerpt(&author.into());
    let message = format!(
        "another plugin or a key that is bound to other agents cannot replace an artifact of the author {author}; \
         send the new artifact under another name"
    );
    Error::forbidden(ErrorCode::NotAuthor, message)
}

/// Gives a default name to a draft that has no name and refers to no previous version. Returns any other draft
/// unchanged.
/// `unnamed` counts the default names in the request, so that these names differ.
fn named(draft: &ArtifactDraft, unnamed: &mut usize) -> ArtifactDraft {
    if draft.name.is_some() || draft.supersedes.is_some() {
        return draft.clone();
    }
    *unnamed += 1;
    let name = match *unnamed {
        1 => DEFAULT_NAME.to_owned(),
        number => format!("{DEFAULT_NAME} {number}"),
    };
    ArtifactDraft { name: Some(name), ..draft.clone() }
}

/// Returns the current version that a draft replaces: the version that the draft refers to, or the last version with
/// the same name. Returns `None` if the draft is a new artifact. Fails if the draft refers to a version that does not
/// exist or has been replaced.
fn previous<'a>(current: &[&'a Object], draft: &ArtifactDraft) -> Result<Option<&'a Object>> {
    if let Some(id) = &draft.supersedes {
        let found = current.iter().find(|artifact| artifact.text("id") == Some(id.as_str())).copied();
        let message = "the task has no artifact with this id, or a later version has replaced the artifact";
        return found.map(Some).ok_or_else(|| Error::invalid_at(format!("{}/id", draft.at), message));
    }
    let Some(name) = &draft.name else { return Ok(None) };
    Ok(current.iter().rfind(|artifact| artifact.text("name") == Some(name.as_str())).copied())
}
