//! Imports a file into a store that no server has open. The file is an export, or contains events from another source.
//! The events of an export keep their ids, times and actors.
//!
//! Events are appended in batches, in the order of the file. Each batch is appended atomically, and an event that the
//! workspace already has is not appended again. An import that ended early can therefore be repeated.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, bail, ensure};
use foldwork_engine::model::access::WorkspaceRecord;
use foldwork_engine::model::builtin::{AGENT, FILE, PROJECT};
use foldwork_engine::model::date::parse_date;
use foldwork_engine::model::event::{NewEvent, StreamExpectation};
use foldwork_engine::model::json;
use foldwork_engine::model::value::Value;
use foldwork_engine::workspace::files::attachment;
use foldwork_engine::workspace::offline::FileBytes;
use foldwork_engine::{AppendOutcome, Engine};
use futures_util::StreamExt;

use super::folder::FilesFolder;
use super::import_errors::{LineNumbers, index_of, shown};
use super::lines::{
    ExportEnd, ExportHeader, ExportLine, ExportedAccess, ExportedDefinition, ExportedProject, ExportedWorkspace,
};
use super::people::People;
use super::recorded_fields::{RecordedFields, new_event};
use super::slugs::{self, FileSlugs};
use super::source::BytesReference;
use super::store::{OpenStore, find};
use crate::cli::batch::whereabouts;
use crate::cli::event::{LineIds, PortableEvent};
use crate::cli::input::LineInput;
use crate::cli::output;
use crate::cli::progress::ProgressIndicator;
use crate::cli::sender::SendTally;

/// The maximum number of events in a batch.
const MAX_EVENTS: usize = 512;
/// The total size of the pending lines, in bytes, at which a batch is appended.
const MAX_BYTES: usize = 1 << 20;
/// The maximum size of the line of an event, in bytes. With the default setting `[http] body_limit`, a server accepts
/// only smaller events. A much larger event would block the store.
const MAX_EVENT_BYTES: usize = 16 << 20;

/// The outcome of an import.
#[derive(Debug, Default)]
pub struct ImportReport {
    pub tally: SendTally,
    /// Whether the import printed a new owner key. The import prints a key if it creates the workspace and the file
    /// contains no members.
    pub has_new_key: bool,
    pub people: People,
    /// The number of events that the import left out. The import leaves out the events of a plugin's agent if a server
    /// has already registered the agent in the workspace.
    pub left_out: u64,
    /// The number of article events whose slug differs from the slug in the file.
    pub renamed: u64,
}

/// Imports an export, or a file of events from another source. `chosen` is the id or the name of the workspace, and
/// `files` is the folder that contains the bytes of the workspace's files. If the workspace exists, members and keys
/// are imported only if `with_members` is set.
pub async fn restore(
    engine: Arc<Engine>,
    chosen: Option<&str>,
    with_members: bool,
    mut input: LineInput,
    files: Option<&Path>,
    progress: &ProgressIndicator,
) -> anyhow::Result<ImportReport> {
    let mut restoring = ImportRun {
        files: files.map(FilesFolder::open).transpose()?,
        chosen: chosen.map(str::to_owned),
        admits: with_members,
        engine,
        store: None,
        header: None,
        ended: false,
        events_read: 0,
        ids: LineIds::default(),
        pending: PendingEvents::default(),
        slugs: FileSlugs::default(),
        progress: progress.clone(),
        projects: HashMap::new(),
        present: HashSet::new(),
        definitions: HashMap::new(),
        registered: HashSet::new(),
        restored: ImportReport::default(),
    };
    let read = restoring.read_all(&mut input).await;
    // Appends the pending events even if a line could not be read.
    let flushed = restoring.flush().await;
    let ImportRun { store, restored, .. } = restoring;
    if let Some(store) = store {
        store.workspace.close().await?;
    }
    let tally = restored.tally;
    flushed.and(read).map_err(|error| tally.with_progress(error))?;
    Ok(restored)
}

