//! `foldwork export`: writes a workspace as NDJSON that `import` reads, and the bytes of its files to a folder.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use foldwork_engine::model::builtin::FILE;
use serde::Deserialize;
use serde_json::value::{RawValue, to_raw_value};

use super::client::ServerConnection;
use super::output::{self, Output};
use super::portable::folder::FilesFolder;
use super::portable::lines::{self, ExportEnd, ExportHeader, ExportedDefinition};
use super::portable::people;
use super::portable::source::{BytesReference, ExportPage, ExportSource};
use super::portable::store::{OpenStore, StoreArguments};
use super::progress::ProgressIndicator;
use super::projects::Projects;

/// Writes a workspace as NDJSON: its projects, the definitions of its types, and its events, oldest first.
///
/// Files are left out unless `--files` names a folder for their bytes. `--with-members` needs `--offline`.
#[derive(clap::Args, Debug)]
pub struct Arguments {
    /// The file to write, compressed if its name ends in .zst or .gz; `-` is standard output.
    #[arg(long, short, value_name = "FILE", default_value = "-")]
    output: PathBuf,
    /// The folder in which the bytes of each file are stored under their SHA-256. Several exports may use one folder.
    #[arg(long, value_name = "FOLDER")]
    files: Option<PathBuf>,
    /// Also writes the members of the workspace, the hashes of its keys, the removed members and the revoked keys.
    #[arg(long, requires = "offline")]
    with_members: bool,
    #[command(flatten)]
    selection: ExportSelection,
    #[command(flatten)]
    store: StoreArguments,
    #[command(flatten)]
    connection: ServerConnection,
}

/// The events to export.
#[derive(clap::Args, Debug, Default)]
pub struct ExportSelection {
    /// Only events after this position.
    #[arg(long, value_name = "POSITION", default_value_t = 0)]
    pub after: u64,
    /// Only events of these types, such as `article.created,article.updated`.
    #[arg(long, value_delimiter = ',', value_name = "TYPES")]
    pub types: Vec<String>,
    /// Only events of aggregates of this type.
    #[arg(long, value_name = "TYPE")]
    pub aggregate_type: Option<String>,
}

/// The progress of an export: the position up to which the log was read, the number of exported events, and the number
/// of events that were left out because they belong to files.
#[derive(Debug, Default)]
pub struct ExportProgress {
    pub position: u64,
    pub events: u64,
    pub left_out: u64,
}

/// The fields of an event that the export reads or changes. All other fields are copied.
#[derive(Debug, Deserialize)]
struct ExportedEvent<'a> {
    #[serde(borrow)]
    aggregate_id: Cow<'a, str>,
    #[serde(borrow)]
    aggregate_type: Cow<'a, str>,
    #[serde(borrow)]
    event_type: Cow<'a, str>,
    #[serde(borrow, default)]
    project_id: Option<Cow<'a, str>>,
    position: u64,
    #[serde(borrow)]
    payload: &'a RawValue,
}

/// Exports a workspace. Prints a summary to standard output, or to standard error if the events are written to standard
/// output.
pub async fn run(arguments: Arguments) -> anyhow::Result<()> {
    let Arguments { output: path, files, with_members, selection, store, connection } = arguments;
    let progress = ProgressIndicator::start(None);
    let note = |text: &str| progress.note(text);
    let exported = if store.offline {
        let opened = OpenStore::open(store.existing_engine().await?, store.workspace.as_deref()).await?;
        let source = ExportSource::Store(&opened);
        let written = write_file(&source, &selection, &path, files.as_deref(), with_members, &progress).await;
        opened.workspace.close().await?;
        written
    } else {
        let client = connection.client()?;
        let source = ExportSource::Server(&client, &note);
        write_file(&source, &selection, &path, files.as_deref(), false, &progress).await
    };
    let time = progress.finish();
    let ExportProgress { events, left_out, position } = exported?;
    let events = output::counted(events, "event");
    let files = match left_out {
        0 => String::new(),
        _ => format!("; left out {}", output::counted(left_out, "file event")),
    };
    let closing = format!("exported {events} up to position {position} in {time}{files}");
    if path == Path::new("-") {
        progress.note(&closing);
        return Ok(());
    }
    output::print_line(&closing)
}

