//! Sends the batches of an import. Leaves out an event that the server rejects, and sends the rest of the batch.

use std::collections::HashSet;
use std::mem;

use reqwest::{Method, StatusCode};
use serde_json::Value;

use super::events::PreparedEvent;
use super::outbox::{ImportBatch, ImportProgress};
use super::record::{self, Record};
use super::report::place;
use crate::cli::client::{CallError, Client, ErrorReply, unless_refused};
use crate::cli::output::counted;
use crate::cli::progress::ProgressIndicator;
use crate::cli::projects::Projects;
use crate::cli::retry;
use crate::cli::sender::{AppendReply, append};

/// The maximum number of article ids that one event adds to the record of an import.
const MAX_IDS: usize = 5_000;

/// Sends the batches of an import to the server.
pub struct BatchSender<'a> {
    pub client: &'a Client,
    pub progress: &'a ProgressIndicator,
    pub project: String,
    pub record: Record,
    /// Whether the workspace defines the type of import records.
    pub is_type_defined: bool,
    /// Whether the sender has already checked that the workspace contains the project, or has created the project.
    pub has_project: bool,
    /// The number of events that were appended.
    pub appended: u64,
    /// The ids of the articles with an event that the server rejected. Later events of these articles are not sent.
    pub broken: HashSet<String>,
    /// The paths of the files whose events the server rejected.
    pub refused: HashSet<String>,
    /// The files that were already reported as left out.
    pub reported: HashSet<String>,
}

/// The error of an import whose project was changed by another import of the same source.
#[derive(Debug, thiserror::Error)]
#[error("another import of the same source has changed the project; the import can be repeated")]
pub struct ImportConflict {
    pub current_version: u64,
}

/// The part of a request that caused the server to reject the request.
enum RefusalSubject {
    /// The event at this index of the batch.
    Event(usize),
    /// An event of the batch. The response does not identify the event.
    Batch,
    /// The record of the import. The number is the current version of the record on the server.
    Record(u64),
    /// The whole import.
    Import,
}

