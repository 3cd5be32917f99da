//! `foldwork export`: writes the workspace's events as NDJSON that `import` reads.

use std::borrow::Cow;
use std::collections::HashSet;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use reqwest::Method;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::client::{Answer, Client, Connection};
use super::event::Event;
use super::output::{self, Output};
use super::progress::Progress;
use super::projects::Projects;
use super::retry;

/// The number of events per page, which is the maximum that the server allows.
const PAGE: u32 = 200;
/// The aggregate types whose events cannot be imported, because only their own operations may append these events.
const MANAGED_TYPES: [&str; 4] = ["agent", "file", "project", "task"];

/// Writes the events of the workspace, oldest first, as NDJSON.
///
/// Events of managed types (tasks, agents, projects, files) cannot be imported. They are left out unless `--types` or
/// `--aggregate-type` selects them.
#[derive(clap::Args, Debug)]
pub struct Arguments {
    /// The file to write, compressed if its name ends in .zst or .gz; `-` is standard output.
    #[arg(long, short, value_name = "FILE", default_value = "-")]
    output: PathBuf,
    #[command(flatten)]
    selection: Selection,
    #[command(flatten)]
    connection: Connection,
}

/// The events to export.
#[derive(clap::Args, Debug, Default)]
pub(super) struct Selection {
    /// Only events after this position.
    #[arg(long, value_name = "POSITION", default_value_t = 0)]
    after: u64,
    /// Only events of these types, such as `article.created,article.updated`.
    #[arg(long, value_delimiter = ',', value_name = "TYPES")]
    types: Vec<String>,
    /// Only events of aggregates of this type.
    #[arg(long, value_name = "TYPE")]
    aggregate_type: Option<String>,
}

/// The progress of an export: the position up to which the log was read, and the numbers of exported and omitted
/// events.
#[derive(Debug, Default)]
pub(super) struct Written {
    position: u64,
    pub(super) events: u64,
    pub(super) left_out: u64,
}

#[derive(Debug, Deserialize)]
struct Page<'a> {
    #[serde(borrow)]
    data: Vec<Stored<'a>>,
}

/// An event of the server's response.
#[derive(Debug, Deserialize)]
struct Stored<'a> {
    event_id: Cow<'a, str>,
    aggregate_id: Cow<'a, str>,
    aggregate_type: Cow<'a, str>,
    event_type: Cow<'a, str>,
    #[serde(default)]
    project_id: Option<Cow<'a, str>>,
    position: u64,
    #[serde(borrow)]
    payload: &'a RawValue,
    #[serde(borrow, default)]
    metadata: Option<&'a RawValue>,
    #[serde(default)]
    occurred_at: Option<Cow<'a, str>>,
}

/// Exports events and prints a summary to standard output, or to standard error if the events go to standard output.
pub async fn run(arguments: Arguments) -> anyhow::Result<()> {
    let client = arguments.connection.client()?;
    let progress = Progress::start(None);
    let exported = write_file(&client, &arguments.selection, &arguments.output, &progress).await;
    let time = progress.finish();
    let Written { events, left_out, position } = exported?;
    let managed = if left_out == 0 { String::new() } else { format!(", {left_out} of managed types left out") };
    let closing = format!("exported {events} events up to position {position}{managed} in {time}");
    if arguments.output == Path::new("-") {
        progress.note(&closing);
        return Ok(());
    }
    output::print_line(&closing)
}

/// Writes the selected events to a file. The file appears under its name only when it is complete.
pub(super) async fn write_file(
    client: &Client,
    selection: &Selection,
    path: &Path,
    progress: &Progress,
) -> anyhow::Result<Written> {
    let mut output = Output::open(path)?;
    let written = write_all(client, selection, &mut output, progress).await?;
    output.finish()?;
    Ok(written)
}

async fn write_all(
    client: &Client,
    selection: &Selection,
    output: &mut Output,
    progress: &Progress,
) -> anyhow::Result<Written> {
    let mut projects = Projects::load(client, |text| progress.note(text)).await?;
    let mut deleted = HashSet::new();
    let mut written = Written { position: selection.after, ..Written::default() };
    loop {
        let response = page(client, selection, written.position, progress).await?;
        let page: Page<'_> =
            serde_json::from_str(&response.body).context("the server's response has an unexpected format")?;
        if page.data.is_empty() {
            return Ok(written);
        }
        for event in page.data {
            ensure!(event.position > written.position, "the server's positions do not rise after {}", written.position);
            written.position = event.position;
            if selection.leaves_out(&event.aggregate_type) {
                written.left_out += 1;
                continue;
            }
            if event.project_id.as_deref().is_some_and(|id| !projects.contains(id)) {
                // Lists the projects again, because the project was created after the last listing.
                projects = Projects::load(client, |text| progress.note(text)).await?;
            }
            output.write_line(&event.portable(&projects, &mut deleted).to_json()?)?;
            written.events += 1;
        }
        progress.advance(written.position, written.events);
    }
}

async fn page(client: &Client, selection: &Selection, after: u64, progress: &Progress) -> anyhow::Result<Answer> {
    let request = || {
        let request = client.request(Method::GET, &["events"]).query(&[("limit", PAGE)]).query(&[("after", after)]);
        let types = (!selection.types.is_empty()).then(|| ("types", selection.types.join(",")));
        let aggregate_type = selection.aggregate_type.as_deref().map(|name| ("aggregate_type", name));
        request.query(types.as_slice()).query(aggregate_type.as_slice())
    };
    let response = retry::call(client, |text| progress.note(text), request).await;
    response.with_context(|| format!("the events after position {after} cannot be read"))
}

impl Selection {
    fn leaves_out(&self, aggregate_type: &str) -> bool {
        self.types.is_empty() && self.aggregate_type.is_none() && MANAGED_TYPES.contains(&aggregate_type)
    }
}

impl<'a> Stored<'a> {
    /// Converts the event for import into other workspaces. The project's id is replaced by its slug, because another
    /// workspace has another id for the project.
    fn portable(self, projects: &Projects, deleted: &mut HashSet<String>) -> Event<'a> {
        let restores = match self.event_type.split_once('.') {
            Some((_, "deleted")) => {
                deleted.insert(self.aggregate_id.to_string());
                false
            }
            verb => deleted.remove(&*self.aggregate_id) && verb.is_none_or(|(_, verb)| verb != "created"),
        };
        let slug = |id: Cow<'a, str>| projects.slug(&id).map(|slug| Cow::Owned(slug.to_owned())).unwrap_or(id);
        Event {
            aggregate_id: self.aggregate_id,
            aggregate_type: self.aggregate_type,
            event_type: self.event_type,
            project_id: self.project_id.map(slug),
            payload: self.payload,
            metadata: self.metadata,
            occurred_at: self.occurred_at,
            event_id: Some(self.event_id),
            restore: restores.then_some(true),
        }
    }
}
