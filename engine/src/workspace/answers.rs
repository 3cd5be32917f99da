//! Requests that may come twice: what they make gets the same ids, and their first answer is kept.
//!
//! Ids that are derived from a request make its repeats safe. The answer that is kept is a memory of what was said: it
//! tells a repeat the same even where things have changed since.

use std::sync::Arc;
use std::time::Duration;

use uuid::Uuid;

use super::answer_batches::AnswerBatches;
use super::entered::{Changing, Entered, Operation};
use crate::core::State;
use crate::error::{Error, Result};
use crate::store;
use crate::store::answers::StoredAnswer;

/// How long an answer is kept, in milliseconds.
const KEPT_MS: i64 = 24 * 60 * 60 * 1_000;
/// How often old answers are looked for.
const FORGET_EVERY: Duration = Duration::from_secs(600);
/// Longest idempotency key, in bytes.
const MAX_KEY: usize = 255;

/// What identifies a request whose repeat must do nothing: its key and the operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestId {
    key: String,
    fingerprint: String,
}

impl RequestId {
    /// `fingerprint` is a SHA-256 of what was asked: operation and body.
    pub fn new(key: &str, fingerprint: String) -> Result<RequestId> {
        if key.is_empty() || key.len() > MAX_KEY || key.chars().any(char::is_control) {
            return Err(Error::invalid("the idempotency key must have 1 to 255 characters"));
        }
        Ok(RequestId { key: key.to_owned(), fingerprint })
    }
}

/// An answer as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptAnswer {
    pub body: String,
    pub location: String,
}

/// What came of a request that may be a repeat.
#[derive(Debug)]
pub enum Idempotent<T> {
    /// It was carried out.
    First(T),
    /// It was carried out before, and this was answered.
    Repeated(KeptAnswer),
}

/// Carries a request out, unless it was within the last day; then its first answer is returned.
///
/// `make` answers what it made, and what of it is kept. All of it is one operation, which no client can end halfway.
pub async fn idempotent<T, F>(
    handle: &impl Changing,
    request: RequestId,
    make: impl FnOnce() -> F + Send + 'static,
) -> Result<Idempotent<T>>
where
    T: Send + 'static,
    F: Future<Output = Result<(T, KeptAnswer)>> + Send + 'static,
{
    Operation::perform(handle, move |operation| async move {
        let _turn = operation.turn(&request.key).await;
        let answers = Answers { state: operation.state(), batches: operation.answers(), request: &request };
        if let Some(first) = answers.first().await? {
            return Ok(Idempotent::Repeated(first));
        }
        match make().await {
            Ok((made, kept)) => Ok(match answers.keep(kept).await {
                Some(first) => Idempotent::Repeated(first),
                None => Idempotent::First(made),
            }),
            Err(error) => {
                answers.give_up().await;
                Err(error)
            }
        }
    })
    .await
}

/// What is kept for one request.
struct Answers<'a> {
    state: &'a State,
    batches: &'a AnswerBatches,
    request: &'a RequestId,
}

impl Answers<'_> {
    /// The answer first given, if there is one. Where others write to the store too, the request is noted there before
    /// it is carried out, so that another one under the same key is refused.
    async fn first(&self) -> Result<Option<KeptAnswer>> {
        let log = &self.state.log;
        let expired = self.state.clock.now_ms() - KEPT_MS;
        let mut found = self.batches.read(&self.request.key).await?;
        if found.as_ref().is_some_and(|answer| answer.created_at <= expired) {
            log.forget_answer(&self.request.key, expired, false).await?;
            found = None;
        }
        if found.is_none() && !self.state.is_exclusive() {
            found = Some(log.keep_answer(&self.request.key, &self.answer(None)).await?);
        }
        found.map_or(Ok(None), |answer| self.told(answer))
    }

    /// Keeps an answer. Returns the one that another server gave before. That none can be kept is no reason to hold
    /// the answer back: a repeat finds what was made by its ids.
    async fn keep(&self, kept: KeptAnswer) -> Option<KeptAnswer> {
        if self.state.is_exclusive() {
            self.batches.keep(&self.request.key, self.answer(Some(kept))).await;
            return None;
        }
        match self.state.log.keep_answer(&self.request.key, &self.answer(Some(kept.clone()))).await {
            Ok(first) => self.told(first).ok().flatten().filter(|first| *first != kept),
            Err(error) => {
                tracing::warn!(%error, "the answer to a request was not kept");
                None
            }
        }
    }

    /// A request that failed keeps nothing: the same may come again.
    async fn give_up(&self) {
        if self.state.is_exclusive() {
            return;
        }
        if let Err(error) = self.state.log.forget_answer(&self.request.key, i64::MIN, true).await {
            tracing::warn!(%error, "a request that failed is noted as under way still");
        }
    }

    fn answer(&self, kept: Option<KeptAnswer>) -> StoredAnswer {
        let (body, location) = kept.map(|kept| (kept.body, kept.location)).unzip();
        let fingerprint = self.request.fingerprint.clone();
        StoredAnswer { fingerprint, body, location, created_at: self.state.clock.now_ms() }
    }

    /// What a stored answer says to this request.
    fn told(&self, answer: StoredAnswer) -> Result<Option<KeptAnswer>> {
        if answer.fingerprint != self.request.fingerprint {
            let message = "the idempotency key was used for another request";
            return Err(Error::conflict("idempotency_mismatch", message));
        }
        let location = answer.location.unwrap_or_default();
        Ok(answer.body.map(|body| KeptAnswer { body, location }))
    }
}

/// Forgets old answers, now and then.
pub async fn keep_forgetting(state: Arc<State>) {
    let mut looks = tokio::time::interval(FORGET_EVERY);
    loop {
        looks.tick().await;
        if let Err(error) = forget_old(&state).await {
            tracing::warn!(%error, workspace = %state.record.id, "old answers were not forgotten");
        }
    }
}

async fn forget_old(state: &State) -> store::Result<()> {
    let before = state.clock.now_ms() - KEPT_MS;
    while state.log.forget_answers(before).await? {}
    Ok(())
}

/// Ids of an aggregate and of its first event.
pub(super) struct NewIds {
    pub aggregate_id: String,
    /// Given where a repeat must be recognised.
    pub event_id: Option<String>,
}

impl Entered {
    /// Ids for what a request makes. A request that may be repeated gets the same ones each time, so that even a
    /// repeat whose first answer was never kept finds the first event.
    pub(super) fn new_ids(&self, request: Option<&RequestId>) -> NewIds {
        match request {
            None => NewIds { aggregate_id: self.state().clock.new_id().to_string(), event_id: None },
            Some(request) => {
                let id = |part: &str| self.derived_id(request, part);
                NewIds { aggregate_id: id("aggregate"), event_id: Some(id("event")) }
            }
        }
    }

    /// An id that the same request gets each time it comes.
    pub(super) fn derived_id(&self, request: &RequestId, part: &str) -> String {
        let name = format!("{}/{part}/{}/{}", self.record().id, request.key, request.fingerprint);
        Uuid::new_v5(&Uuid::NAMESPACE_OID, name.as_bytes()).to_string()
    }
}
