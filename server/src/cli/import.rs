//! `foldwork import`: imports what `export` wrote, other events in an NDJSON file, or a git repository's history.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};

use super::batch::Origin;
use super::client::Connection;
use super::event::{Event, LineIds};
use super::git;
use super::input::Input;
use super::output;
use super::portable::lines::Line;
use super::portable::restore::{Restored, restore};
use super::portable::store::StoreArguments;
use super::progress::Progress;
use super::sender::{Outlet, deliver};

/// The aggregate types to which only their own operations append. A server imports no events of these types.
const MANAGED_TYPES: [&str; 4] = ["agent", "file", "project", "task"];

/// Imports events in order, with the projects and types that an export has.
///
/// An import may be repeated: events that are already there are not appended again. Through a server, events are
/// appended as new ones of the caller, and tasks, agents and files are left out, because only their own operations may
/// append them. With `--offline`, an export is taken back whole, with positions, times and actors.
#[derive(clap::Args, Debug)]
#[command(subcommand_negates_reqs = true)]
pub struct Arguments {
    /// The NDJSON file to read, one event per line, plain or compressed as .zst or .gz; `-` is standard input.
    #[arg(required = true)]
    file: Option<PathBuf>,
    /// The folder with the bytes of files, as `export --files` wrote it.
    #[arg(long, value_name = "FOLDER", requires = "offline")]
    files: Option<PathBuf>,
    #[command(subcommand)]
    source: Option<Source>,
    #[command(flatten)]
    store: StoreArguments,
    #[command(flatten)]
    connection: Connection,
}

/// A source other than a file of events.
#[derive(clap::Subcommand, Debug)]
enum Source {
    /// The Markdown history of a git repository: an article per file, an event per commit that changed it.
    Git(git::Arguments),
}

/// Imports events and prints a summary to standard output.
pub async fn run(arguments: Arguments) -> anyhow::Result<()> {
    let Arguments { file, files, source, store, connection } = arguments;
    if store.offline {
        let (None, Some(file)) = (source, file) else { bail!("--offline imports a file, and no git repository") };
        return run_offline(&store, &file, files.as_deref()).await;
    }
    let client = connection.client()?;
    let (imported, progress) = match (source, file) {
        (Some(Source::Git(_)), Some(_)) => bail!("expected either a file or `git REPO`, not both"),
        (Some(Source::Git(arguments)), None) => {
            let progress = Progress::start(None);
            (git::import(&client, &progress, arguments).await, progress)
        }
        (None, Some(file)) => {
            let input = Input::open(&file)?;
            let progress = Progress::start(input.size_bytes());
            let bar = progress.clone();
            let imported = deliver(&client, &progress, move |outlet| read_lines(input, outlet, &bar)).await;
            (imported.with_context(|| named(&file)), progress)
        }
        (None, None) => bail!("expected a file or `git REPO`"),
    };
    let time = progress.finish();
    output::print_line(&format!("imported {} in {time}", imported?))
}

async fn run_offline(store: &StoreArguments, file: &Path, files: Option<&Path>) -> anyhow::Result<()> {
    let input = Input::open(file)?;
    let engine = store.engine().await?;
    let progress = Progress::start(input.size_bytes());
    let imported = restore(engine, store.workspace.as_deref(), input, files, &progress).await;
    let time = progress.finish();
    let Restored { tally, members, keys, .. } = imported.with_context(|| named(file))?;
    let people = match (members, keys) {
        (0, 0) => String::new(),
        _ => format!(", {members} members, {keys} keys"),
    };
    output::print_line(&format!("imported {tally}{people} in {time}"))
}

/// Returns the name of a file in errors.
fn named(file: &Path) -> String {
    if file == Path::new("-") { "standard input".to_owned() } else { file.display().to_string() }
}

/// Sends what each line has to the outlet.
pub(super) fn read_lines(mut input: Input, outlet: &mut Outlet, progress: &Progress) -> anyhow::Result<()> {
    let mut ids = LineIds::default();
    let (mut is_export, mut has_ended, mut left_out, mut has_people) = (false, false, 0_u64, false);
    loop {
        let consumed = input.consumed_bytes();
        let Some((number, line)) = input.next_line()? else { break };
        let at = || format!("line {number}");
        let text = match Line::parse(line).with_context(at)? {
            Line::Header(_) => {
                (is_export, has_ended) = (true, false);
                continue;
            }
            Line::Definition(definition) => {
                outlet.define(definition, number)?;
                continue;
            }
            Line::Project(project) => {
                outlet.describe(project)?;
                continue;
            }
            Line::Member(_) | Line::Key(_) => {
                has_people = true;
                continue;
            }
            Line::End(_) => {
                has_ended = true;
                continue;
            }
            Line::Event(text) => text,
        };
        let mut event = Event::parse(text).with_context(at)?;
        if MANAGED_TYPES.contains(&&*event.aggregate_type) {
            // The lines of an export describe the projects.
            left_out += u64::from(event.aggregate_type != "project");
            continue;
        }
        if !is_export {
            ids.assign(&mut event).with_context(at)?;
        }
        outlet.push(&event, Origin::Line(number), consumed)?;
    }
    if left_out > 0 {
        progress.note(&format!(
            "warning: {left_out} events of tasks, agents and files are left out; \
             an import into a stopped server's store takes them: import --offline"
        ));
    }
    if has_people {
        progress.note("warning: members and keys are left out; import --offline takes them");
    }
    ensure!(!is_export || has_ended, "the file ends before its last line: it was cut off");
    Ok(())
}
