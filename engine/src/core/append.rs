//! The appender: the one writer of a workspace's log. It collects waiting appends and commits them together.

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

/// Appends that wait at most; a further one waits until one is taken out.
const QUEUE: usize = 4_096;
/// Appends and bytes that go into one transaction.
const MAX_APPENDS: usize = 512;
const MAX_BYTES: usize = 4 << 20;

/// What an operation wants appended, decided against the state at the head of the log.
///
/// It may run more than once: again after another writer was faster.
pub type Decide = Box<dyn Fn(&View<'_>) -> Result<Vec<NewEvent>> + Send + Sync>;

/// One append request: all of its events or none.
pub struct Append {
    pub decide: Decide,
    /// Ids that a client chose.
    pub event_ids: Vec<Arc<str>>,
    /// The request, where a repeat of it is to be answered with the same events.
    pub request: Option<RequestId>,
    pub actor: Arc<str>,
    /// The managed types' own operations may append to them.
    pub managed: bool,
    /// Bytes of the payloads, roughly.
    pub size_bytes: usize,
    /// The upload that a file is to name.
    pub upload: Option<Arc<str>>,
}

impl Append {
    /// Whether the store may tell that it was done before.
    fn may_be_known(&self) -> bool {
        self.request.is_some() || self.upload.is_some() || !self.event_ids.is_empty()
    }
}

/// What became of an append.
#[derive(Debug, Clone)]
pub struct Appended {
    /// In the order asked; those that were in the log before stand among them.
    pub events: Vec<Arc<Event>>,
    /// Which of them were there before.
    pub repeated: Vec<bool>,
    /// It was appended for an earlier request, which was answered with the same.
    pub replayed: bool,
}

impl Appended {
    /// Whether nothing new was appended.
    pub fn is_repeat(&self) -> bool {
        self.replayed || (!self.events.is_empty() && self.repeated.iter().all(|repeated| *repeated))
    }
}

struct Waiting {
    append: Append,
    /// The events already in the log under ids that were made here.
    known: HashMap<Arc<str>, Event>,
    answer: oneshot::Sender<Result<Appended>>,
}

/// What stands in the queue.
enum Task {
    Append(Waiting),
    /// Define a type, and show its aggregates as they were folded aside where it folds otherwise than before.
    Define {
        redefinition: Redefinition,
        answer: oneshot::Sender<Result<()>>,
    },
}

/// The queue's near end. Dropping all of them ends the appender once it has answered everyone.
#[derive(Clone)]
pub struct Appender {
    state: Arc<State>,
    queue: mpsc::Sender<Task>,
}

impl Appender {
    /// Starts the appender of an open workspace. The task ends when all are answered and nobody can ask any more.
    pub fn start(state: Arc<State>) -> (Appender, JoinHandle<()>) {
        let (queue, waiting) = mpsc::channel(QUEUE);
        let task = tokio::spawn(run(state.clone(), waiting));
        (Appender { state, queue }, task)
    }

    /// Appends and answers when the events are on disk and folded.
    pub async fn append(&self, append: Append) -> Result<Appended> {
        // What an id says about its event is looked up here and not in the queue, where others would wait for it: what is
        // in the log by now is there, and nobody can guess the id of what comes.
        let known = self.state.log.find_generated(&append.event_ids, self.state.folded.position()).await?;
        let (answer, answered) = oneshot::channel();
        self.queue.send(Task::Append(Waiting { append, known, answer })).await.map_err(|_| closing())?;
        answered.await.map_err(|_| self.unanswered())?
    }

    /// Defines a type between two batches, and answers when states folded as it says are visible.
    pub async fn define(&self, redefinition: Redefinition) -> Result<()> {
        let (answer, answered) = oneshot::channel();
        self.queue.send(Task::Define { redefinition, answer }).await.map_err(|_| closing())?;
        answered.await.map_err(|_| self.unanswered())?
    }

    /// Why nobody answered what was taken from the queue: the queue's end is gone, or a panic ended the batch.
    fn unanswered(&self) -> Error {
        if self.queue.is_closed() { closing() } else { Error::Internal("the appender panicked".into()) }
    }
}

fn closing() -> Error {
    Error::Unavailable(store::Error::Closing)
}

async fn run(state: Arc<State>, mut queue: mpsc::Receiver<Task>) {
    let mut course = Course::default();
    let mut next = queue.recv().await;
    while let Some(task) = next.take() {
        let first = match task {
            Task::Append(first) => first,
            Task::Define { redefinition, answer } => {
                match AssertUnwindSafe(state.define(redefinition)).catch_unwind().await {
                    Ok(defined) => drop(answer.send(defined)),
                    Err(_) => course.doubtful = true,
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
        // A panic ends the batch, whose waiters learn of it as their answers are dropped, and nothing else.
        if AssertUnwindSafe(commit(&state, batch, &mut course)).catch_unwind().await.is_err() {
            course.doubtful = true;
        }
        if next.is_none() {
            next = queue.recv().await;
        }
    }
}

/// What the appender learnt of the batches so far.
#[derive(Default)]
struct Course {
    /// After a failure whose outcome is not known, the log is read before anything is decided.
    doubtful: bool,
    /// For so many batches, what clients chose is looked up before they are written.
    asking: u32,
}

/// How many batches are looked up after one that held something known.
const ASKED: u32 = 64;

/// Commits a batch and answers its waiters.
///
/// Event ids and idempotency keys are new almost always, and the store refuses those that are not: so they are looked up
/// only where it did so lately, or where an append is refused that may be a repeat.
async fn commit(state: &State, batch: Vec<Waiting>, course: &mut Course) {
    let folding = state.folding().await;
    if course.doubtful
        && let Err(error) = state.catch_up_while(&folding).await
    {
        return refuse_all(batch, error);
    }
    course.doubtful = false;
    let named = batch.iter().any(|waiting| waiting.append.may_be_known());
    let mut asks = named && course.asking > 0;
    for wait in retry::waits() {
        let (staged, outcomes) = match stage(state, &batch, &mut asks).await {
            Ok(staged) => staged,
            Err(error) => return refuse_all(batch, error.into()),
        };
        let Staged { events, chosen_ids, answers, taken, freed, feed, published, types_changed, .. } = &staged;
        let types_changed = *types_changed;
        let write = Batch { events, chosen_ids, answers, taken, freed, feed, published, types_changed };
        match state.log.append(write).await {
            Ok(()) => {
                if asks {
                    let known = outcomes.iter().flatten().any(Appended::is_repeat);
                    course.asking = if known { ASKED } else { course.asking.saturating_sub(1) };
                }
                metrics::counter!("foldwork_events_appended_total").increment(staged.events.len() as u64);
                state.publish(&staged.events, staged.aggregates, &staged.feed);
                for (waiting, outcome) in batch.into_iter().zip(outcomes) {
                    // Whoever stopped waiting does not mind.
                    let _ = waiting.answer.send(outcome);
                }
                return;
            }
            Err(store::Error::Conflict) => {
                if named && !asks {
                    asks = true;
                    course.asking = ASKED;
                } else {
                    metrics::counter!("foldwork_append_conflicts_total").increment(1);
                    tokio::time::sleep(std::time::Duration::from_millis(wait)).await;
                }
                if let Err(error) = state.catch_up_while(&folding).await {
                    course.doubtful = true;
                    return refuse_all(batch, error);
                }
            }
            Err(error) => {
                tracing::error!(%error, "append failed");
                course.doubtful = true;
                return refuse_all(batch, error.into());
            }
        }
    }
    course.doubtful = true;
    refuse_all(batch, Error::Unavailable(store::Error::Conflict));
}

/// Puts a batch together. What is refused may be a repeat of what was done: then everything is looked up and put
/// together anew.
async fn stage(state: &State, batch: &[Waiting], asks: &mut bool) -> store::Result<(Staged, Vec<Result<Appended>>)> {
    loop {
        let mut known = Known::default();
        if *asks {
            known.look_up(state, batch.iter().map(|waiting| &waiting.append)).await?;
        }
        for (id, event) in batch.iter().flat_map(|waiting| &waiting.known) {
            known.events.entry(id.clone()).or_insert_with(|| event.clone());
        }
        // Before the definitions: what changes in between is refused, and decided again.
        let types_changed = state.types.changed();
        let definitions = state.types.all();
        let mut staging = Staging::new(state, &definitions, &known);
        let outcomes: Vec<_> = batch.iter().map(|waiting| staging.stage(&waiting.append)).collect();
        let refused = |(waiting, outcome): (&Waiting, &Result<_>)| outcome.is_err() && waiting.append.may_be_known();
        if *asks || !batch.iter().zip(&outcomes).any(refused) {
            return Ok((Staged { types_changed, ..staging.finish() }, outcomes));
        }
        *asks = true;
    }
}

/// Answers each waiter of a batch with the same error: the batch failed as a whole, and none of them is to blame for it.
fn refuse_all(batch: Vec<Waiting>, error: Error) {
    let error = Arc::new(error);
    for waiting in batch {
        let _ = waiting.answer.send(Err(repeated(&error)));
    }
}

/// An error that several are told. What may succeed later remains so.
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
    fn a_batch_that_fails_answers_each_of_its_waiters_alike() {
        let failures = [
            Error::Unavailable(store::Error::Unwritable("no room".into())),
            Error::Unavailable(store::Error::Conflict),
            Error::internal(store::Error::Corrupt("a commit".into())),
        ];
        for failure in failures {
            let (mut batch, mut answers) = (Vec::new(), Vec::new());
            for _ in 0..3 {
                let (answer, answered) = oneshot::channel();
                let append = Append {
                    decide: Box::new(|_| Ok(Vec::new())),
                    event_ids: Vec::new(),
                    request: None,
                    actor: "system".into(),
                    managed: true,
                    size_bytes: 0,
                    upload: None,
                };
                batch.push(Waiting { append, known: HashMap::new(), answer });
                answers.push(answered);
            }
            refuse_all(batch, failure);
            let told: Vec<String> = answers
                .iter_mut()
                .map(|answered| format!("{:?}", answered.try_recv().expect("an answer").expect_err("an error")))
                .collect();
            assert!(told.iter().all(|error| *error == told[0]), "{told:?}");
        }
    }
}
