//! The appender: the single writer of a workspace's log. The appender collects waiting appends and commits them in one
//! transaction.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};

use crate::append::earlier_writes::EarlierWrites;
use crate::append::request::{Append, AppendOutcome};
use crate::append::staging::{BatchBuilder, StagedBatch};
use crate::error::{Error, Result};
use crate::metric;
use crate::model::event::Event;
use crate::model::id::position_hint;
use crate::state::State;
use crate::state::redefine::RefoldedType;
use crate::store::workspace::append::AppendBatch;
use crate::store::{self, Database, retry};

/// The capacity of the appender's queue, in requests. Senders wait while the queue is full.
const QUEUE: usize = 4_096;
/// The maximum number of appends in one transaction.
const MAX_APPENDS: usize = 512;
/// The approximate size of the events, in bytes, at which a transaction takes no further appends. The last append may
/// exceed this size.
const MAX_BYTES: usize = 4 << 20;

/// The assumed maximum number of events that other servers have appended since this server last read the end of the
/// log. If an event id contains a position that is at most this number after the known end of the log, another server
/// may have generated the id. The server then reads the log before the append. A random id almost never contains such a
/// position.
const MAX_UNREAD: u64 = 1 << 24;

/// The maximum pause before a batch. During the pause, another server can append to the same workspace.
const MAX_TURN: Duration = Duration::from_millis(100);

/// The pause before the appender reads the log, if other servers share the store, the outcome of a write is unknown and
/// no append follows. The pause doubles with each further read, up to [`MAX_PAUSE`].
const MIN_PAUSE: Duration = Duration::from_secs(1);
const MAX_PAUSE: Duration = Duration::from_secs(30);

struct QueuedAppend {
    append: Append,
    /// The events of the append that are already in the log, by event id. Contains only events whose ids this program
    /// generated.
    known: HashMap<Arc<str>, Event>,
    reply: oneshot::Sender<Result<AppendOutcome>>,
}

/// An entry of the appender's queue.
enum AppendTask {
    Append(QueuedAppend),
    /// Defines a type. If events fold differently under the new definition, also replaces the type's aggregates with
    /// refolded aggregates.
    Define {
        refolded: RefoldedType,
        types_changed: u64,
        reply: oneshot::Sender<Result<()>>,
    },
}

/// A handle to the appender's queue, and the right to change the workspace's records. The appender ends after all
/// handles are dropped and all requests are answered.
#[derive(Clone)]
pub struct Appender {
    state: Arc<State>,
    db: Database,
    queue: mpsc::Sender<AppendTask>,
}

impl Appender {
    /// Starts the appender of an open workspace. The returned task ends after all handles are dropped and all requests
    /// are answered.
    pub fn start(state: Arc<State>, db: Database) -> (Appender, JoinHandle<()>) {
        let (queue, waiting) = mpsc::channel(QUEUE);
        let task = tokio::spawn(run(state.clone(), db.clone(), waiting));
        (Appender { state, db, queue }, task)
    }

    /// Returns the workspace's database, for changes of records outside the log.
    pub fn database(&self) -> &Database {
        &self.db
    }

    pub fn workspace_id(&self) -> &str {
        &self.state.record.id
    }

    /// Appends events. Returns after the events are durable and folded.
    pub async fn append(&self, append: Append) -> Result<AppendOutcome> {
        // Looks up generated ids before queueing, because a lookup in the appender would delay other appends. No event
        // can get such an id after the lookup, because a client cannot guess an id that is generated later. If the id
        // contains a position soon after the known end, another server may have generated the id.
        let end = self.state.folded.position();
        let unread = end + 1..=end.saturating_add(MAX_UNREAD);
        if append.event_ids.iter().any(|id| position_hint(id).is_some_and(|position| unread.contains(&position))) {
            self.state.refresh().await?;
        }
        let known = self.state.db.find_generated(&append.event_ids, self.state.folded.position()).await?;
        let (reply, response) = oneshot::channel();
        self.queue.send(AppendTask::Append(QueuedAppend { append, known, reply })).await.map_err(|_| closing())?;
        response.await.map_err(|_| self.unanswered())?
    }

    /// Defines a type between two batches. Returns when the states folded under the definition are visible.
    pub async fn define(&self, refolded: RefoldedType, types_changed: u64) -> Result<()> {
        let (reply, response) = oneshot::channel();
        self.queue.send(AppendTask::Define { refolded, types_changed, reply }).await.map_err(|_| closing())?;
        response.await.map_err(|_| self.unanswered())?
    }

