//! Looks up the parts of appends that the store may already contain: events with ids chosen by clients, and responses
//! to requests with an idempotency key. Also looks up which uploads are no longer in progress.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::append::idempotency::{self, IdempotentRequest, KEPT_MS};
use crate::append::request::{Append, AppendOutcome};
use crate::error::Result;
use crate::model::event::Event;
use crate::state::State;
use crate::store::workspace::responses::EventRun;
use crate::store::{self, Database};

/// The events and responses that were found in the store, and the uploads that are no longer in progress.
#[derive(Default)]
pub struct EarlierWrites {
    pub events: HashMap<Arc<str>, Event>,
    pub responses: HashMap<Arc<str>, EarlierResponse>,
    /// The ids of the uploads that are no longer in progress. A file cannot get the bytes of these uploads.
    pub lost_uploads: HashSet<Arc<str>>,
}

/// The response stored under an idempotency key.
pub struct EarlierResponse {
    /// The fingerprint of the request that got this response.
    pub fingerprint: Arc<str>,
    /// The events of the response. `None` if no request of the batch matches the fingerprint, or if the stored request
    /// was not an append.
    pub appended: Option<AppendOutcome>,
}

impl EarlierResponse {
    /// Returns the result of the append. Fails if the idempotency key was used for another request.
    pub fn appended_for(&self, request: &IdempotentRequest) -> Result<AppendOutcome> {
        let appended = self.appended.as_ref().filter(|_| self.fingerprint == request.fingerprint);
        appended.cloned().ok_or_else(idempotency::mismatch)
    }
}

impl EarlierWrites {
    /// Looks up the client-chosen event ids, idempotency keys and uploads of the given appends.
    pub async fn look_up<'a>(
        &mut self,
        state: &State,
        db: &Database,
        appends: impl Iterator<Item = &'a Append> + Clone,
    ) -> store::Result<()> {
        let ids: Vec<Arc<str>> = appends.clone().flat_map(|append| append.event_ids.iter().cloned()).collect();
        if !ids.is_empty() {
            self.events = state.db.find_chosen(&ids).await?;
        }
        let uploads: Vec<Arc<str>> = appends.clone().filter_map(|append| append.upload.clone()).collect();
        if !uploads.is_empty() {
            let under_way = state.db.uploads_under_way(&uploads).await?;
            self.lost_uploads = uploads.into_iter().filter(|id| !under_way.contains(id)).collect();
        }
        let requests: Vec<&IdempotentRequest> = appends.filter_map(|append| append.request.as_ref()).collect();
        if !requests.is_empty() {
            self.look_up_responses(state, db, &requests).await?;
        }
        Ok(())
    }

    async fn look_up_responses(
        &mut self,
        state: &State,
        db: &Database,
        requests: &[&IdempotentRequest],
    ) -> store::Result<()> {
        let keys: Vec<Arc<str>> = requests.iter().map(|request| request.key.clone()).collect();
        let expired = state.clock.now_ms() - KEPT_MS;
        for (key, kept) in db.read_responses(&keys).await? {
            if kept.created_at <= expired {
                db.forget_response(&key, expired).await?;
                continue;
            }
            let is_asked = requests.iter().any(|request| request.key == key && request.check(&kept).is_ok());
            let appended = match &kept.events {
                Some(runs) if is_asked => Some(read(state, runs).await?),
                _ => None,
            };
            self.responses.insert(key, EarlierResponse { fingerprint: kept.fingerprint, appended });
        }
        Ok(())
    }
}

/// Reads the events of a stored response from the log.
async fn read(state: &State, runs: &[EventRun]) -> store::Result<AppendOutcome> {
    let mut appended = AppendOutcome { events: Vec::new(), repeated: Vec::new(), states: Vec::new(), replayed: true };
    for run in runs {
        let events = state.db.read_run(*run).await?;
        if events.len() as u64 != run.count {
            let (expected, first, found) = (run.count, run.first, events.len());
            let message =
                format!("a stored response has {expected} events from position {first} on, but the log has {found}");
            return Err(store::Error::corrupt(message));
        }
        appended.repeated.extend(events.iter().map(|_| run.repeated));
        appended.events.extend(events.into_iter().map(Arc::new));
    }
    Ok(appended)
}

/// Returns the positions of a response's events as runs of consecutive positions. The events of a run are either all
/// repeated or all new.
pub fn runs(appended: &AppendOutcome) -> Vec<EventRun> {
    let mut runs: Vec<EventRun> = Vec::new();
    for (event, repeated) in appended.events.iter().zip(&appended.repeated) {
        match runs.last_mut() {
            Some(run) if run.first + run.count == event.position && run.repeated == *repeated => run.count += 1,
            _ => runs.push(EventRun { first: event.position, count: 1, repeated: *repeated }),
        }
    }
    runs
}

/// Returns the result of an earlier append for the same request, or `None` if there was no such append. Fails if the
/// idempotency key was used for another request.
pub async fn earlier_append(
    state: &State,
    db: &Database,
    request: &IdempotentRequest,
) -> Result<Option<AppendOutcome>> {
    let mut known = EarlierWrites::default();
    known.look_up_responses(state, db, &[request]).await?;
    known.responses.get(&request.key).map(|response| response.appended_for(request)).transpose()
}
