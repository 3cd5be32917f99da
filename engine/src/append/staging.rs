//! Staging of appends: checks, numbers and folds the events of one append after another, before the batch is committed.

mod repeats;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::append::checks;
use crate::append::earlier_writes::{self, EarlierResponse, EarlierWrites};
use crate::append::idempotency::IdempotentRequest;
use crate::append::request::{Append, AppendOutcome};
use crate::append::slugs;
use crate::append::view::View;
use crate::error::{Error, Result};
use crate::model::aggregate::Aggregate;
use crate::model::article;
use crate::model::builtin::{ARTICLE, FILE};
use crate::model::event::{self, Event, NewEvent};
use crate::model::feed;
use crate::model::file;
use crate::model::id::{self, AggregateId, ID_FORM};
use crate::model::payload;
use crate::model::slug::SLUG;
use crate::model::sums;
use crate::model::value::Object;
use crate::state::State;
use crate::state::types::Definitions;
use crate::store;
use crate::store::workspace::append::EventWrite;
use crate::store::workspace::responses::StoredResponse;

/// A batch that is being assembled.
pub struct BatchBuilder<'a> {
    view: View<'a>,
    known: &'a EarlierWrites,
    events: Vec<EventWrite>,
    /// The event ids that the appends contain, for example chosen by clients or derived by plugins, each with the index
    /// of the event.
    chosen_ids: FxHashMap<Arc<str>, usize>,
    /// The responses to requests of this batch, by idempotency key.
    responses: HashMap<Arc<str>, EarlierResponse>,
    now_ms: i64,
}

/// A complete batch: the events, the responses to store, and the states after the events.
pub struct StagedBatch {
    pub events: Vec<EventWrite>,
    /// The responses to store, by idempotency key.
    pub responses: Vec<(Arc<str>, StoredResponse)>,
    pub aggregates: Vec<Arc<Aggregate>>,
    /// The number of definition changes that the appender knew of when it checked the events of the batch.
    pub types_changed: u64,
}

/// Pairs of an agent's id and the index of an event that concerns the agent.
type ConcernedAgents = Vec<(Arc<str>, usize)>;

impl StagedBatch {
    /// Returns the events, and the agents that the events concern. Each agent has the index of the event that concerns
    /// the agent.
    pub fn events_with_feed(&self) -> (Vec<Arc<Event>>, ConcernedAgents) {
        let events = self.events.iter().map(|write| write.event.clone()).collect();
        let agents = |(index, write): (usize, &EventWrite)| -> Vec<_> {
            write.agents.iter().map(|agent| (agent.clone(), index)).collect()
        };
        (events, self.events.iter().enumerate().flat_map(agents).collect())
    }
}

/// Returns the events that an append would add now, and the states after these events. Writes nothing. An event keeps
/// the id that the caller sets in `append`. An event without an id gets a random id, and a later append gives the event
/// another random id.
pub fn preview(state: &State, append: &Append) -> Result<AppendOutcome> {
    let (definitions, known) = (state.types.all(), EarlierWrites::default());
    BatchBuilder::new(state, &definitions, &known).stage(append)
}

