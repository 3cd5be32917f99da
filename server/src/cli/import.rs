//! `foldwork import`: imports an export, other events in an NDJSON file, the history of a git repository, or a folder
//! of Markdown files.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail, ensure};
use foldwork_engine::model::builtin::{AGENT, FILE, PROJECT, TASK};
use serde::Deserialize;

use super::client::{Client, ServerConnection};
use super::event::{LineIds, PortableEvent};
use super::git::{self, SourcePlace};
use super::input::LineInput;
use super::output;
use super::portable::folder::FilesFolder;
use super::portable::lines::ExportLine;
use super::portable::restore::{ImportReport, restore};
use super::portable::store::StoreArguments;
use super::progress::ProgressIndicator;
use super::sender::{Outlet, Parcel, SendTally, deliver};
use super::uploads::NamedFile;

/// The aggregate types whose events only special operations append. A server imports no events of these types.
const MANAGED_TYPES: [&str; 4] = [AGENT, FILE, PROJECT, TASK];

/// Imports events in order. The projects and types of an export are created as well.
///
/// An import may be repeated: events that were imported before are not appended again. Without `--offline`, the caller
/// becomes the actor of the events, files are uploaded from the folder `--files`, and the events of tasks and agents
/// are left out, because only the operations for tasks and agents may append these events. With `--offline`, all events
/// of an export are imported with their times and actors, except for the events of a plugin's agent that a server has
/// already registered in the workspace.
#[derive(clap::Args, Debug)]
#[command(subcommand_negates_reqs = true)]
pub struct Arguments {
    /// The NDJSON file to read, one event per line, plain or compressed as .zst or .gz; `-` is standard input.
    #[arg(required = true)]
    file: Option<PathBuf>,
    /// The folder with the bytes of files, written by `export --files`.
    #[arg(long, value_name = "FOLDER")]
    files: Option<PathBuf>,
    /// Also imports members and keys into a workspace that exists. Keys that were revoked in this workspace stay
    /// revoked. Members that were removed from this workspace stay removed, unless they joined the exported workspace
    /// after the removal. No member gets a higher role.
    #[arg(long, requires = "offline")]
    with_members: bool,
    #[command(subcommand)]
    source: Option<ImportSource>,
    #[command(flatten)]
    store: StoreArguments,
    #[command(flatten)]
    connection: ServerConnection,
}

/// The part of a file's event that the import reads first. `bytes` states whether the export's folder of files contains
/// the bytes of the file.
#[derive(Deserialize)]
struct FileMark {
    #[serde(default)]
    bytes: bool,
}

/// A source other than a file of events.
#[derive(clap::Subcommand, Debug)]
enum ImportSource {
    /// The Markdown history of a git repository. Each file becomes an article, and each commit that changes the file
    /// becomes an event.
    Git {
        /// A folder in the repository.
        repo: PathBuf,
        #[command(flatten)]
        options: git::Options,
    },
    /// The Markdown files of a folder, such as an Obsidian vault. Each file becomes an article, and each import appends
    /// the changes since the last import.
    Folder {
        /// The folder, such as an Obsidian vault.
        folder: PathBuf,
        #[command(flatten)]
        options: git::Options,
    },
}

/// Imports events and prints a summary to standard output.
pub async fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let Arguments { file, files, with_members, source, store, connection } = arguments;
    if store.offline {
        let (None, Some(file)) = (source, file) else {
            bail!("--offline requires a file, not a repository or a folder")
        };
        return run_offline(&store, &file, files.as_deref(), with_members).await.map(|()| ExitCode::SUCCESS);
    }
    let client = connection.client()?;
    let (place, options) = match (source, file) {
        (Some(_), Some(_)) => bail!("expected only one of a file, `git REPO` and `folder FOLDER`"),
        (Some(ImportSource::Git { repo, options }), None) => (SourcePlace::Git(repo), options),
        (Some(ImportSource::Folder { folder, options }), None) => (SourcePlace::Folder(folder), options),
        (None, Some(file)) => {
            let input = LineInput::open(&file)?;
            let progress = ProgressIndicator::start(input.size_bytes);
            let imported = import_lines(&client, input, files.as_deref(), &progress).await;
            let time = progress.finish();
            output::print_line(&format!("imported {} in {time}", imported.with_context(|| named(&file))?))?;
            return Ok(ExitCode::SUCCESS);
        }
        (None, None) => bail!("expected a file, `git REPO` or `folder FOLDER`"),
    };
    if options.watch {
        return git::watch(&client, &place, &options).await;
    }
    let progress = ProgressIndicator::start(None);
    let imported = git::import(&client, &progress, &place, &options).await;
    let time = progress.finish();
    let imported = imported?;
    output::print_line(&imported.summary(time))?;
    Ok(imported.exit_code(&options))
}

