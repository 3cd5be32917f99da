//! `foldwork import`: appends the events of an NDJSON file, or of a git repository's history.

use std::path::PathBuf;

use anyhow::{Context, bail};

use super::batch::Origin;
use super::client::Connection;
use super::event::{Event, LineIds};
use super::git;
use super::input::Input;
use super::output;
use super::progress::Progress;
use super::sender::{Outlet, deliver};

/// Appends events through the server, in order, and creates missing projects.
///
/// An import may be repeated: events that the server already has are not appended again.
#[derive(clap::Args, Debug)]
#[command(subcommand_negates_reqs = true)]
pub struct Arguments {
    /// The NDJSON file to read, one event per line, plain or compressed as .zst or .gz; `-` is standard input.
    #[arg(required = true)]
    file: Option<PathBuf>,
    #[command(subcommand)]
    source: Option<Source>,
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
    let Arguments { file, source, connection } = arguments;
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
            (deliver(&client, &progress, |outlet| read_lines(input, outlet)).await, progress)
        }
        (None, None) => bail!("expected a file or `git REPO`"),
    };
    let time = progress.finish();
    output::print_line(&format!("imported {} in {time}", imported?))
}

/// Sends the event of each line to the outlet.
pub(super) fn read_lines(mut input: Input, outlet: &mut Outlet) -> anyhow::Result<()> {
    let mut ids = LineIds::default();
    loop {
        let consumed = input.consumed_bytes();
        let Some((number, line)) = input.next_line()? else { return Ok(()) };
        let at = || format!("line {number}");
        let mut event = Event::parse(line).with_context(at)?;
        ids.assign(&mut event).with_context(at)?;
        outlet.push(&event, Origin::Line(number), consumed)?;
    }
}
