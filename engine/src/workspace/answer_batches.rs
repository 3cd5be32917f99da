//! Kept answers, read and written for all requests that wait at once: a statement for each would cost more than what the
//! request itself does.
//!
//! Where this process is alone on its store, an answer is written soon after it was given. One that is lost in a crash
//! is given again: what was made is found by the ids that the request gave it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};

use crate::core::State;
use crate::error::{Error, Result};
use crate::store::{self, answers::StoredAnswer};

/// Requests that wait for a place at most, and those of one statement.
const QUEUE: usize = 4_096;
const MAX_BATCH: usize = 512;
/// A pause between writes lets answers that come one by one become one write: nobody waits for it.
const GATHER: Duration = Duration::from_millis(20);

/// Answers that are not written yet, by their keys.
type Unwritten = Arc<Mutex<HashMap<String, StoredAnswer>>>;

/// The answers of a workspace.
pub struct AnswerBatches {
    reads: mpsc::Sender<Read>,
    writes: mpsc::Sender<Write>,
    unwritten: Unwritten,
}

struct Read {
    key: String,
    answer: oneshot::Sender<Result<Option<StoredAnswer>>>,
}

enum Write {
    /// What is noted under a key.
    Answer(String),
    /// Says when everything before it is written.
    Flush(oneshot::Sender<()>),
}

impl AnswerBatches {
    /// Starts what reads and writes; it ends when nobody can ask any more.
    pub fn start(state: &Arc<State>) -> AnswerBatches {
        let ((reads, to_read), (writes, to_write)) = (mpsc::channel(QUEUE), mpsc::channel(QUEUE));
        let unwritten = Unwritten::default();
        tokio::spawn(read(state.clone(), to_read));
        tokio::spawn(write(state.clone(), to_write, unwritten.clone()));
        AnswerBatches { reads, writes, unwritten }
    }

    /// The answer that is kept under a key.
    pub async fn read(&self, key: &str) -> Result<Option<StoredAnswer>> {
        if let Some(answer) = noted(&self.unwritten).get(key) {
            return Ok(Some(answer.clone()));
        }
        let (answer, answered) = oneshot::channel();
        self.reads.send(Read { key: key.to_owned(), answer }).await.map_err(|_| closing())?;
        answered.await.map_err(|_| closing())?
    }

    /// Keeps an answer from now on, and writes it soon.
    pub async fn keep(&self, key: &str, answer: StoredAnswer) {
        noted(&self.unwritten).insert(key.to_owned(), answer);
        if self.writes.send(Write::Answer(key.to_owned())).await.is_err() {
            tracing::warn!("the answer to a request was not kept: the workspace is closing");
        }
    }

    /// Returns when all that was kept is written.
    pub async fn flush(&self) {
        let (flushed, is_flushed) = oneshot::channel();
        if self.writes.send(Write::Flush(flushed)).await.is_ok() {
            // Where the sender is gone, nothing is written any more.
            let _ = is_flushed.await;
        }
    }
}

async fn read(state: Arc<State>, mut queue: mpsc::Receiver<Read>) {
    let mut batch = Vec::new();
    while queue.recv_many(&mut batch, MAX_BATCH).await > 0 {
        let keys: Vec<String> = batch.iter().map(|read| read.key.clone()).collect();
        match state.log.read_answers(&keys).await {
            Ok(mut found) => {
                for Read { key, answer } in batch.drain(..) {
                    // Whoever stopped waiting does not mind.
                    let _ = answer.send(Ok(found.remove(&key)));
                }
            }
            // It goes to one as it is, and to the others as what it means to them.
            Err(error) => {
                let mut error = Some(Error::from(error));
                for Read { answer, .. } in batch.drain(..) {
                    let again = || Error::Unavailable(store::Error::Conflict);
                    let _ = answer.send(Err(error.take().unwrap_or_else(again)));
                }
            }
        }
    }
}

async fn write(state: Arc<State>, mut queue: mpsc::Receiver<Write>, unwritten: Unwritten) {
    let mut batch = Vec::new();
    while queue.recv_many(&mut batch, MAX_BATCH).await > 0 {
        let (mut answers, mut flushed) = (HashMap::new(), Vec::new());
        for write in batch.drain(..) {
            match write {
                Write::Answer(key) => answers.extend(noted(&unwritten).get(&key).cloned().map(|answer| (key, answer))),
                Write::Flush(done) => flushed.push(done),
            }
        }
        if !answers.is_empty()
            && let Err(error) = state.log.write_answers(answers.iter()).await
        {
            tracing::warn!(%error, answers = answers.len(), "answers to requests were not kept");
        }
        forget(&unwritten, answers.keys());
        for done in flushed {
            let _ = done.send(());
        }
        tokio::time::sleep(GATHER).await;
    }
}

fn forget<'a>(unwritten: &Unwritten, keys: impl Iterator<Item = &'a String>) {
    let mut unwritten = noted(unwritten);
    keys.for_each(|key| drop(unwritten.remove(key)));
}

fn noted(unwritten: &Unwritten) -> MutexGuard<'_, HashMap<String, StoredAnswer>> {
    unwritten.lock().unwrap_or_else(PoisonError::into_inner)
}

fn closing() -> Error {
    Error::Unavailable(store::Error::Closing)
}
