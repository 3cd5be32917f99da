//! `foldwork backup`: creates a backup key, lists the backups of a server, and verifies an archive without a
//! server.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, bail};
use foldwork_engine::archive::{Archive, ArchiveVerification, SealingKey, VerificationResult, reason};
use foldwork_engine::model::date::format_date;
use serde::Deserialize;
use serde_json::Value;

use super::archive::{configured, open, shown_on};
use super::client::{CallError, Client, ServerArguments};
use super::output::{counted, print_line};
use super::progress::ProgressIndicator;
use super::{pages, table};

/// The heading of each column of the list of backups, and the JSON pointer to the column's value in a record.
const COLUMNS: [(&str, &str); 10] = [
    ("workspace_id", "/workspace_id"),
    ("epoch", "/epoch"),
    ("position", "/position"),
    ("head", "/head"),
    ("lag", "/lag"),
    ("to", "/to"),
    ("bytes", "/bytes"),
    ("verified", "/verified/outcome"),
    ("verified_at", "/verified/at"),
    ("error", "/error"),
];

/// The arguments of `foldwork backup`.
pub type Arguments = ServerArguments<Action>;

#[derive(clap::Subcommand, Debug)]
pub enum Action {
    /// Prints a new key for FOLDWORK_BACKUP_KEY. Without this key, users, members and keys cannot be restored.
    Key,
    /// Lists the backups of a running server.
    Status(table::ListFormat),
    /// Restores the archives into memory and compares their states with the recorded digests. Exits with 1 if archived
    /// data is damaged or missing, or if states differ from the digests. The outcome `partial` means that the states
    /// and files were not compared, because the states are too large or no digest is from this version of the program.
    Verify(VerifyArguments),
}

#[derive(clap::Args, Debug)]
pub struct VerifyArguments {
    /// The id of the workspace; the default is all workspaces of the archive.
    #[arg(long, value_name = "ID")]
    workspace: Option<String>,
    /// The configuration file; the default is config.toml.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The URL of the archive; the default is the archive of the configuration.
    #[arg(long, value_name = "URL")]
    from: Option<String>,
}

#[derive(Debug, Deserialize)]
struct BackupListPage {
    url: String,
    control_at: Option<String>,
    workspaces: Vec<Value>,
    next_cursor: Option<String>,
}

/// Runs a subcommand of `foldwork backup`.
pub async fn run(arguments: Arguments) -> anyhow::Result<()> {
    match arguments.action {
        Action::Key => print_line(&SealingKey::generate()),
        Action::Status(format) => status(&arguments.connection.client()?, format.json).await,
        Action::Verify(arguments) => verify(arguments).await,
    }
}

async fn status(client: &Client, as_json: bool) -> anyhow::Result<()> {
    let mut records: Vec<Value> = Vec::new();
    let (mut url, mut control_at) = (String::new(), None);
    let take = |page: BackupListPage| {
        records.extend(page.workspaces);
        (url, control_at) = (page.url, page.control_at);
        Ok::<_, CallError>(page.next_cursor)
    };
    pages::each(client, &["system", "backups"], &[("limit", "200")], None, take).await?;
    let control_at = control_at.map_or_else(|| "not archived yet".to_owned(), |at| format!("archived at {at}"));
    let shown = || format!("{url}, control database {control_at}\n\n{}", table::pointed(&COLUMNS, &records));
    table::print_records(&records, as_json, shown)
}

async fn verify(arguments: VerifyArguments) -> anyhow::Result<()> {
    let VerifyArguments { workspace, config, from } = arguments;
    let archive = open(&configured(config.as_deref(), from)?)?;
    let is_one = workspace.is_some();
    let ids: Vec<Arc<str>> = match workspace {
        Some(id) => vec![id.into()],
        None => present(&archive).await.context("the archive cannot be read")?,
    };
    if ids.is_empty() {
        bail!("the archive contains no workspaces");
    }
    let mut wrong = 0;
    if !is_one {
        wrong += verify_control(&archive, &ids).await?;
    }
    for id in &ids {
        let outcome = verify_one(&archive, id).await.with_context(|| format!("workspace {id}"))?;
        wrong += usize::from(matches!(outcome, VerificationResult::Different | VerificationResult::Damaged));
    }
    match wrong {
        0 => print_line(&format!("verified {}", counted(ids.len() as u64, "workspace"))),
        wrong => bail!("the verification found {}", counted(wrong as u64, "problem")),
    }
}

/// Checks the dump of the control database, and that each workspace in the dump has an archive. Returns the number of
/// problems.
async fn verify_control(archive: &Archive, ids: &[Arc<str>]) -> anyhow::Result<usize> {
    let known = match archive.verify_control().await {
        Ok((at, known)) => {
            print_line(&format!("readable   control database of {}", format_date(at)))?;
            known
        }
        Err(error) => {
            print_line(&format!("unreadable control database: {}", reason(&error)))?;
            return Ok(1);
        }
    };
    let missing: Vec<&String> = known.iter().filter(|known| ids.iter().all(|id| **id != ***known)).collect();
    for id in &missing {
        print_line(&format!("missing    {id}: the workspace has no archive"))?;
    }
    Ok(missing.len())
}

/// Returns the ids of the workspaces that have an archive. Leaves out workspaces of which only empty folders remain.
async fn present(archive: &Archive) -> anyhow::Result<Vec<Arc<str>>> {
    let mut present = Vec::new();
    for id in archive.workspaces().await? {
        if archive.describe(&id).await?.is_some() {
            present.push(id);
        }
    }
    Ok(present)
}

/// Verifies the archive of a workspace, records the result in the archive, and prints the outcome with the problems.
async fn verify_one(archive: &Archive, id: &str) -> anyhow::Result<VerificationResult> {
    let progress = ProgressIndicator::start(None);
    let now_ms = jiff::Timestamp::now().as_millisecond();
    let verified = archive.verify(id, now_ms, &shown_on(&progress)).await;
    let time = progress.finish();
    let ArchiveVerification { position, outcome, events, problems, .. } = verified?;
    let events = counted(events, "event");
    print_line(&format!("{:<9}  {id}: {events} up to position {position} in {time}", outcome.name()))?;
    for problem in problems {
        print_line(&format!("           {problem}"))?;
    }
    Ok(outcome)
}
