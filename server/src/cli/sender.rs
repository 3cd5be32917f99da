//! Sends events to the server in batches. The source is read while a request is in flight.

use std::fmt;
use std::thread;

use anyhow::anyhow;
use reqwest::Method;
use reqwest::header::CONTENT_TYPE;
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::mpsc;

use super::batch::{Batch, Batcher, Origin};
use super::client::{CallError, Client};
use super::event::Event;
use super::progress::Progress;
use super::projects::Projects;
use super::retry;

/// The number of batches that are buffered while a request is in flight.
const QUEUE_CAPACITY: usize = 2;

/// The outcome of sending events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// The number of events that were appended.
    pub appended: u64,
    /// The number of events that were already on the server.
    pub repeated: u64,
}

/// The sending end of the channel from a source to the sender. The source runs in a separate thread.
pub struct Outlet {
    batcher: Batcher,
    batches: mpsc::Sender<Batch>,
}

#[derive(Deserialize)]
struct Appended {
    appended: Option<u64>,
    repeated: Option<u64>,
    #[serde(default)]
    renamed: Vec<Renamed>,
}

/// An article that got another slug than its event has, because another article has that slug.
#[derive(Deserialize)]
struct Renamed {
    index: usize,
    aggregate_id: String,
    slug: String,
}

/// Reads a source and sends its events in order. If the source fails, the events before the error are still sent.
pub async fn deliver<S>(client: &Client, progress: &Progress, source: S) -> anyhow::Result<Tally>
where
    S: FnOnce(&mut Outlet) -> anyhow::Result<()> + Send + 'static,
{
    let (sender, mut batches) = mpsc::channel(QUEUE_CAPACITY);
    let reader = thread::Builder::new().name("import".to_owned()).spawn(move || Outlet::run(sender, source))?;
    let mut tally = Tally::default();
    send_all(client, progress, &mut batches, &mut tally).await.map_err(|error| tally.with_progress(error))?;
    let read = reader.join().unwrap_or_else(|_| Err(anyhow!("the source cannot be read to its end")));
    read.map(|()| tally).map_err(|error| tally.with_progress(error))
}

impl Outlet {
    /// Adds one event. `read` is the read position in the source after the event.
    pub fn push(&mut self, event: &Event<'_>, origin: Origin, read: u64) -> anyhow::Result<()> {
        let json = event.to_json()?;
        match self.batcher.push(&json, event.project_id.as_deref(), origin, read) {
            Some(full) => self.hand_over(full),
            None => Ok(()),
        }
    }

    fn run(batches: mpsc::Sender<Batch>, source: impl FnOnce(&mut Self) -> anyhow::Result<()>) -> anyhow::Result<()> {
        let mut outlet = Self { batcher: Batcher::default(), batches };
        let read = source(&mut outlet);
        let rest = match outlet.batcher.take() {
            Some(rest) => outlet.hand_over(rest),
            None => Ok(()),
        };
        read.and(rest)
    }

    fn hand_over(&self, batch: Batch) -> anyhow::Result<()> {
        self.batches.blocking_send(batch).map_err(|_| anyhow!("the sender has stopped"))
    }
}

async fn send_all(
    client: &Client,
    progress: &Progress,
    batches: &mut mpsc::Receiver<Batch>,
    tally: &mut Tally,
) -> anyhow::Result<()> {
    let note = |text: &str| progress.note(text);
    let mut projects = Projects::load(client, note).await?;
    while let Some(batch) = batches.recv().await {
        for project in &batch.projects {
            projects.ensure(client, project, note).await?;
        }
        let sent = send(client, progress, &batch).await.map_err(|error| explain(error, client, &batch))?;
        tally.appended += sent.appended;
        tally.repeated += sent.repeated;
        progress.advance(batch.read, tally.total());
    }
    Ok(())
}

async fn send(client: &Client, progress: &Progress, batch: &Batch) -> Result<Tally, CallError> {
    let request = || {
        client
            .request(Method::POST, &["events"])
            .header(CONTENT_TYPE, "application/json")
            .header("Prefer", "return=minimal")
            .body(batch.body.clone())
    };
    let response = retry::call(client, |text| progress.note(text), request).await?;
    let Appended { appended, repeated, renamed } = response.json()?;
    for Renamed { index, aggregate_id, slug } in renamed {
        let place = batch.whereabouts(Some(index));
        progress
            .note(&format!("warning: {place}: the slug is taken or not valid; '{aggregate_id}' has the slug '{slug}'"));
    }
    let repeated = repeated.unwrap_or(if response.replayed { batch.len() } else { 0 });
    Ok(Tally { appended: appended.unwrap_or(batch.len().saturating_sub(repeated)), repeated })
}

/// Adds to an error the places in the source from which the batch's events come.
fn explain(error: CallError, client: &Client, batch: &Batch) -> anyhow::Error {
    let index = match &error {
        CallError::Refused(refusal) => refusal.body.get("index").and_then(Value::as_u64),
        _ => None,
    };
    let whereabouts = batch.whereabouts(index.and_then(|index| usize::try_from(index).ok()));
    let tries = if error.is_passing() {
        format!(" after {} attempts; the import can be repeated", client.retry_policy().tries)
    } else {
        String::new()
    };
    anyhow::Error::new(error).context(format!("{whereabouts} not appended{tries}"))
}

impl Tally {
    /// Returns the number of sent events that the server has.
    pub fn total(&self) -> u64 {
        self.appended.saturating_add(self.repeated)
    }

    /// Adds to an error the number of events sent before the error.
    fn with_progress(self, error: anyhow::Error) -> anyhow::Error {
        if self.total() == 0 { error } else { error.context(format!("stopped after {self}")) }
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = if self.appended == 1 { "" } else { "s" };
        write!(f, "{} event{plural} ({} already there)", self.appended, self.repeated)
    }
}