/// Writes the selected part of a workspace to `path`. If the folder `files` is given, also writes the bytes of the
/// exported files to this folder. A file appears at `path` only when the output is complete. If `path` is `-`, writes
/// to standard output.
pub async fn write_file(
    source: &ExportSource<'_>,
    selection: &ExportSelection,
    path: &Path,
    files: Option<&Path>,
    with_members: bool,
    progress: &ProgressIndicator,
) -> anyhow::Result<ExportProgress> {
    let mut output = Output::open(path)?;
    let files = files.map(FilesFolder::create).transpose()?;
    let header = ExportHeader {
        format: lines::format_of(with_members),
        program: env!("CARGO_PKG_VERSION").to_owned(),
        workspace: Some(source.workspace().await?),
        after: selection.after,
        members: with_members,
    };
    output.write_line(&lines::text(&header)?)?;
    if with_members {
        match source {
            ExportSource::Store(store) => people::write(store, &mut output).await?,
            ExportSource::Server(..) => {
                bail!("--with-members requires --offline, because a server does not export members")
            }
        }
    }
    let mut exporting = ExportRun {
        source,
        files,
        projects: source.projects().await?,
        definitions: Definitions::read(source).await?,
        deleted: HashSet::new(),
        written: ExportProgress { position: selection.after, ..ExportProgress::default() },
    };
    exporting.deleted = exporting.deleted_before(selection.after).await?;
    exporting.write_projects(&mut output, 0)?;
    exporting.write_events(selection, &mut output, progress).await?;
    let ExportProgress { events, position, .. } = exporting.written;
    output.write_line(&lines::item_text("end", &ExportEnd { events, position })?)?;
    output.finish()?;
    Ok(exporting.written)
}

/// The definitions of types that are not written yet, fetched in pages.
struct Definitions {
    next: std::vec::IntoIter<ExportedDefinition>,
    read: usize,
}

/// A running export.
struct ExportRun<'a> {
    source: &'a ExportSource<'a>,
    files: Option<FilesFolder>,
    projects: Projects,
    definitions: Definitions,
    /// The aggregates whose next exported event gets the flag `restore`: aggregates whose last exported event is the
    /// deletion, and aggregates of `deleted_before` without an exported event.
    deleted: HashSet<String>,
    written: ExportProgress,
}

impl Definitions {
    async fn read(source: &ExportSource<'_>) -> anyhow::Result<Self> {
        let first = source.definitions(0).await?;
        Ok(Self { read: first.len(), next: first.into_iter() })
    }

    /// Returns the oldest definition that is not written yet, if this definition is older than the event at `position`.
    async fn before(&mut self, source: &ExportSource<'_>, position: u64) -> anyhow::Result<Option<ExportedDefinition>> {
        if self.next.as_slice().is_empty() {
            let more = source.definitions(self.read).await?;
            self.read += more.len();
            self.next = more.into_iter();
        }
        let is_due = self.next.as_slice().first().is_some_and(|next| next.position < position);
        Ok(if is_due { self.next.next() } else { None })
    }
}