impl BatchSender<'_> {
    /// Sends a batch without the events that the server rejects. Fails if the server rejects the record or the import.
    pub async fn send(&mut self, batch: ImportBatch) -> anyhow::Result<()> {
        let (read, mut batches) = (batch.read, vec![batch]);
        while let Some(mut batch) = batches.pop() {
            batch.events.retain(|event| !self.broken.contains(&event.aggregate_id));
            let has_progress = batch.progress == self.record.progress && !self.record.has_other_path;
            if batch.events.is_empty() && (!self.record.exists || has_progress) {
                continue;
            }
            self.ensure_project().await?;
            let Err(error) = self.post(&batch).await else { continue };
            let CallError::Refused(refusal) = &error else { return Err(self.explain(error)) };
            match fault(refusal, batch.events.len()) {
                RefusalSubject::Event(index) => {
                    let event = batch.events.remove(index);
                    self.leave_out(event, refusal);
                    batches.push(batch);
                }
                RefusalSubject::Batch => {
                    let (first, second) = self.halves(batch);
                    batches.extend([second, first]);
                }
                RefusalSubject::Record(current_version) => return Err(ImportConflict { current_version }.into()),
                RefusalSubject::Import => return Err(self.explain(error)),
            }
        }
        self.progress.advance(read, self.appended);
        Ok(())
    }

    /// If the record of the import does not contain the full path of the folder, writes this path to the record. Called
    /// before anything else is appended. Without this path, another folder with the same name could continue this
    /// import.
    pub async fn record_path(&mut self) -> anyhow::Result<()> {
        if !self.record.has_other_path {
            return Ok(());
        }
        self.send(ImportBatch { progress: self.record.progress.clone(), ..ImportBatch::default() }).await
    }

    /// Adds the articles of an earlier import that kept no record to the record of this import.
    async fn record_articles(&mut self) -> Result<(), CallError> {
        let ids = mem::take(&mut self.record.unrecorded);
        for some in ids.chunks(MAX_IDS) {
            let added: Vec<&str> = some.iter().map(String::as_str).collect();
            self.append(&[], &self.record.progress.clone(), &added).await?;
        }
        Ok(())
    }

    async fn post(&mut self, batch: &ImportBatch) -> Result<(), CallError> {
        self.ensure_type().await?;
        self.record_articles().await?;
        let added = batch.events.iter().filter(|event| event.is_new).map(|event| event.aggregate_id.as_str());
        self.append(&batch.events, &batch.progress, &added.collect::<Vec<_>>()).await
    }

    /// Appends events, together with the event that updates the import's record. Either all of these events are
    /// appended, or none.
    async fn append(
        &mut self,
        events: &[PreparedEvent],
        progress: &ImportProgress,
        added: &[&str],
    ) -> Result<(), CallError> {
        let body = self.body(events, progress, added);
        let AppendReply { appended, .. } = append(self.client, self.progress, &body).await?.json()?;
        // The event of the record is not counted.
        self.appended += appended.unwrap_or_default().saturating_sub(1);
        self.record.version += 1;
        self.record.exists = true;
        self.record.has_other_path = false;
        self.record.progress = progress.clone();
        Ok(())
    }

    /// Defines the type of import records, unless the workspace already defines the type.
    async fn ensure_type(&mut self) -> Result<(), CallError> {
        let note = |text: &str| self.progress.note(text);
        if !self.is_type_defined {
            let definition = record::definition();
            let request = || self.client.request(Method::POST, &["aggregates", "define"]).json(&definition);
            // In a conflict, another import has defined the type.
            unless_refused(retry::call(self.client, note, request).await, StatusCode::CONFLICT)?;
            self.is_type_defined = true;
        }
        Ok(())
    }

    /// Returns the body of a request. The event of the record is the first, so that the server checks the record's
    /// version before the other events.
    fn body(&self, events: &[PreparedEvent], progress: &ImportProgress, added: &[&str]) -> String {
        let mut body = format!(r#"{{"events":[{}"#, self.record.event(&self.project, progress, added));
        for (index, event) in events.iter().enumerate() {
            let rest = event.json.strip_prefix('{').unwrap_or_default();
            body.push_str(&format!(r#",{{"event_id":"{}",{rest}"#, self.record.event_id(index)));
        }
        // With `rename_slugs`, the server gives an article another slug if an article outside of the import has the
        // slug.
        body.push_str(r#"],"rename_slugs":true}"#);
        body
    }

    /// Splits a batch into halves. The progress of the first half marks the commit as only partly appended.
    fn halves(&self, mut batch: ImportBatch) -> (ImportBatch, ImportBatch) {
        let rest = batch.events.split_off(batch.events.len() / 2);
        let towards = if batch.progress.towards.is_empty() { &batch.progress.commit } else { &batch.progress.towards };
        let progress =
            ImportProgress { towards: towards.clone(), at: batch.progress.at, ..self.record.progress.clone() };
        let first = ImportBatch { events: mem::take(&mut batch.events), progress, read: batch.read };
        (first, ImportBatch { events: rest, ..batch })
    }

    fn leave_out(&mut self, event: PreparedEvent, refusal: &ErrorReply) {
        let PreparedEvent { aggregate_id, path, commit, .. } = event;
        if self.reported.insert(path.clone()) {
            let place = place(&path, &commit);
            self.progress.note(&format!("warning: {place} is left out: the server rejects its event: {refusal}"));
        }
        self.broken.insert(aggregate_id);
        self.refused.insert(path);
    }

    fn explain(&self, error: CallError) -> anyhow::Error {
        if let CallError::Refused(refusal) = &error
            && refusal.body.get("code").and_then(Value::as_str) == Some("project_mismatch")
        {
            let hint = "this history was imported into another project before: set --project to that project";
            return anyhow::Error::new(error).context(hint);
        }
        let tries = self.client.retry_policy.tries;
        let temporary = format!("the events were not appended after {tries} attempts; the import can be repeated");
        let temporary = error.is_temporary().then_some(temporary);
        let stopped =
            (self.appended > 0).then(|| format!("the import stopped after {}", counted(self.appended, "event")));
        temporary.into_iter().chain(stopped).fold(anyhow::Error::new(error), anyhow::Error::context)
    }

    /// Creates the project, unless the workspace already contains the project.
    async fn ensure_project(&mut self) -> anyhow::Result<()> {
        if !self.has_project {
            let note = |text: &str| self.progress.note(text);
            let mut projects = Projects::load(self.client, note).await?;
            projects.ensure(self.client, &self.project, None, note).await?;
            self.has_project = true;
        }
        Ok(())
    }
}

/// Returns the part of a request that caused the server to reject the request. The first event of the request is the
/// event of the import record. The other events are the events of the batch. `events` is the number of events in the
/// batch.
fn fault(refusal: &ErrorReply, events: usize) -> RefusalSubject {
    let code = refusal.body.get("code").and_then(Value::as_str).unwrap_or_default();
    let index = refusal.body.get("index").and_then(Value::as_u64).and_then(|index| usize::try_from(index).ok());
    let is_about_events = [
        StatusCode::BAD_REQUEST,
        StatusCode::NOT_FOUND,
        StatusCode::CONFLICT,
        StatusCode::PAYLOAD_TOO_LARGE,
        StatusCode::UNPROCESSABLE_ENTITY,
    ];
    match index {
        // Only another import of the source can have used these ids and this version.
        _ if matches!(code, "event_id_conflict" | "version_conflict") => {
            RefusalSubject::Record(refusal.body.get("current_version").and_then(Value::as_u64).unwrap_or_default())
        }
        _ if code == "project_mismatch" || !is_about_events.contains(&refusal.status) => RefusalSubject::Import,
        Some(0) => RefusalSubject::Import,
        Some(index) if index <= events => RefusalSubject::Event(index - 1),
        _ if events > 1 => RefusalSubject::Batch,
        _ if events == 1 => RefusalSubject::Event(0),
        _ => RefusalSubject::Import,
    }
}