/// Imports the events in the NDJSON file `file` through a server. `files` is the folder with the bytes of the files
/// that an export contains.
pub async fn import_file(
    client: &Client,
    file: &Path,
    files: Option<&Path>,
    progress: &ProgressIndicator,
) -> anyhow::Result<SendTally> {
    import_lines(client, LineInput::open(file)?, files, progress).await
}

async fn import_lines(
    client: &Client,
    input: LineInput,
    files: Option<&Path>,
    progress: &ProgressIndicator,
) -> anyhow::Result<SendTally> {
    let (bar, folder) = (progress.clone(), files.map(FilesFolder::open).transpose()?);
    deliver(client, progress, move |outlet| read_lines(input, folder.as_ref(), outlet, &bar)).await
}

async fn run_offline(
    store: &StoreArguments,
    file: &Path,
    files: Option<&Path>,
    with_members: bool,
) -> anyhow::Result<()> {
    let input = LineInput::open(file)?;
    let engine = store.engine().await?;
    let progress = ProgressIndicator::start(input.size_bytes);
    let imported = restore(engine, store.workspace.as_deref(), with_members, input, files, &progress).await;
    let time = progress.finish();
    let ImportReport { tally, people: admitted, left_out, .. } = imported.with_context(|| named(file))?;
    let people = match (admitted.members, admitted.keys) {
        (0, 0) => String::new(),
        (members, keys) => format!(", {}, {}", output::counted(members, "member"), output::counted(keys, "key")),
    };
    let own = match left_out {
        0 => String::new(),
        _ => {
            let events = output::counted(left_out, "event");
            format!(", {events} of plugins' agents left out, because the workspace has these agents")
        }
    };
    output::print_line(&format!("imported {tally}{people}{own} in {time}"))?;
    admitted.remarks().iter().try_for_each(|remark| output::print_line(remark))
}

/// Returns the name of a file for error messages.
fn named(file: &Path) -> String {
    if file == Path::new("-") { "standard input".to_owned() } else { file.display().to_string() }
}

/// Passes the definitions, projects, files and events of the lines to the outlet. Leaves out all members and keys, and
/// the events that a server does not import. Warns about the lines that are left out, except for events of projects.
pub(super) fn read_lines(
    mut input: LineInput,
    files: Option<&FilesFolder>,
    outlet: &mut Outlet,
    progress: &ProgressIndicator,
) -> anyhow::Result<()> {
    let mut ids = LineIds::default();
    let (mut is_export, mut has_ended, mut left_out, mut has_people) = (false, false, 0_u64, false);
    loop {
        let consumed = input.consumed_bytes();
        let Some((number, line)) = input.next_line()? else { break };
        let at = || format!("line {number}");
        match ExportLine::parse(line).with_context(at)? {
            ExportLine::Header(_) => (is_export, has_ended) = (true, false),
            ExportLine::Definition(definition) => outlet.pass(Parcel::Definition(definition, number))?,
            ExportLine::Project(project) => outlet.pass(Parcel::Project(project))?,
            ExportLine::Access(_) => has_people = true,
            ExportLine::End(_) => has_ended = true,
            ExportLine::Event(text) => {
                let mut event = PortableEvent::parse(text).with_context(at)?;
                if let (FILE, Some(folder)) = (&*event.aggregate_type, files)
                    && serde_json::from_str::<FileMark>(text).with_context(at)?.bytes
                {
                    let mut file: NamedFile = serde_json::from_str(event.payload.get())
                        .with_context(|| format!("line {number}: /payload"))?;
                    file.project = event.project_id.as_deref().map(str::to_owned);
                    outlet.pass(Parcel::File(file, folder.clone(), number))?;
                } else if MANAGED_TYPES.contains(&&*event.aggregate_type) {
                    // Events of projects are not counted, because other lines of an export describe the projects.
                    left_out += u64::from(event.aggregate_type != PROJECT);
                } else {
                    if !is_export {
                        ids.assign(&mut event).with_context(at)?;
                    }
                    outlet.push(&event, number, consumed)?;
                }
            }
        }
    }
    if left_out > 0 {
        progress.note(&format!(
            "warning: left out {} of tasks, agents and {}; \
             to import these too, stop the server and use import --offline",
            output::counted(left_out, "event"),
            if files.is_some() { "earlier versions of files" } else { "files; --files imports the files" }
        ));
    }
    if has_people {
        progress.note("warning: members and keys are left out; only import --offline imports members and keys");
    }
    ensure!(!is_export || has_ended, "the export is cut off: its last line, with the number of events, is missing");
    Ok(())
}