impl ExportRun<'_> {
    async fn write_events(
        &mut self,
        selection: &ExportSelection,
        output: &mut Output,
        progress: &ProgressIndicator,
    ) -> anyhow::Result<()> {
        let mut after = selection.after;
        loop {
            let body = self.source.page(selection, after).await?;
            let page: ExportPage<'_> = parsed(&body)?;
            for event in &page.data {
                self.write_event(event, output).await?;
            }
            progress.advance(self.written.position, self.written.events);
            let Some(next) = page.next(after, self.written.position) else { break };
            after = next;
            self.written.position = next;
        }
        self.write_definitions(output, u64::MAX).await
    }

    async fn write_event(&mut self, json: &RawValue, output: &mut Output) -> anyhow::Result<()> {
        let event: ExportedEvent<'_> = parsed(json.get())?;
        let last = self.written.position;
        ensure!(event.position > last, "the server returned position {} after position {last}", event.position);
        self.written.position = event.position;
        let fields: BTreeMap<Cow<'_, str>, &RawValue> = parsed(json.get())?;
        let mut fields: BTreeMap<Cow<'_, str>, Cow<'_, RawValue>> =
            fields.into_iter().map(|(name, value)| (name, Cow::Borrowed(value))).collect();
        let mut put = |name: &'static str, value: Box<RawValue>| fields.insert(Cow::Borrowed(name), Cow::Owned(value));
        if event.aggregate_type == FILE {
            let Some(folder) = &self.files else {
                self.written.left_out += 1;
                return Ok(());
            };
            if let Ok(named) = serde_json::from_str::<BytesReference<'_>>(event.payload.get())
                && self.source.save_bytes(folder, &named).await?
            {
                put("bytes", to_raw_value(&true)?);
            }
        }
        self.write_definitions(output, event.position).await?;
        if let Some(id) = event.project_id.as_deref() {
            if !self.projects.contains(id) {
                // Lists the projects again, because the project was created after the last listing.
                let listed = self.projects.listed.len();
                self.projects = self.source.projects().await?;
                self.write_projects(output, listed)?;
            }
            // Writes the slug, because the project may have another id in the workspace that imports the file.
            let slug = self.projects.slug(id).unwrap_or(id);
            put("project_id", to_raw_value(slug)?);
        }
        if self.restores(&event) {
            put("restore", to_raw_value(&true)?);
        }
        output.write_line(&lines::text(&fields)?)?;
        self.written.events += 1;
        Ok(())
    }

    /// Returns whether an event restores a deleted aggregate. Also records deletions for later events. The export adds
    /// the flag `restore` to a restoring event. In an import, the flag restores the aggregate together with its state
    /// before the deletion, and the payload stays as it is. The flag is also correct if the exported aggregate was
    /// restored with an empty state, because `$unset` in the payload then lists the fields of the state before the
    /// deletion.
    fn restores(&mut self, event: &ExportedEvent<'_>) -> bool {
        match event.event_type.split_once('.') {
            Some((_, "deleted")) => {
                self.deleted.insert(event.aggregate_id.to_string());
                false
            }
            _ => self.deleted.remove(&*event.aggregate_id),
        }
    }

    /// Returns the aggregates that have an event `<type>.deleted` up to a position. Also returns aggregates that were
    /// restored later. The next event of such an aggregate gets the flag `restore`, which has no effect on an aggregate
    /// that is not deleted.
    async fn deleted_before(&self, position: u64) -> anyhow::Result<HashSet<String>> {
        let mut deleted = HashSet::new();
        if position == 0 {
            return Ok(deleted);
        }
        let types = self.source.type_names().await?.into_iter().map(|name| format!("{name}.deleted")).collect();
        let (selection, mut after) = (ExportSelection { types, ..ExportSelection::default() }, 0);
        while after < position {
            let body = self.source.page(&selection, after).await?;
            let page: ExportPage<'_> = parsed(&body)?;
            let mut last = after;
            for event in &page.data {
                let event: ExportedEvent<'_> = parsed(event.get())?;
                last = event.position;
                if last <= position {
                    deleted.insert(event.aggregate_id.into_owned());
                }
            }
            let Some(next) = page.next(after, last) else { break };
            after = next;
        }
        Ok(deleted)
    }

    async fn write_definitions(&mut self, output: &mut Output, position: u64) -> anyhow::Result<()> {
        while let Some(definition) = self.definitions.before(self.source, position).await? {
            output.write_line(&lines::text(&definition)?)?;
        }
        Ok(())
    }

    /// Writes the listed projects, except for the first `start` projects.
    fn write_projects(&self, output: &mut Output, start: usize) -> anyhow::Result<()> {
        for project in self.projects.listed.iter().skip(start) {
            output.write_line(&lines::item_text("project", project)?)?;
        }
        Ok(())
    }
}

/// Parses a response of the source, or a part of it.
fn parsed<'a, T: Deserialize<'a>>(json: &'a str) -> anyhow::Result<T> {
    serde_json::from_str(json).context("the exported data has an unexpected format")
}

impl ExportSelection {
    /// Returns whether the selection includes an event, by the type of the event and the type of its aggregate.
    pub fn admits(&self, event_type: &str, aggregate_type: &str) -> bool {
        (self.types.is_empty() || self.types.iter().any(|name| name == event_type))
            && self.aggregate_type.as_ref().is_none_or(|name| name == aggregate_type)
    }
}
