//! Requests that may come twice and append nothing: what they make gets the same ids, and their first answer is kept.
//!
//! An append needs none of this: what tells its answer again is written with its events.

use std::sync::Arc;
use std::time::Duration;

use uuid::Uuid;

use super::entered::{Changing, Entered, Operation};
use crate::core::State;
use crate::core::request::KEPT_MS;
pub use crate::core::request::RequestId;
use crate::error::Result;
use crate::store;
use crate::store::answers::StoredAnswer;

/// How often old answers are looked for.
const FORGET_EVERY: Duration = Duration::from_secs(600);
/// Old answers are read by the time in which they were given, in milliseconds: of a first span, and then of spans in which
/// about as many batches of them are found as are wanted at once.
const FIRST_SPAN_MS: i64 = 1_000;
const LONGEST_SPAN_MS: i64 = 60_000;
const BATCHES_AT_ONCE: i64 = 256;
/// After so many spans it is written down how far forgetting has come.
const SPANS: usize = 1_000;

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
        let answers = Answers { state: operation.state(), request: &request };
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
    request: &'a RequestId,
}

impl Answers<'_> {
    /// The answer first given, if there is one. The request is noted before it is carried out, so that another one under
    /// the same key is refused, wherever it comes.
    async fn first(&self) -> Result<Option<KeptAnswer>> {
        let (log, key) = (&self.state.log, &self.request.key);
        log.forget_answer(key, self.state.clock.now_ms() - KEPT_MS, false).await?;
        let noted = log.keep_answer(key, &self.answer(None)).await?;
        self.kept_answer(noted)
    }

    /// Keeps an answer. Returns the one that another server gave before. That none can be kept is no reason to hold
    /// the answer back: a repeat finds what was made by its ids.
    async fn keep(&self, kept: KeptAnswer) -> Option<KeptAnswer> {
        match self.state.log.keep_answer(&self.request.key, &self.answer(Some(kept.clone()))).await {
            Ok(first) => self.kept_answer(first).ok().flatten().filter(|first| *first != kept),
            Err(error) => {
                tracing::warn!(%error, "the answer to a request was not kept");
                None
            }
        }
    }

    /// A request that failed keeps nothing: the same may come again.
    async fn give_up(&self) {
        if let Err(error) = self.state.log.forget_answer(&self.request.key, i64::MIN, true).await {
            tracing::warn!(%error, "a request that failed is noted as under way still");
        }
    }

    fn answer(&self, kept: Option<KeptAnswer>) -> StoredAnswer {
        let (body, location) = kept.map(|kept| (kept.body, kept.location)).unzip();
        let fingerprint = self.request.fingerprint.clone();
        StoredAnswer { fingerprint, events: None, body, location, created_at: self.state.clock.now_ms() }
    }

    /// What a stored answer says to this request.
    fn kept_answer(&self, answer: StoredAnswer) -> Result<Option<KeptAnswer>> {
        self.request.check(&answer)?;
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

/// Forgets answers from where forgetting ended last. Each is read once: a range of the store is read to its end, so it ends
/// where about as many are expected as are wanted.
async fn forget_old(state: &State) -> store::Result<()> {
    let before = state.clock.now_ms() - KEPT_MS;
    // Where the clock went back, it is the new time that counts.
    let mut from = state.log.answers_forgotten_until().await?.unwrap_or(before).min(before);
    let mut span = FIRST_SPAN_MS;
    let mut spans = 0_usize;
    while from < before {
        let until = before.min(from.saturating_add(span));
        let found = state.log.forget_answers(from, until).await?;
        from = until;
        span = next_span(span, found);
        spans += 1;
        if spans.is_multiple_of(SPANS) {
            state.log.set_answers_forgotten(from).await?;
        }
    }
    state.log.set_answers_forgotten(before).await
}

/// How long the next span is, after one in which so many batches were found.
fn next_span(span: i64, found: usize) -> i64 {
    let found = i64::try_from(found).unwrap_or(i64::MAX);
    let fitting = if found == 0 { span.saturating_mul(2) } else { span.saturating_mul(BATCHES_AT_ONCE) / found };
    fitting.clamp(1, LONGEST_SPAN_MS.min(span.saturating_mul(2)))
}

impl Entered {
    /// An id that the same request gets each time it comes.
    pub(super) fn derived_id(&self, request: &RequestId, part: &str) -> String {
        let name = format!("{}/{part}/{}/{}", self.record().id, request.key, request.fingerprint);
        Uuid::new_v5(&Uuid::NAMESPACE_OID, name.as_bytes()).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_shrink_where_much_is_found_and_grow_where_little_is() {
        assert_eq!(next_span(1_000, 0), 2_000);
        assert_eq!(next_span(1_000, 25_600), 10);
        assert_eq!(next_span(1_000, 100), 2_000);
        assert_eq!(next_span(1, 1_000_000), 1);
        assert_eq!(next_span(LONGEST_SPAN_MS, 0), LONGEST_SPAN_MS);
    }
}