    /// Returns the error for a request that got no response: the appender has ended, or has panicked while it handled
    /// the request.
    fn unanswered(&self) -> Error {
        if self.queue.is_closed() { closing() } else { Error::Internal("the appender panicked".into()) }
    }
}

fn closing() -> Error {
    Error::Unavailable(store::Error::Closing)
}

async fn run(state: Arc<State>, db: Database, mut queue: mpsc::Receiver<AppendTask>) {
    let mut history = History::default();
    let mut next = next_task(&state, &mut queue, &mut history).await;
    while let Some(task) = next.take() {
        let first = match task {
            AppendTask::Append(first) => first,
            AppendTask::Define { refolded, types_changed, reply } => {
                match AssertUnwindSafe(state.define(&db, refolded, types_changed)).catch_unwind().await {
                    Ok(defined) => {
                        if matches!(defined, Err(Error::Unavailable(_))) {
                            history.note_unknown(&db);
                        }
                        let _ = reply.send(defined);
                    }
                    Err(_) => history.note_unknown(&db),
                }
                next = next_task(&state, &mut queue, &mut history).await;
                continue;
            }
        };
        if let Some(pause) = history.pause.take() {
            tokio::time::sleep(pause).await;
        }
        let mut bytes = first.append.size_bytes;
        let mut batch = vec![first];
        while batch.len() < MAX_APPENDS && bytes < MAX_BYTES {
            match queue.try_recv() {
                Ok(AppendTask::Append(more)) => {
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
        // A panic ends only this batch. The waiters of the batch notice the panic because their response channels are
        // dropped.
        if AssertUnwindSafe(commit(&state, &db, batch, &mut history)).catch_unwind().await.is_err() {
            history.note_unknown(&db);
        }
        if next.is_none() {
            next = next_task(&state, &mut queue, &mut history).await;
        }
    }
}

/// Waits for the next task. If other servers share the store, also reads the log and reports the end of the log to
/// these servers while the outcome of a write is unknown, because the write may have appended events.
async fn next_task(state: &State, queue: &mut mpsc::Receiver<AppendTask>, history: &mut History) -> Option<AppendTask> {
    let mut pause = MIN_PAUSE;
    while let Some(settled_at) = history.settled_at.filter(|_| !state.is_exclusive()) {
        if let Ok(task) = timeout(pause, queue.recv()).await {
            return task;
        }
        pause = MAX_PAUSE.min(2 * pause);
        let is_settled = Instant::now() >= settled_at;
        if state.catch_up().await.is_ok() {
            history.needs_catch_up = false;
            state.report_log();
            history.settled_at = history.settled_at.filter(|_| !is_settled);
        }
    }
    queue.recv().await
}

/// The state that the appender keeps between batches.
#[derive(Default)]
struct History {
    /// Whether the appender must read the log before the next decision. Set after a write whose outcome is unknown, and
    /// after a batch that was rejected because of conflicts.
    needs_catch_up: bool,
    /// The time after which no write of unknown outcome can still be committed. `None` if every outcome is known.
    settled_at: Option<Instant>,
    /// The pause before the next batch. Set after a batch that conflicted with a batch of another server. During the
    /// pause, the other server can read the log and commit. Without the pause, the server that committed last would
    /// almost always be the first to commit again, because the other servers must read its events before each attempt.
    pause: Option<Duration>,
    /// The number of upcoming batches for which client-chosen ids and keys are looked up before the write. Set when the
    /// store rejects a batch with such ids or keys, or when a batch contains a repeated request.
    lookups_left: u32,
}

impl History {
    /// Records that the outcome of a write is unknown.
    fn note_unknown(&mut self, db: &Database) {
        self.needs_catch_up = true;
        self.settled_at = Some(Instant::now() + db.max_commit_delay());
    }
}

/// The number of further batches for which the appender looks up event ids and idempotency keys, after a batch that
/// contained a repeated request, and after the store rejected a batch with such ids or keys.
const LOOKUPS_AFTER_REPEAT: u32 = 64;

/// Commits a batch and responds to the waiters of the batch.
///
/// Chosen event ids and idempotency keys are almost always new, and the store rejects commits with known chosen ids and
/// keys. Therefore the appender looks up these ids and keys only in three cases: a recent batch may have contained a
/// known id or key, the store has rejected the batch, or an append that failed its checks may be a repeat.
/// [`Appender::append`] looks up the ids that this program generated.
async fn commit(state: &State, db: &Database, mut batch: Vec<QueuedAppend>, history: &mut History) {
    let folding = state.folding().await;
    if history.needs_catch_up
        && let Err(error) = state.catch_up_while(&folding).await
    {
        return refuse_all(batch, error);
    }
    // A view that may be stale must not reject an append: another server may have written since.
    let mut is_current = state.is_exclusive() || history.needs_catch_up;
    history.needs_catch_up = false;
    let named = batch.iter().any(|waiting| waiting.append.may_be_known());
    let mut looks_up = named && history.lookups_left > 0;
    // The time at which the attempt after the last conflict began.
    let mut repeated_at: Option<Instant> = None;
    for delay in retry::append_delays() {
        let (staged, outcomes) = match stage(state, db, &batch, &mut looks_up).await {
            Ok(staged) => staged,
            Err(error) => return refuse_all(batch, error.into()),
        };
        // A batch with events needs no refresh here: the store rejects the write if the log has advanced. For a batch
        // without events, the store does not check the end of the log, so the store cannot detect rejections, or
        // decisions to append nothing, that are based on a stale view.
        if !is_current && staged.events.is_empty() {
            is_current = true;
            match state.catch_up_if_behind(&folding).await {
                Ok(false) => {}
                Ok(true) => continue,
                Err(error) => return refuse_all(batch, error),
            }
        }
        let StagedBatch { events, responses, types_changed, .. } = &staged;
        // If the batch has appends of two leaders, the store rejects the batch, and `without_overtaken` then removes
        // the appends of the earlier leader.
        let epoch = batch.iter().filter_map(|waiting| waiting.append.epoch).min();
        let write = AppendBatch { events, responses, types_changed: *types_changed, epoch };
        let began = state.clock.monotonic_us();
        match db.append(write).await {
            Ok(()) => {
                if looks_up {
                    let known = outcomes.iter().flatten().any(AppendOutcome::is_repeat);
                    history.lookups_left =
                        if known { LOOKUPS_AFTER_REPEAT } else { history.lookups_left.saturating_sub(1) };
                }
                metric::EVENTS_APPENDED.add(&[], staged.events.len() as u64);
                metric::COMMIT_SECONDS.record(&[], seconds_since(state, began));
                let (events, feed) = staged.events_with_feed();
                state.publish(&events, staged.aggregates, &feed);
                state.report_log();
                // The batch has advanced the log, so the store rejects every earlier write now.
                if !events.is_empty() {
                    history.settled_at = None;
                }
                history.pause = repeated_at.map(|began| MAX_TURN.min(began.elapsed()));
                for (waiting, outcome) in batch.into_iter().zip(outcomes) {
                    // The send fails if the waiter has stopped waiting.
                    let _ = waiting.reply.send(outcome);
                }
                return;
            }
            Err(store::Error::Conflict) => {
                if named && !looks_up {
                    looks_up = true;
                    history.lookups_left = LOOKUPS_AFTER_REPEAT;
                } else {
                    metric::APPEND_CONFLICTS.add(&[], 1);
                    tokio::time::sleep(delay).await;
                    repeated_at = Some(Instant::now());
                }
                if let Err(error) = state.catch_up_while(&folding).await {
                    history.needs_catch_up = true;
                    return refuse_all(batch, error);
                }
                is_current = true;
                batch = match without_overtaken(db, batch).await {
                    Ok(rest) if rest.is_empty() => return,
                    Ok(rest) => rest,
                    Err((rest, error)) => return refuse_all(rest, error.into()),
                };
            }
            Err(error) => {
                tracing::error!(%error, workspace = %state.record.id, "failed to append a batch");
                history.note_unknown(db);
                return refuse_all(batch, error.into());
            }
        }
    }
    history.needs_catch_up = true;
    metric::CONFLICTS.add(&["append_given_up"], 1);
    refuse_all(batch, Error::Unavailable(store::Error::Conflict));
}

/// Rejects the appends that have the epoch of an earlier leader. Returns all other appends.
async fn without_overtaken(
    db: &Database,
    batch: Vec<QueuedAppend>,
) -> Result<Vec<QueuedAppend>, (Vec<QueuedAppend>, store::Error)> {
    if batch.iter().all(|waiting| waiting.append.epoch.is_none()) {
        return Ok(batch);
    }
    let leader = match db.read_leader().await {
        Ok(leader) => leader.unwrap_or_default(),
        Err(error) => return Err((batch, error)),
    };
    let is_overtaken = |waiting: &QueuedAppend| waiting.append.epoch.is_some_and(|epoch| epoch != leader.epoch);
    let (overtaken, rest) = batch.into_iter().partition(is_overtaken);
    refuse_all(overtaken, Error::Unavailable(store::Error::Conflict));
    Ok(rest)
}

/// Stages a batch. If a rejected append may repeat an earlier request, looks up the events and responses of the batch
/// that the store already contains, and stages the whole batch again.
async fn stage(
    state: &State,
    db: &Database,
    batch: &[QueuedAppend],
    looks_up: &mut bool,
) -> store::Result<(StagedBatch, Vec<Result<AppendOutcome>>)> {
    loop {
        let mut known = EarlierWrites::default();
        if *looks_up {
            known.look_up(state, db, batch.iter().map(|waiting| &waiting.append)).await?;
        }
        for (id, event) in batch.iter().flat_map(|waiting| &waiting.known) {
            known.events.entry(id.clone()).or_insert_with(|| event.clone());
        }
        // Reads the change counter before the definitions. If a definition changes in between, the store rejects the
        // batch, and the appender stages the batch again.
        let types_changed = state.types.changed();
        let definitions = state.types.all();
        let mut staging = BatchBuilder::new(state, &definitions, &known);
        let outcomes: Vec<_> = batch.iter().map(|waiting| staging.stage(&waiting.append)).collect();
        let refused =
            |(waiting, outcome): (&QueuedAppend, &Result<_>)| outcome.is_err() && waiting.append.may_be_known();
        if *looks_up || !batch.iter().zip(&outcomes).any(refused) {
            return Ok((StagedBatch { types_changed, ..staging.finish() }, outcomes));
        }
        *looks_up = true;
    }
}

fn seconds_since(state: &State, began_us: u64) -> f64 {
    state.clock.monotonic_us().saturating_sub(began_us) as f64 / 1e6
}

/// Responds to every waiter of a failed batch with the same error.
fn refuse_all(batch: Vec<QueuedAppend>, error: Error) {
    let error = Arc::new(error);
    for waiting in batch {
        let _ = waiting.reply.send(Err(repeated(&error)));
    }
}

/// Returns a copy of an error for one of several waiters. The copy of a retryable error is retryable as well.
fn repeated(error: &Arc<Error>) -> Error {
    match &**error {
        Error::Unavailable(store::Error::Conflict) => Error::Unavailable(store::Error::Conflict),
        Error::Unavailable(store::Error::Closing) => closing(),
        Error::Unavailable(store::Error::Unresponsive) => Error::Unavailable(store::Error::Unresponsive),
        Error::Unavailable(_) => Error::Unavailable(store::Error::Batch(error.clone())),
        _ => Error::internal(store::Error::Batch(error.clone())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::access::WorkspaceRecord;
    use crate::state::Environment;
    use crate::state::peers::Peers;
    use crate::store::Store;

    #[tokio::test]
    async fn a_committed_write_without_a_response_is_reported_to_other_servers() {
        let store = Store::connect("mem://").await.expect("memory").share();
        let db = store.workspace("0-1").await.expect("a database");
        let peers = Arc::new(Peers::new("s".into()));
        let environment = Environment::sample(&store, Some(peers.clone())).await;
        let state = State::load(WorkspaceRecord::sample(), &db, environment).await.expect("an empty workspace");
        let mut history = History::default();
        history.note_unknown(&db);
        // The store has committed the write although its sender got no response.
        let event = Event::sample("a", "article.created", 1);
        db.append(AppendBatch { events: &[Arc::new(event).into()], ..AppendBatch::default() }).await.expect("appended");
        let (_handle, mut queue) = mpsc::channel(1);
        tokio::select! {
            _ = next_task(&state, &mut queue, &mut history) => panic!("a task arrived from an empty queue"),
            () = peers.advanced() => {}
        }
        let progress = peers.take_unreported().progress;
        assert_eq!(progress.iter().map(|(id, progress)| (&**id, progress.position)).collect::<Vec<_>>(), [("0-1", 1)]);
    }

    #[test]
    fn a_failed_batch_returns_the_same_error_to_every_waiter() {
        let failures = [
            Error::Unavailable(store::Error::Unwritable("no space left".into())),
            Error::Unavailable(store::Error::Conflict),
            Error::internal(store::Error::corrupt("a commit")),
        ];
        for failure in failures {
            let (mut batch, mut responses) = (Vec::new(), Vec::new());
            for _ in 0..3 {
                let (reply, response) = oneshot::channel();
                let append = Append::decided("system".into(), Box::new(|_| Ok(Vec::new())));
                batch.push(QueuedAppend { append, known: HashMap::new(), reply });
                responses.push(response);
            }
            refuse_all(batch, failure);
            let errors: Vec<String> = responses
                .iter_mut()
                .map(|response| format!("{:?}", response.try_recv().expect("a response").expect_err("an error")))
                .collect();
            assert!(errors.iter().all(|error| *error == errors[0]), "errors differ: {errors:?}");
        }
    }
}