impl<'a> BatchBuilder<'a> {
    pub fn new(state: &'a State, definitions: &'a Definitions, known: &'a EarlierWrites) -> BatchBuilder<'a> {
        let position = state.folded.position();
        let view = View::new(state, definitions, position);
        let (events, chosen_ids, responses) = Default::default();
        BatchBuilder { view, known, events, chosen_ids, responses, now_ms: state.clock.now_ms() }
    }

    pub fn finish(self) -> StagedBatch {
        let mut changed = self.view.changed;
        let aggregates = self.view.order.iter().filter_map(|id| changed.remove(id)).collect();
        let responses = self.responses.into_iter().map(|(key, response)| {
            let (events, fingerprint) = (response.appended.as_ref().map(earlier_writes::runs), response.fingerprint);
            (key, StoredResponse { fingerprint, events, body: None, location: None, created_at: self.now_ms })
        });
        StagedBatch { events: self.events, responses: responses.collect(), aggregates, types_changed: 0 }
    }

    /// Stages one append: either all of its events or none. If the append repeats an earlier request, returns the
    /// response to that request.
    pub fn stage(&mut self, append: &Append) -> Result<AppendOutcome> {
        let Some(request) = &append.request else { return self.stage_new(append) };
        if let Some(first) = self.response_to(request)? {
            return Ok(AppendOutcome { replayed: true, ..first });
        }
        let appended = self.stage_new(append)?;
        let (fingerprint, kept) = (request.fingerprint.clone(), Some(appended.clone()));
        self.responses.insert(request.key.clone(), EarlierResponse { fingerprint, appended: kept });
        Ok(appended)
    }

    /// Returns the response to an earlier request with the same key, or `None` if there was no request with this key.
    /// Fails if the key was used for another request.
    fn response_to(&self, request: &IdempotentRequest) -> Result<Option<AppendOutcome>> {
        let first = self.known.responses.get(&request.key).or_else(|| self.responses.get(&request.key));
        first.map(|first| first.appended_for(request)).transpose()
    }

    fn stage_new(&mut self, append: &Append) -> Result<AppendOutcome> {
        if append.upload.as_ref().is_some_and(|upload| self.known.lost_uploads.contains(upload)) {
            // The upload is no longer in progress: a server has canceled the upload as abandoned, and removes the
            // upload's bytes.
            return Err(Error::Unavailable(store::Error::Conflict));
        }
        let (events, position) = (self.events.len(), self.view.position);
        let mut undo = Vec::new();
        let outcome = self.stage_events(append, &mut undo);
        if outcome.is_err() {
            self.events.truncate(events);
            self.chosen_ids.retain(|_, index| *index < events);
            self.view.position = position;
            for (id, before) in undo.into_iter().rev() {
                match before {
                    // Records the slug again, because another event of the append may have taken it over.
                    Some(before) => drop(self.view.change(&id, before)),
                    None => {
                        self.view.changed.remove(&id);
                        self.view.order.retain(|changed| *changed != id);
                    }
                }
            }
        }
        outcome
    }

    fn stage_events(
        &mut self,
        append: &Append,
        undo: &mut Vec<(AggregateId, Option<Arc<Aggregate>>)>,
    ) -> Result<AppendOutcome> {
        let mut new_events = (append.decide)(&self.view)?;
        if self.were_imported(&new_events, append) {
            // An import contains all events that a plugin derived from an event. This workspace may have another
            // version or other settings of the plugin and derive different events, so events that were not imported are
            // dropped.
            new_events.retain(|new| self.first_of(new).is_some());
        }
        let many = new_events.len() > 1;
        let mut appended = AppendOutcome {
            events: Vec::with_capacity(new_events.len()),
            repeated: Vec::with_capacity(new_events.len()),
            states: Vec::with_capacity(new_events.len()),
            replayed: false,
        };
        for (index, new) in new_events.into_iter().enumerate() {
            // The log stores JSON, so the payload is converted before folding. Reading the event later returns the same
            // payload.
            let new = NewEvent { payload: new.payload.into_json(), metadata: new.metadata.into_json(), ..new };
            let staged = match self.repeat_of(&new, append) {
                Ok(Some(first)) => Ok((first, true)),
                Ok(None) => self.stage_event(new, append, undo).map(|event| (event, false)),
                Err(error) => Err(error),
            };
            let (event, repeated) = staged.map_err(|error| if many { error.at_event(index) } else { error })?;
            appended.states.extend(self.view.aggregate(event.aggregate_id.as_str()));
            appended.events.push(event);
            appended.repeated.push(repeated);
        }
        Ok(appended)
    }

    fn stage_event(
        &mut self,
        new: NewEvent,
        append: &Append,
        undo: &mut Vec<(AggregateId, Option<Arc<Aggregate>>)>,
    ) -> Result<Arc<Event>> {
        let aggregate_id = checks::aggregate_id(&new)?;
        if let Some(event_id) = new.event_id.as_deref().filter(|event_id| !id::is_valid_id(event_id)) {
            let message = format!("'{event_id:.64}' is not a valid event id: expected {ID_FORM}");
            return Err(Error::invalid_at("/event_id", message));
        }
        let before = self.view.aggregate(aggregate_id.as_str());
        let definition = self.view.check_type(&new, before.as_deref(), append.managed)?;
        let project_id = self.view.check_stream(&new, before.as_deref())?;
        let version = before.as_ref().map_or(0, |before| before.version);
        if !definition.managed {
            checks::check_exists(&new, before.as_deref())?;
        }
        if !new.expected.allows(version) {
            return Err(Error::version_conflict(version));
        }
        // Folding an event restores a deleted aggregate, so an event that must not restore it is rejected here. No
        // later check can reject an event that is in the log.
        if before.as_ref().is_some_and(|before| before.deleted) && !new.restores() {
            return Err(Error::aggregate_deleted(version));
        }
        if !definition.managed {
            checks::check_is_new(&new, before.as_deref())?;
        }
        let is_imported = new.recorded.is_some();
        let is_first = !is_imported && checks::is_first(&new, before.as_deref(), &definition);
        let is_continued = !is_imported && !is_first && event::verb(&new.event_type) == payload::CREATED;
        let mut payload = new.payload;
        if is_first {
            payload::fill_defaults(&mut payload, &definition);
            if let Some(before) = &before {
                payload::remove_earlier(&mut payload, before.state.keys().map(|name| &**name));
            }
        }
        let (actor, recorded_at) = match new.recorded {
            Some(recorded) => (recorded.actor, recorded.at),
            None => (append.actor.clone(), self.now_ms),
        };
        let position = self.view.position + 1;
        let chosen = new.event_id.is_some();
        let event_id = new
            .event_id
            .unwrap_or_else(|| id::event_id(self.now_ms, position, self.view.state.clock.random_u64()).to_string());
        let mut event = Event {
            event_id: event_id.into(),
            aggregate_id: aggregate_id.clone(),
            aggregate_type: definition.type_name.clone(),
            event_type: new.event_type.into(),
            project_id,
            version: version + 1,
            position,
            payload: Arc::new(payload),
            metadata: Arc::new(new.metadata),
            actor,
            occurred_at: new.occurred_at.unwrap_or(recorded_at),
            recorded_at,
            sent: Default::default(),
        };
        let mut after = Aggregate::fold(before.as_deref(), &event, &definition);
        if !is_imported {
            sums::check(&event.payload, before.as_deref(), &after.state, &definition)?;
        }
        if is_first {
            payload::check_first(&event.payload, &after.state, &definition)?;
        }
        if is_continued {
            payload::check_complete(&after.state, &definition)?;
        }
        let choice = slugs::Choice { renames: new.renames_slug, in_log: new.slugs_in_log.as_deref(), is_imported };
        if *definition.type_name == *ARTICLE
            && let Some(slug) = slugs::decide(&self.view, before.as_deref(), &after, choice)?
        {
            Arc::make_mut(&mut event.payload).insert(SLUG, slug);
            after = Aggregate::fold(before.as_deref(), &event, &definition);
        }
        let (event, after) = (Arc::new(event), Arc::new(after));
        let agents = feed::affected_agents(&event, before.as_deref(), &after).collect();
        let published = article::is_publication(&after).then(|| (after.clone(), definition.revision));
        let is_file = *definition.type_name == *FILE;
        let (taken, freed) = if is_file { changed_uploads(before.as_deref(), &after) } else { (None, None) };
        self.view.position = position;
        let previous = self.view.change(&aggregate_id, after);
        if previous.is_none() {
            self.view.order.push(aggregate_id.clone());
        }
        undo.push((aggregate_id, previous));
        if chosen {
            self.chosen_ids.insert(event.event_id.clone(), self.events.len());
        }
        self.events.push(EventWrite { event: event.clone(), id_chosen: chosen, taken, freed, agents, published });
        Ok(event)
    }
}

/// The id of an upload that a file stops referring to, if there is one, with the upload's size in bytes.
type FreedUpload = Option<(Arc<str>, u64)>;

/// Returns the upload that a file refers to after an event, and the upload that the file referred to before the event.
/// Both are `None` if the event does not change the upload.
fn changed_uploads(before: Option<&Aggregate>, after: &Aggregate) -> (Option<Arc<str>>, FreedUpload) {
    let (current, previous) = (file::upload_of(Some(after)), file::upload_of(before));
    if current == previous {
        return (None, None);
    }
    (current.map(|(upload, _)| upload), previous)
}

/// Returns an object with the given fields that have a value.
pub fn object_of<const N: usize>(fields: [(&str, Option<crate::model::value::Value>); N]) -> Object {
    fields.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}