/// A running import.
struct ImportRun {
    engine: Arc<Engine>,
    chosen: Option<String>,
    /// Whether members and keys are imported.
    admits: bool,
    files: Option<FilesFolder>,
    store: Option<OpenStore>,
    header: Option<ExportHeader>,
    /// Whether the last line of an export was read.
    ended: bool,
    /// The number of events that were read since the first line of an export.
    events_read: u64,
    ids: LineIds,
    pending: PendingEvents,
    slugs: FileSlugs,
    progress: ProgressIndicator,
    /// The projects that the file describes, by slug.
    projects: HashMap<String, ExportedProject>,
    /// The ids and slugs of the projects that the workspace is known to have.
    present: HashSet<String>,
    /// The number of definitions that were read for each type.
    definitions: HashMap<String, usize>,
    /// The ids of the plugin agents that a server has already registered in the workspace. The import leaves out the
    /// events of these agents.
    registered: HashSet<String>,
    restored: ImportReport,
}

/// Events that are not appended yet, with the numbers of their lines.
#[derive(Default)]
struct PendingEvents {
    events: Vec<NewEvent>,
    lines: Vec<u64>,
    bytes: usize,
}

impl ImportRun {
    async fn read_all(&mut self, input: &mut LineInput) -> anyhow::Result<()> {
        loop {
            let consumed = input.consumed_bytes();
            let Some((number, line)) = input.next_line()? else { break };
            self.read_line(number, line).await.map_err(|error| match error.downcast_ref::<LineNumbers>() {
                Some(_) => error,
                None => error.context(format!("line {number}")),
            })?;
            self.progress.advance(consumed, self.restored.tally.total());
        }
        self.flush().await?;
        ensure!(
            self.header.is_none() || self.ended,
            "the export is cut off: its last line, with the number of events, is missing"
        );
        Ok(())
    }

    async fn read_line(&mut self, number: u64, line: &str) -> anyhow::Result<()> {
        match ExportLine::parse(line)? {
            ExportLine::Header(header) => {
                self.flush().await?;
                self.begin(header).await
            }
            ExportLine::End(ExportEnd { events, .. }) => {
                self.ended = true;
                self.flush().await?;
                let read = self.events_read;
                ensure!(read == events, "the export had {}, but the file has {read}", output::counted(events, "event"));
                Ok(())
            }
            ExportLine::Project(project) => {
                self.projects.insert(project.slug.clone(), project);
                Ok(())
            }
            ExportLine::Definition(definition) => {
                self.flush().await?;
                self.define(definition).await
            }
            ExportLine::Access(line) => self.admit(line).await,
            ExportLine::Event(text) => {
                let bytes = text.len();
                ensure!(bytes <= MAX_EVENT_BYTES, "the event has {bytes} bytes; expected at most {MAX_EVENT_BYTES}");
                self.events_read += 1;
                self.read_event(number, text).await
            }
        }
    }

    /// Imports a line about access to the workspace.
    async fn admit(&mut self, line: ExportedAccess) -> anyhow::Result<()> {
        let id = self.opened().await?.workspace.record().id.clone();
        if self.admits {
            return self.restored.people.import(&self.engine, &id, line).await;
        }
        self.restored.people.left_out += 1;
        Ok(())
    }

    /// Begins to import the export with this header. If no workspace is open yet, opens the chosen workspace. Without a
    /// chosen workspace, opens the workspace of the export, and creates this workspace if the store lacks it.
    async fn begin(&mut self, header: ExportHeader) -> anyhow::Result<()> {
        (self.ended, self.events_read) = (false, 0);
        if let (None, None, Some(about)) = (&self.store, &self.chosen, &header.workspace) {
            if find(&self.engine, Some(&about.id)).await?.is_none() {
                let record = record_of(about)?;
                self.admits = true;
                if let Some(key) = self.engine.restore_workspace(&record, !header.members).await? {
                    // Prints the key before the import continues, because the import may end early, and a repeated
                    // import creates no second key.
                    output::print_line(&format!("owner key (shown once): {key}"))?;
                    self.restored.has_new_key = true;
                }
            }
            self.store = Some(OpenStore::open(self.engine.clone(), Some(&about.id)).await?);
        }
        self.header = Some(header);
        self.opened().await.map(drop)
    }

