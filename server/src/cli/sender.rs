//! Sends events to the server in batches. The source is read while a request is in flight.

use std::fmt;
use std::thread;

use anyhow::{Context, anyhow};
use foldwork_engine::model::excerpt::excerpt_of;
use foldwork_engine::model::slug;
use reqwest::Method;
use reqwest::header::CONTENT_TYPE;
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::mpsc;

use super::batch::{RequestBatch, whereabouts};
use super::client::{CallError, Client, Success};
use super::event::PortableEvent;
use super::output::counted;
use super::portable::folder::FilesFolder;
use super::portable::lines::{ExportedDefinition, ExportedProject};
use super::progress::ProgressIndicator;
use super::projects::Projects;
use super::retry;
use super::types::Types;
use super::uploads::{NamedFile, Uploads};

/// The maximum number of items from the source that wait for the sender while a request is in flight.
const QUEUE_CAPACITY: usize = 2;

/// The outcome of sending events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SendTally {
    /// The number of events that were appended.
    pub appended: u64,
    /// The number of events that were already on the server.
    pub repeated: u64,
}

/// The sending end of the channel from a source to the sender. The source runs in a separate thread.
pub struct Outlet {
    open: RequestBatch,
    parcels: mpsc::Sender<Parcel>,
}

/// An item that a source passes to the sender. The sender handles the items in the order of the source.
pub enum Parcel {
    Events(RequestBatch),
    /// A definition of a type, and the number of its line in the source.
    Definition(ExportedDefinition, u64),
    /// A project that an export describes.
    Project(ExportedProject),
    /// A file of the source, the folder that has its bytes, and the number of the line with the file's event.
    File(NamedFile, FilesFolder, u64),
}

/// The response to a request that appends events.
#[derive(Deserialize)]
pub struct AppendReply {
    pub appended: Option<u64>,
    repeated: Option<u64>,
    #[serde(default)]
    renamed: Vec<RenamedArticle>,
}

/// An article that got another slug. Either the slug in the event is taken or not valid, or the event restores the
/// article and the former slug of the article is taken.
#[derive(Deserialize)]
pub struct RenamedArticle {
    index: usize,
    aggregate_id: String,
    slug: String,
    refused: Option<String>,
    #[serde(default)]
    reason: String,
}

impl RenamedArticle {
    /// Describes an article that got another slug. `index` is the index of the event in its batch, from 0.
    pub fn new(index: usize, aggregate_id: &str, slug: &str, refused: Option<&str>) -> RenamedArticle {
        let is_valid = refused.is_none_or(slug::is_valid);
        RenamedArticle {
            index,
            aggregate_id: aggregate_id.to_owned(),
            slug: slug.to_owned(),
            refused: refused.map(str::to_owned),
            reason: if is_valid { "taken" } else { "invalid" }.to_owned(),
        }
    }
}

impl fmt::Display for RenamedArticle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { aggregate_id, slug, .. } = self;
        match &self.refused {
            Some(refused) if self.reason == "invalid" => {
                write!(f, "'{}' is not a slug: {}", excerpt_of(refused), slug::EXPECTED)?;
            }
            Some(refused) => {
                write!(f, "another article of the project has the slug '{}'", excerpt_of(refused))?;
            }
            None => write!(f, "another article of the project now has the former slug of '{aggregate_id}'")?,
        }
        write!(f, "; '{aggregate_id}' gets the slug '{slug}'")
    }
}

/// Reads a source and sends its events in order. If the source fails, the events before the error are still sent.
pub async fn deliver<S>(client: &Client, progress: &ProgressIndicator, source: S) -> anyhow::Result<SendTally>
where
    S: FnOnce(&mut Outlet) -> anyhow::Result<()> + Send + 'static,
{
    let (sender, mut parcels) = mpsc::channel(QUEUE_CAPACITY);
    let reader = thread::Builder::new().name("import".to_owned()).spawn(move || Outlet::run(sender, source))?;
    let mut tally = SendTally::default();
    send_all(client, progress, &mut parcels, &mut tally).await.map_err(|error| tally.with_progress(error))?;
    let read = reader.join().unwrap_or_else(|_| Err(anyhow!("the thread that reads the source has panicked")));
    read.map(|()| tally).map_err(|error| tally.with_progress(error))
}

impl Outlet {
    /// Adds one event to the open batch, and passes a full batch to the sender. `line` is the number of the event's
    /// line in the source, and `read` is the number of bytes that were read from the source, for the progress bar.
    pub fn push(&mut self, event: &PortableEvent<'_>, line: u64, read: u64) -> anyhow::Result<()> {
        let full = self.open.push(&event.to_request()?, event.project_id.as_deref(), line, read);
        full.map_or(Ok(()), |full| self.hand_over(Parcel::Events(full)))
    }

    /// Passes an item to the sender, after the events of the open batch.
    pub fn pass(&mut self, parcel: Parcel) -> anyhow::Result<()> {
        self.finish()?;
        self.hand_over(parcel)
    }

    fn run(parcels: mpsc::Sender<Parcel>, source: impl FnOnce(&mut Self) -> anyhow::Result<()>) -> anyhow::Result<()> {
        let mut outlet = Self { open: RequestBatch::default(), parcels };
        source(&mut outlet).and(outlet.finish())
    }

