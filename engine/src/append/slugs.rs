//! Slugs of articles. Appends are checked, so that no two articles of a project get the same slug. Only imported
//! articles may get the slug of another article.

use std::collections::HashMap;
use std::sync::Arc;

use crate::append::view::View;
use crate::error::{Error, ErrorCode, Result};
use crate::model::aggregate::Aggregate;
use crate::model::builtin::{AGENT, ARTICLE, PROJECT};
use crate::model::event::{Event, NewEvent, SlugsInLog};
use crate::model::id::AggregateId;
use crate::model::slug::{self, SLUG};
use crate::model::value::Value;

/// The types whose slugs are looked up.
const TYPES: [&str; 3] = [ARTICLE, PROJECT, AGENT];

/// The ids of the aggregates that had a slug after an event of the batch, by slug. A later event may have removed the
/// slug from the aggregate.
#[derive(Default)]
pub struct ChangedSlugs {
    ids: HashMap<Arc<str>, Vec<AggregateId>>,
}

impl ChangedSlugs {
    /// Returns the ids of the aggregates that may have this slug.
    pub fn candidates(&self, slug: &str) -> &[AggregateId] {
        self.ids.get(slug).map_or(&[], Vec::as_slice)
    }

    /// Records the slug that an aggregate has after an event: adds the aggregate's id to the ids for this slug. If the
    /// id is new, also removes the ids of aggregates that no longer have the slug. `has` returns whether an aggregate
    /// of the batch has a slug.
    pub fn record(&mut self, after: &Aggregate, has: impl Fn(&AggregateId, &str) -> bool) {
        let Some(Value::String(slug)) = after.state.get(SLUG).filter(|_| is_looked_up(after)) else { return };
        let ids = self.ids.entry(slug.clone()).or_default();
        if !ids.contains(&after.id) {
            ids.retain(|id| has(id, slug));
            ids.push(after.id.clone());
        }
    }
}

fn is_looked_up(aggregate: &Aggregate) -> bool {
    !aggregate.deleted && TYPES.contains(&&*aggregate.aggregate_type)
}

/// Returns the slug of an aggregate that is not deleted.
pub fn slug_of(aggregate: &Aggregate) -> Option<&str> {
    aggregate.state.get(SLUG).filter(|_| !aggregate.deleted).and_then(Value::as_str)
}

/// The handling of a slug that is taken or not valid.
#[derive(Clone, Copy)]
pub struct Choice<'a> {
    /// Whether an article whose slug is not accepted gets another slug. If `false`, the event is rejected, unless it is
    /// imported.
    pub renames: bool,
    /// The slugs of the log from which the event is imported.
    pub in_log: Option<&'a SlugsInLog>,
    /// Whether the event was recorded in another log. If `renames` is `false`, such an event keeps its slug. If
    /// `renames` is `true`, such an event keeps its slug unless an article that is not from the other log has the same
    /// slug.
    pub is_imported: bool,
}

/// Checks the slug of an article after an event: the slug must be valid, and no other article of the project may have
/// the same slug. A slug that the event neither changes nor restores is accepted, because articles of older logs may
/// share a slug. If the choice does not rename articles, a slug that the event restores need not be valid. See
/// [`Choice::is_imported`] for imported events.
///
/// If the choice renames articles, returns the slug that replaces a slug that is taken or not valid. Returns `None` if
/// the article keeps its slug.
pub fn decide(
    view: &View<'_>,
    before: Option<&Aggregate>,
    after: &Aggregate,
    choice: Choice<'_>,
) -> Result<Option<String>> {
    let Some(slug) = slug_of(after).filter(|slug| before.and_then(slug_of) != Some(slug)) else { return Ok(None) };
    let project_id = after.project_id.as_deref();
    if choice.is_imported {
        let is_in_log = |id: &str| choice.in_log.is_some_and(|log| log.get(slug).is_some_and(|ids| ids.contains(id)));
        let other = view.by_slug(ARTICLE, project_id, slug).filter(|other| other.id != after.id);
        if !choice.renames || other.is_none_or(|other| is_in_log(other.id.as_str())) {
            return Ok(None);
        }
    }
    if choice.renames {
        let free = view.free_slug(project_id, &slug::valid(slug, ARTICLE), Some(after.id.as_str()));
        return Ok(Some(free).filter(|free| free != slug));
    }
    let kept = before.and_then(|before| before.state.get(SLUG)).and_then(Value::as_str) == Some(slug);
    if !kept && !slug::is_valid(slug) {
        return Err(Error::invalid_at(format!("/payload/{SLUG}"), slug::EXPECTED));
    }
    match view.by_slug(ARTICLE, project_id, slug) {
        Some(other) if other.id != after.id => Err(taken(&other, slug, kept)),
        _ => Ok(None),
    }
}

/// Compares a new event with `first`, the existing event with the same id. Returns the slug of `first` if an earlier
/// append of `new` with [`NewEvent::renames_slug`] may have chosen this slug.
pub fn given_to(first: &Event, new: &NewEvent) -> Option<Value> {
    if !new.renames_slug || *first.aggregate_type != *ARTICLE {
        return None;
    }
    let given = first.payload.get(SLUG)?;
    let may_be_given = match new.payload.get(SLUG) {
        Some(chosen) => slug::is_numbered(given.as_str()?, &slug::valid(chosen.as_str()?, ARTICLE)),
        // The event that restores an article may have no slug, even if the article got another slug.
        None => new.restores(),
    };
    may_be_given.then(|| given.clone())
}

fn taken(other: &Aggregate, slug: &str, restores: bool) -> Error {
    let article = match other.project_id {
        Some(_) => "another article of the project",
        None => "another article without a project",
    };
    let message = match restores {
        true => format!("{article} now has the slug '{slug}'; restore the deleted article with another slug"),
        false => format!("{article} already has the slug '{slug}'"),
    };
    Error::conflict(ErrorCode::SlugTaken, message).with_detail("aggregate_id", other.id.text())
}

impl View<'_> {
    /// Returns a slug that no article of the project except `own_id` has: `slug`, or `slug` with a number.
    pub fn free_slug(&self, project_id: Option<&str>, slug: &str, own_id: Option<&str>) -> String {
        let is_free = |slug: &String| {
            let found = self.by_slug(ARTICLE, project_id, slug);
            found.is_none_or(|found| own_id == Some(found.id.as_str()))
        };
        slug::numbered(slug).find(is_free).unwrap_or_else(|| slug.to_owned())
    }
}