    /// Returns the open workspace. If no workspace is open yet, opens the chosen workspace or the only workspace.
    async fn opened(&mut self) -> anyhow::Result<&OpenStore> {
        if self.store.is_none() {
            self.store = Some(OpenStore::open(self.engine.clone(), self.chosen.as_deref()).await?);
        }
        self.store.as_ref().context("no workspace is open")
    }

    /// Applies the nth definition of a type in the file. Does nothing if this definition equals the current definition
    /// or the nth definition of the type in the workspace. Otherwise, fails if the workspace has an nth definition of
    /// the type.
    async fn define(&mut self, line: ExportedDefinition) -> anyhow::Result<()> {
        let declaration: Value = json::parse_stored(line.definition.to_string().as_bytes())?;
        let name = line.definition.get("type_name").and_then(serde_json::Value::as_str);
        let name = name.context("/definition/type_name: required string")?.to_owned();
        let number = {
            let count = self.definitions.entry(name.clone()).or_default();
            *count += 1;
            *count
        };
        let store = self.opened().await?;
        if store.workspace.is_defined_as(&declaration).map_err(shown)? {
            return Ok(());
        }
        match store.workspace.definition(&name, number).await? {
            Some(past) if past == declaration => Ok(()),
            Some(_) => bail!(
                "definition {number} of the type '{name}' differs from the definition with this number in the workspace"
            ),
            None => store.workspace.define(&declaration).await.map(drop).map_err(shown),
        }
    }

    async fn read_event(&mut self, number: u64, text: &str) -> anyhow::Result<()> {
        let mut event = PortableEvent::parse(text)?;
        let kept: RecordedFields<'_> = serde_json::from_str(text)?;
        if self.header.is_none() {
            // Assigns no ids to the events of an export, which already have ids.
            self.ids.assign(&mut event)?;
        }
        self.opened().await?;
        if let Some(project) = event.project_id.as_deref() {
            self.ensure_project(project).await?;
        }
        if event.aggregate_type == AGENT && self.is_registered(&event).await? {
            self.restored.left_out += 1;
            return Ok(());
        }
        let is_file = event.aggregate_type == FILE;
        let sha_and_size = if is_file && kept.bytes { Some(event.payload.get().to_owned()) } else { None };
        let new = new_event(event, kept)?;
        if is_file {
            self.flush().await?;
            return self.append_file(new, sha_and_size.as_deref()).await;
        }
        self.slugs.record(&new);
        self.pending.bytes += text.len();
        self.pending.events.push(new);
        self.pending.lines.push(number);
        if self.pending.events.len() >= MAX_EVENTS || self.pending.bytes >= MAX_BYTES {
            self.flush().await?;
        }
        Ok(())
    }

    /// Returns whether an event belongs to an agent that a server has already registered for a plugin of the workspace.
    /// The agent of a plugin has the same id in every workspace. The import does not change a registered agent.
    async fn is_registered(&mut self, event: &PortableEvent<'_>) -> anyhow::Result<bool> {
        if event.event_type == "agent.created" {
            let store = self.store.as_ref().context("no workspace is open")?;
            let is_known = match &event.event_id {
                Some(id) => store.workspace.has_event(id).await.map_err(shown)?,
                None => false,
            };
            if !is_known && store.workspace.is_plugin_agent(&event.aggregate_id) {
                self.registered.insert(event.aggregate_id.to_string());
            }
        }
        Ok(self.registered.contains(&*event.aggregate_id))
    }

    /// Appends an event to the stream of a file in the workspace. `named` is the event's payload, which refers to the
    /// file's bytes. If the export's folder does not contain these bytes, `named` is `None`.
    async fn append_file(&mut self, event: NewEvent, named: Option<&str>) -> anyhow::Result<()> {
        let bytes = match named {
            None => None,
            Some(payload) => {
                let named: BytesReference<'_> =
                    serde_json::from_str(payload).context("the payload of a file's event cannot be read")?;
                let folder = self
                    .files
                    .as_ref()
                    .context("the event refers to the bytes of a file: set --files to the folder with the bytes")?;
                let filename = event.payload.get("filename").and_then(Value::as_str).unwrap_or_default();
                let content_disposition = attachment(filename);
                let bytes = folder.read(&named.sha256, named.size).await?;
                let bytes = bytes.boxed();
                Some(FileBytes { bytes, content_disposition })
            }
        };
        let store = self.store.as_ref().context("no workspace is open")?;
        let appended = match event.payload.get("upload_id") {
            Some(_) => store.workspace.append_file(event, bytes).await,
            None => store.workspace.append(vec![event]).await,
        };
        self.restored.tally.count(&appended.map_err(shown)?);
        Ok(())
    }