    /// Passes the events of the open batch to the sender.
    fn finish(&mut self) -> anyhow::Result<()> {
        self.open.take().map_or(Ok(()), |rest| self.hand_over(Parcel::Events(rest)))
    }

    fn hand_over(&self, parcel: Parcel) -> anyhow::Result<()> {
        self.parcels.blocking_send(parcel).map_err(|_| anyhow!("the sender has stopped"))
    }
}

async fn send_all(
    client: &Client,
    progress: &ProgressIndicator,
    parcels: &mut mpsc::Receiver<Parcel>,
    tally: &mut SendTally,
) -> anyhow::Result<()> {
    let note = |text: &str| progress.note(text);
    let mut projects = Projects::load(client, note).await?;
    let (mut types, mut uploads) = (Types::default(), Uploads::default());
    while let Some(parcel) = parcels.recv().await {
        match parcel {
            Parcel::Events(batch) => {
                for project in &batch.projects {
                    projects.ensure(client, project, None, note).await?;
                }
                let sent = send(client, progress, &batch).await.map_err(|error| explain(error, client, &batch))?;
                tally.appended += sent.appended;
                tally.repeated += sent.repeated;
                progress.advance(batch.read, tally.total());
            }
            Parcel::Definition(definition, line) => {
                types.define(client, definition.definition, &note).await.with_context(|| format!("line {line}"))?;
            }
            Parcel::Project(project) => projects.ensure(client, &project.slug, Some(&project), note).await?,
            Parcel::File(file, folder, line) => {
                if let Some(project) = &file.project {
                    projects.ensure(client, project, None, note).await?;
                }
                let stored = uploads.store(client, &projects, &folder, &file, &note).await;
                match stored.with_context(|| format!("line {line}"))? {
                    true => tally.appended += 1,
                    false => tally.repeated += 1,
                }
            }
        }
    }
    Ok(())
}

async fn send(client: &Client, progress: &ProgressIndicator, batch: &RequestBatch) -> Result<SendTally, CallError> {
    let response = append(client, progress, &batch.body).await?;
    let AppendReply { appended, repeated, renamed } = response.json()?;
    for renamed in renamed {
        progress.note(&format!("warning: {}: {renamed}", whereabouts(&batch.lines, Some(renamed.index))));
    }
    let repeated = repeated.unwrap_or(if response.replayed { batch.len() } else { 0 });
    Ok(SendTally { appended: appended.unwrap_or(batch.len().saturating_sub(repeated)), repeated })
}

/// Sends a request that appends events, with this body. Retries the request as [`retry::call`] does.
pub async fn append(client: &Client, progress: &ProgressIndicator, body: &str) -> Result<Success, CallError> {
    let request = || {
        client
            .request(Method::POST, &["events"])
            .header(CONTENT_TYPE, "application/json")
            .header("Prefer", "return=minimal")
            .body(body.to_owned())
    };
    retry::call(client, |text| progress.note(text), request).await
}

/// Returns the error with a context: the place of the batch's events in the source, and the number of attempts if the
/// error is temporary.
fn explain(error: CallError, client: &Client, batch: &RequestBatch) -> anyhow::Error {
    let index = match &error {
        CallError::Refused(refusal) => refusal.body.get("index").and_then(Value::as_u64),
        _ => None,
    };
    let place = whereabouts(&batch.lines, index.and_then(|index| usize::try_from(index).ok()));
    let tries = if error.is_temporary() {
        format!(" after {} attempts; the import can be repeated", client.retry_policy.tries)
    } else {
        String::new()
    };
    anyhow::Error::new(error).context(format!("{place} could not be appended{tries}"))
}

impl SendTally {
    /// Returns the number of sent events that are on the server.
    pub fn total(&self) -> u64 {
        self.appended.saturating_add(self.repeated)
    }

    /// Adds to an error the number of events that were sent before the error.
    pub(super) fn with_progress(self, error: anyhow::Error) -> anyhow::Error {
        if self.total() == 0 { error } else { error.context(format!("the import stopped after {self}")) }
    }
}

impl fmt::Display for SendTally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({} more already in the log)", counted(self.appended, "event"), self.repeated)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warning_names_the_refused_slug_and_the_reason() {
        let shown = |refused: Option<&str>, reason: &str| {
            let (aggregate_id, slug) = ("a-1".to_owned(), "x-2".to_owned());
            let refused = refused.map(str::to_owned);
            RenamedArticle { index: 0, aggregate_id, slug, refused, reason: reason.to_owned() }.to_string()
        };
        assert_eq!(
            shown(Some("x"), "taken"),
            "another article of the project has the slug 'x'; 'a-1' gets the slug 'x-2'"
        );
        let invalid = shown(Some("a b"), "invalid");
        assert!(invalid.starts_with("'a b' is not a slug: expected 1 to 200 of the characters"), "{invalid}");
        assert_eq!(
            shown(None, "taken"),
            "another article of the project now has the former slug of 'a-1'; 'a-1' gets the slug 'x-2'"
        );
    }
}
