//! The appender: the single writer of a workspace's log. It collects waiting appends and commits them together.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use crate::core::State;
use crate::core::known::Known;
use crate::core::redefine::Redefinition;
use crate::core::request::RequestId;
use crate::core::staging::{Staged, Staging, View};
use crate::error::{Error, Result};
use crate::model::event::{Event, NewEvent};
use crate::store::{self, log::Batch, retry};

/// The capacity of the queue. Senders wait while it is full.
const QUEUE: usize = 4_096;
/// The maximum number of appends and of bytes in one transaction.
const MAX_APPENDS: usize = 512;
const MAX_BYTES: usize = 4 << 20;

/// Decides which events an operation appends, given the state at the head of the log.
///
/// May run more than once: if another writer was faster, it runs again against the new state.
pub type Decide = Box<dyn Fn(&View<'_>) -> Result<Vec<NewEvent>> + Send + Sync>;

/// One append request. Either all of its events are appended or none.
pub struct Append {
    pub decide: Decide,
    /// The ids that a client chose for its events.
    pub event_ids: Vec<Arc<str>>,
    /// The identity of the request. Set if a repeat must return the same events.
    pub request: Option<RequestId>,
    pub actor: Arc<str>,
    /// Whether the append may write to managed types. Only their own operations may.
    pub managed: bool,
    /// The approximate size of the payloads, in bytes.
    pub size_bytes: usize,
    /// The upload that a file will refer to.
    pub upload: Option<Arc<str>>,
}

impl Append {
    /// Returns whether the store may know the append already.
    fn may_be_known(&self) -> bool {
        self.request.is_some() || self.upload.is_some() || !self.event_ids.is_empty()
    }
}

/// The result of an append.
#[derive(Debug, Clone)]
pub struct Appended {
    /// The events in the requested order, including those that were already in the log.
    pub events: Vec<Arc<Event>>,
    /// For each event, whether it was already in the log.
    pub repeated: Vec<bool>,
    /// Whether an earlier request appended the events and got the same response.
    pub replayed: bool,
}

impl Appended {
    /// Returns whether nothing new was appended.
    pub fn is_repeat(&self) -> bool {
        self.replayed || (!self.events.is_empty() && self.repeated.iter().all(|repeated| *repeated))
    }
}

struct Waiting {
    append: Append,
    /// The events already in the log whose ids were generated here.
    known: HashMap<Arc<str>, Event>,
    reply: oneshot::Sender<Result<Appended>>,
}

/// An entry of the queue.
enum Task {
    Append(Waiting),
    /// Defines a type. If the new definition folds differently, also replaces its aggregates with the refolded ones.
    Define {
        redefinition: Redefinition,
        reply: oneshot::Sender<Result<()>>,
    },
}

/// A handle to the queue. The appender ends when all handles are dropped and all requests are answered.
#[derive(Clone)]
pub struct Appender {
    state: Arc<State>,
    queue: mpsc::Sender<Task>,
}

impl Appender {
    /// Starts the appender of an open workspace. Its task ends when all handles are dropped and all requests are
    /// answered.
    pub fn start(state: Arc<State>) -> (Appender, JoinHandle<()>) {
        let (queue, waiting) = mpsc::channel(QUEUE);
        let task = tokio::spawn(run(state.clone(), waiting));
        (Appender { state, queue }, task)
    }

    /// Appends events. Returns when they are durable and folded.
    pub async fn append(&self, append: Append) -> Result<Appended> {
        // Generated ids are looked up here, since in the queue other appends would wait for the lookup. An event with
        // such an id is already in the log, since nobody can guess the id of a future event.
        let known = self.state.db.find_generated(&append.event_ids, self.state.folded.position()).await?;
        let (reply, response) = oneshot::channel();
        self.queue.send(Task::Append(Waiting { append, known, reply })).await.map_err(|_| closing())?;
        response.await.map_err(|_| self.unanswered())?
    }

    /// Defines a type between two batches. Returns when the states folded under the definition are visible.
    pub async fn define(&self, redefinition: Redefinition) -> Result<()> {
        let (reply, response) = oneshot::channel();
        self.queue.send(Task::Define { redefinition, reply }).await.map_err(|_| closing())?;
        response.await.map_err(|_| self.unanswered())?
    }

    /// Returns the error for a request that got no response: the appender has ended, or a panic ended the batch.
    fn unanswered(&self) -> Error {
        if self.queue.is_closed() { closing() } else { Error::Internal("the appender panicked".into()) }
    }
}

fn closing() -> Error {
    Error::Unavailable(store::Error::Closing)
}

async fn run(state: Arc<State>, mut queue: mpsc::Receiver<Task>) {
    let mut history = History::default();
    let mut next = queue.recv().await;
    while let Some(task) = next.take() {
        let first = match task {
            Task::Append(first) => first,
            Task::Define { redefinition, reply } => {
                match AssertUnwindSafe(state.define(redefinition)).catch_unwind().await {
                    Ok(defined) => drop(reply.send(defined)),
                    Err(_) => history.needs_catch_up = true,
                }
                next = queue.recv().await;
                continue;
            }
        };
        let mut bytes = first.append.size_bytes;
        let mut batch = vec![first];
        while batch.len() < MAX_APPENDS && bytes < MAX_BYTES {
            match queue.try_recv() {
                Ok(Task::Append(more)) => {
                    bytes += more.append.size_bytes;
                    batch.push(more);
                }
                Ok(other) => {
                    next = Some(other);
                    break;
                }
                Err(_) => break,
            }
        }
        // A panic ends only this batch. Its waiters notice because their response channels are dropped.
        if AssertUnwindSafe(commit(&state, batch, &mut history)).catch_unwind().await.is_err() {
            history.needs_catch_up = true;
        }
        if next.is_none() {
            next = queue.recv().await;
        }
    }
}

/// What the appender remembers from earlier batches.
#[derive(Default)]
struct History {
    /// Whether the outcome of the last batch is unknown. If so, the log is read before the next decision.
    needs_catch_up: bool,
    /// The number of further batches for which client-chosen ids and keys are looked up before writing.
    lookups_left: u32,
}

/// The number of batches with lookups after a batch that contained a repeat.
const LOOKUPS_AFTER_REPEAT: u32 = 64;

/// Commits a batch and responds to its waiters.
///
/// Event ids and idempotency keys are almost always new, and the store rejects those that are not. Therefore they are
/// looked up only if the store rejected some recently, or if a rejected append may be a repeat.
async fn commit(state: &State, batch: Vec<Waiting>, history: &mut History) {
    let folding = state.folding().await;
    if history.needs_catch_up
        && let Err(error) = state.catch_up_while(&folding).await
    {
        return refuse_all(batch, error);
    }
    history.needs_catch_up = false;
    let named = batch.iter().any(|waiting| waiting.append.may_be_known());
    let mut looks_up = named && history.lookups_left > 0;
    for wait in retry::waits() {
        let (staged, outcomes) = match stage(state, &batch, &mut looks_up).await {
            Ok(staged) => staged,
            Err(error) => return refuse_all(batch, error.into()),
        };
        let Staged { events, chosen_ids, answers, taken, freed, feed, published, types_changed, .. } = &staged;
        let types_changed = *types_changed;
        let write = Batch { events, chosen_ids, answers, taken, freed, feed, published, types_changed };
        match state.db.append(write).await {
            Ok(()) => {
                if looks_up {
                    let known = outcomes.iter().flatten().any(Appended::is_repeat);
                    history.lookups_left =
                        if known { LOOKUPS_AFTER_REPEAT } else { history.lookups_left.saturating_sub(1) };
                }
                metrics::counter!("foldwork_events_appended_total").increment(staged.events.len() as u64);
                state.publish(&staged.events, staged.aggregates, &staged.feed);
                for (waiting, outcome) in batch.into_iter().zip(outcomes) {
                    // The waiter may be gone.
                    let _ = waiting.reply.send(outcome);
                }
                return;
            }
            Err(store::Error::Conflict) => {
                if named && !looks_up {
                    looks_up = true;
                    history.lookups_left = LOOKUPS_AFTER_REPEAT;
                } else {
                    metrics::counter!("foldwork_append_conflicts_total").increment(1);
                    tokio::time::sleep(std::time::Duration::from_millis(wait)).await;
                }
                if let Err(error) = state.catch_up_while(&folding).await {
                    history.needs_catch_up = true;
                    return refuse_all(batch, error);
                }
            }
            Err(error) => {
                tracing::error!(%error, "append failed");
                history.needs_catch_up = true;
                return refuse_all(batch, error.into());
            }
        }
    }
    history.needs_catch_up = true;
    refuse_all(batch, Error::Unavailable(store::Error::Conflict));
}

/// Stages a batch. If an append that may be a repeat is rejected, looks up everything known and stages the batch again.
async fn stage(
    state: &State,
    batch: &[Waiting],
    looks_up: &mut bool,
) -> store::Result<(Staged, Vec<Result<Appended>>)> {
    loop {
        let mut known = Known::default();
        if *looks_up {
            known.look_up(state, batch.iter().map(|waiting| &waiting.append)).await?;
        }
        for (id, event) in batch.iter().flat_map(|waiting| &waiting.known) {
            known.events.entry(id.clone()).or_insert_with(|| event.clone());
        }
        // Read before the definitions: if a definition changes in between, the store rejects the batch, and it is
        // decided again.
        let types_changed = state.types.changed();
        let definitions = state.types.all();
        let mut staging = Staging::new(state, &definitions, &known);
        let outcomes: Vec<_> = batch.iter().map(|waiting| staging.stage(&waiting.append)).collect();
        let refused = |(waiting, outcome): (&Waiting, &Result<_>)| outcome.is_err() && waiting.append.may_be_known();
        if *looks_up || !batch.iter().zip(&outcomes).any(refused) {
            return Ok((Staged { types_changed, ..staging.finish() }, outcomes));
        }
        *looks_up = true;
    }
}

/// Responds to each waiter of a batch with the same error. The batch failed as a whole.
fn refuse_all(batch: Vec<Waiting>, error: Error) {
    let error = Arc::new(error);
    for waiting in batch {
        let _ = waiting.reply.send(Err(repeated(&error)));
    }
}

/// Returns a copy of an error for one of several waiters. An error that allows a retry still does so.
fn repeated(error: &Arc<Error>) -> Error {
    match &**error {
        Error::Unavailable(store::Error::Conflict) => Error::Unavailable(store::Error::Conflict),
        Error::Unavailable(store::Error::Closing) => closing(),
        Error::Unavailable(_) => Error::Unavailable(store::Error::Batch(error.clone())),
        _ => Error::internal(store::Error::Batch(error.clone())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_batch_returns_the_same_error_to_every_waiter() {
        let failures = [
            Error::Unavailable(store::Error::Unwritable("no room".into())),
            Error::Unavailable(store::Error::Conflict),
            Error::internal(store::Error::Corrupt("a commit".into())),
        ];
        for failure in failures {
            let (mut batch, mut responses) = (Vec::new(), Vec::new());
            for _ in 0..3 {
                let (reply, response) = oneshot::channel();
                let append = Append {
                    decide: Box::new(|_| Ok(Vec::new())),
                    event_ids: Vec::new(),
                    request: None,
                    actor: "system".into(),
                    managed: true,
                    size_bytes: 0,
                    upload: None,
                };
                batch.push(Waiting { append, known: HashMap::new(), reply });
                responses.push(response);
            }
            refuse_all(batch, failure);
            let errors: Vec<String> = responses
                .iter_mut()
                .map(|response| format!("{:?}", response.try_recv().expect("an answer").expect_err("an error")))
                .collect();
            assert!(errors.iter().all(|error| *error == errors[0]), "errors differ: {errors:?}");
        }
    }
}