    /// Creates the project of an event, if the workspace lacks the project and the export file describes the project.
    async fn ensure_project(&mut self, name: &str) -> anyhow::Result<()> {
        if self.present.contains(name) {
            return Ok(());
        }
        // Appends the pending events first, because a pending event may create the project.
        self.flush().await?;
        let store = self.store.as_ref().context("no workspace is open")?;
        if store.workspace.project(name).is_none() {
            let Some(project) = self.projects.get(name) else { return Ok(()) };
            let id = if store.workspace.is_free(&project.id) { project.id.clone() } else { project.slug.clone() };
            let description = project.description.as_deref().map(Value::from);
            let fields = [
                ("name", Some(Value::from(project.name.as_str()))),
                ("slug", Some(Value::from(project.slug.as_str()))),
                ("description", description),
            ];
            let event = NewEvent {
                aggregate_id: id,
                aggregate_type: PROJECT.into(),
                event_type: "project.created".into(),
                payload: fields.into_iter().filter_map(|(name, value)| Some((name, value?))).collect(),
                expected: StreamExpectation::None,
                ..NewEvent::default()
            };
            store.workspace.append(vec![event]).await.map_err(shown)?;
        }
        self.present.insert(name.to_owned());
        Ok(())
    }

    /// Appends the pending events. If the workspace rejects an event, appends the earlier events and returns an error
    /// with the line of the rejected event. If the rejected event is not known, appends no event and returns an error
    /// with all lines of the batch.
    async fn flush(&mut self) -> anyhow::Result<()> {
        let PendingEvents { mut events, lines, .. } = std::mem::take(&mut self.pending);
        let sent = self.slugs.pass_to(&mut events);
        if events.is_empty() {
            return Ok(());
        }
        let store = self.store.as_ref().context("no workspace is open")?;
        let error = match store.workspace.append(events.clone()).await {
            Ok(appended) => {
                self.restored.tally.count(&appended);
                self.restored.renamed += slugs::warn(&self.progress, &appended, &sent, &lines);
                return Ok(());
            }
            Err(error) => error,
        };
        let index = index_of(&error, events.len());
        let before: Vec<NewEvent> = events.into_iter().take(index.unwrap_or_default()).collect();
        if !before.is_empty() {
            let appended = store.workspace.append(before).await?;
            self.restored.tally.count(&appended);
            self.restored.renamed += slugs::warn(&self.progress, &appended, &sent, &lines);
        }
        Err(shown(error).context(LineNumbers(whereabouts(&lines, index))))
    }
}

impl SendTally {
    fn count(&mut self, appended: &AppendOutcome) {
        let repeated = appended.repeated.iter().filter(|repeated| **repeated).count() as u64;
        self.repeated += repeated;
        self.appended += appended.events.len() as u64 - repeated;
    }
}

/// Returns the record of the workspace that the import creates.
fn record_of(about: &ExportedWorkspace) -> anyhow::Result<WorkspaceRecord> {
    let or = |text: &str, other: &str| if text.is_empty() { other.to_owned() } else { text.to_owned() };
    let owner = if about.owner_id.is_empty() { uuid::Uuid::now_v7().to_string() } else { about.owner_id.clone() };
    Ok(WorkspaceRecord {
        id: about.id.as_str().into(),
        name: or(&about.name, "imported"),
        slug: or(&about.slug, "imported"),
        owner_id: owner.into(),
        created_at: parse_date(&about.created_at).with_context(|| {
            format!(
                "/workspace/created_at: expected a time like 2026-01-31T09:30:00.000Z, got '{:.40}'",
                about.created_at
            )
        })?,
    })
}
