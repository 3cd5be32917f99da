//! Repeats: events of an append that are already in the log under the same id.

use std::sync::Arc;

use super::BatchBuilder;
use crate::append::request::Append;
use crate::append::slugs;
use crate::error::{Error, ErrorCode, Result};
use crate::model::aggregate::UNSET;
use crate::model::derivation::Derivation;
use crate::model::event::{Event, NewEvent};
use crate::model::payload;
use crate::model::slug::SLUG;
use crate::model::value::{Object, Value};
use crate::model::written;

impl BatchBuilder<'_> {
    /// Returns whether one of the new events is derived by a plugin and was already appended by another actor, for
    /// example by an import.
    pub(super) fn were_imported(&self, new_events: &[NewEvent], append: &Append) -> bool {
        let is_imported = |new: &NewEvent| {
            self.first_of(new)
                .is_some_and(|first| first.actor != append.actor && is_same_derivation(&new.metadata, &first.metadata))
        };
        new_events.iter().any(|new| new.derived && is_imported(new))
    }

    /// Returns the event of the log or of this batch that has the id of a new event.
    pub(super) fn first_of(&self, new: &NewEvent) -> Option<Arc<Event>> {
        let event_id = new.event_id.as_deref()?;
        let known = self.known.events.get(event_id).map(|first| Arc::new(first.clone()));
        known.or_else(|| {
            self.chosen_ids.get(event_id).and_then(|index| self.events.get(*index)).map(|write| write.event.clone())
        })
    }

    /// Returns the existing event with the id of the new event, or `None` if no event has this id. Fails with a conflict
    /// if the contents of the existing and the new event differ. The contents of derived events are not compared,
    /// because another version of a plugin may derive different content. The new event is derived if `new.derived` is
    /// set, or if the metadata of the existing and the new event names the same derivation.
    pub(super) fn repeat_of(&self, new: &NewEvent, append: &Append) -> Result<Option<Arc<Event>>> {
        let Some(first) = self.first_of(new) else { return Ok(None) };
        if new.derived || is_same_derivation(&new.metadata, &first.metadata) {
            return Ok(Some(first));
        }
        let mut filled = new.payload.clone();
        if let Some(definition) = self.view.definition(&first.aggregate_type)
            && (first.version == 1 || first.verb() == payload::CREATED)
        {
            payload::fill_defaults(&mut filled, definition);
        }
        let mut payloads = vec![new.payload.clone(), filled];
        if let Some(slug) = slugs::given_to(&first, new) {
            payloads.iter_mut().for_each(|payload| drop(payload.insert(SLUG, slug.clone())));
        }
        if first.version > 1
            && new.restores_empty()
            && new.payload.get(UNSET).is_none_or(|unset| unset.as_array().is_some())
            && let Some(removed) = first.payload.get(UNSET).and_then(Value::as_array)
        {
            let mut begun = payloads.clone();
            for payload in &mut begun {
                payload::remove_earlier(payload, removed.iter().filter_map(Value::as_str));
            }
            payloads.extend(begun);
        }
        let project = new.project.as_deref().map(|project| self.view.project_id(project));
        let same = first.aggregate_id.as_str() == new.aggregate_id
            && *first.event_type == *new.event_type
            && payloads.iter().any(|payload| written::is_same(&first.payload, payload))
            && written::is_same(&first.metadata, &new.metadata)
            && new.occurred_at.is_none_or(|at| at == first.occurred_at)
            && project.is_none_or(|project| project == first.project_id)
            && (append.managed || new.aggregate_type.is_empty() || *first.aggregate_type == *new.aggregate_type);
        if !same {
            return Err(Error::conflict(
                ErrorCode::EventIdConflict,
                format!("event '{}' is already in the log with different content", first.event_id),
            ));
        }
        Ok(Some(first))
    }
}

/// Returns whether the same plugin derived two events from the same event.
fn is_same_derivation(one: &Object, other: &Object) -> bool {
    Derivation::of(one).zip(Derivation::of(other)).is_some_and(|(one, other)| one.is_same_step(other))
}
