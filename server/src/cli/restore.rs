//! `foldwork restore`: restores the installation or one workspace from an archive of backups. Opens the store without a
//! server.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, bail};
use foldwork_engine::Engine;
use foldwork_engine::archive::{Archive, RestoreEnd, RestoreFrom, RestoreOutcome, restore_control, restore_workspace};
use foldwork_engine::model::access::WorkspaceRecord;
use foldwork_engine::model::date::parse_date;

use super::archive::{configured, open, shown_on};
use super::output::{counted, print_line};
use super::portable::store::open_engine;
use super::progress::ProgressIndicator;

/// The maximum number of workspaces that an error lists.
const MAX_LISTED: usize = 10;

/// Restores from an archive into the configured store, while the server is stopped.
///
/// Without --workspace, restores the whole installation into an empty store: workspaces with their events and files,
/// users, members, keys and plans. To continue a restore that ended early, run the same command again. With
/// --workspace, restores one workspace: under its own id if the store contains no events of the workspace, and
/// otherwise as a new workspace.
#[derive(clap::Args, Debug)]
pub struct Arguments {
    /// The URL of the archive; the default is the archive of the configuration.
    #[arg(long, value_name = "URL")]
    from: Option<String>,
    /// The id of the workspace to restore; the default is the whole installation.
    #[arg(long, value_name = "ID")]
    workspace: Option<String>,
    /// The position of the last event to restore.
    #[arg(long, value_name = "POSITION", requires = "workspace")]
    position: Option<u64>,
    /// The time of the last event to restore, such as 2026-12-31T00:00:00Z. Events that were appended later are left
    /// out.
    #[arg(long, value_name = "TIME", conflicts_with = "position")]
    at: Option<String>,
    /// The epoch of the archive; the default is the newest epoch.
    #[arg(long, value_name = "EPOCH", requires = "workspace")]
    epoch: Option<u64>,
    /// The configuration file; the default is config.toml.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

/// A running restore, with the numbers of workspaces, events and files that were restored so far.
struct ArchiveRestore {
    engine: Arc<Engine>,
    archive: Archive,
    /// The time of the last event to restore, in milliseconds since the Unix epoch.
    at: Option<i64>,
    workspaces: u64,
    events: u64,
    files: u64,
}

/// Runs `foldwork restore`.
pub async fn run(arguments: Arguments) -> anyhow::Result<()> {
    let Arguments { from, workspace, position, at, epoch, config } = arguments;
    let at = at.map(|at| parse_date(&at).with_context(|| format!("--at is '{at}'; expected an RFC 3339 time")));
    let at = at.transpose()?;
    let config = configured(config.as_deref(), from)?;
    let archive = open(&config)?;
    let started = Instant::now();
    let engine = open_engine(&config).await?;
    let mut restoring = ArchiveRestore { engine, archive, at, workspaces: 0, events: 0, files: 0 };
    match workspace {
        Some(id) => restoring.restore_one(&id, position, epoch).await?,
        None => restoring.restore_all().await?,
    }
    let ArchiveRestore { workspaces, events, files, .. } = restoring;
    let time = started.elapsed().as_secs_f64();
    let workspaces = counted(workspaces, "workspace");
    let (events, files) = (counted(events, "event"), counted(files, "file"));
    print_line(&format!("restored {workspaces} with {events} and {files} in {time:.1} s"))
}

impl ArchiveRestore {
    /// Restores the installation into an empty store, or continues such a restore. If a workspace cannot be restored,
    /// the other workspaces are still restored.
    async fn restore_all(&mut self) -> anyhow::Result<()> {
        let known = self.engine.workspaces().await?;
        let records = if known.is_empty() {
            restore_control(&self.engine, &self.archive).await.context("cannot restore the control database")?
        } else {
            print_line("the store already contains workspaces; the restore continues with these workspaces")?;
            known
        };
        let archived = self.archive.workspaces().await.context("the archive cannot be read")?;
        let mut failed = 0;
        for record in &records {
            if !archived.contains(&record.id) {
                print_line(&format!("{} '{}': the archive contains no events", record.id, record.name))?;
                continue;
            }
            let from = RestoreFrom { workspace_id: record.id.clone(), until: self.until(None), epoch: None };
            if let Err(error) = self.restore(&from, record).await {
                failed += 1;
                print_line(&format!("{} '{}': failed: {error:#}", record.id, record.name))?;
            }
        }
        match failed {
            0 => Ok(()),
            failed => bail!("{failed} of {} workspaces are not restored completely", records.len()),
        }
    }

    /// Restores one workspace: under its own id if the store contains no events of the workspace, and otherwise as a
    /// new workspace.
    async fn restore_one(&mut self, id: &str, position: Option<u64>, epoch: Option<u64>) -> anyhow::Result<()> {
        let ids = self.archive.workspaces().await.context("the archive cannot be read")?;
        if !ids.iter().any(|known| **known == *id) {
            if ids.is_empty() {
                bail!("the archive contains no workspaces");
            }
            let shown: Vec<&str> = ids.iter().take(MAX_LISTED).map(|id| &**id).collect();
            let more = if ids.len() > MAX_LISTED { ", …" } else { "" };
            bail!("the archive contains no workspace '{id}'; expected one of {}{more}", shown.join(", "));
        }
        let known = self.engine.workspaces().await?;
        let known = known.iter().find(|record| *record.id == *id);
        let from = RestoreFrom { workspace_id: id.into(), until: self.until(position), epoch };
        if let Some(record) = known
            && self.is_empty(record).await?
        {
            return self.restore(&from, record).await;
        }
        self.check_end(id, position, epoch).await?;
        let record = new_record(id, known);
        let created = self.engine.restore_workspace(&record, true).await;
        let key = created.with_context(|| format!("the workspace {} cannot be created", record.id))?;
        if let Some(key) = key {
            print_line(&format!("owner key of workspace {} (shown once): {key}", record.id))?;
        }
        self.restore(&from, &record).await
    }

    /// Checks that the archive contains the requested epoch, and the requested position in this epoch. The check
    /// precedes the creation of a workspace.
    async fn check_end(&self, id: &str, position: Option<u64>, epoch: Option<u64>) -> anyhow::Result<()> {
        let found = self.archive.describe(id).await.context("the archive cannot be read")?;
        let mut found = found.with_context(|| format!("the archive contains no events of workspace '{id}'"))?;
        if let Some(epoch) = epoch.filter(|epoch| *epoch != found.epoch) {
            let older = match epoch {
                0 => None,
                _ => self.archive.describe_epoch(id, epoch).await.context("the archive cannot be read")?,
            };
            let newest = found.epoch;
            found = older.with_context(|| {
                format!("the archive contains no epoch {epoch} of workspace '{id}'; the newest epoch is {newest}")
            })?;
        }
        if let Some(position) = position.filter(|position| *position > found.position) {
            bail!("epoch {} contains no position {position}; its last position is {}", found.epoch, found.position);
        }
        Ok(())
    }

    async fn is_empty(&self, record: &WorkspaceRecord) -> anyhow::Result<bool> {
        let unopened = || format!("the workspace {} cannot be opened", record.id);
        let offline = self.engine.offline(&record.id).await.with_context(unopened)?;
        let position = offline.position();
        offline.close().await?;
        Ok(position == 0)
    }

    /// Restores events and files into a workspace, and prints the numbers of restored events and files.
    async fn restore(&mut self, from: &RestoreFrom, into: &WorkspaceRecord) -> anyhow::Result<()> {
        let progress = ProgressIndicator::start(None);
        let restored = restore_workspace(&self.engine, &self.archive, from, &into.id, &shown_on(&progress)).await;
        let time = progress.finish();
        let RestoreOutcome { position, events, files, missing_files } = restored?;
        self.workspaces += 1;
        self.events += events;
        self.files += files;
        let missing = match missing_files {
            0 => String::new(),
            _ => format!(", {} without bytes in the archive", counted(missing_files, "file")),
        };
        let (id, name) = (&into.id, &into.name);
        let (events, files) = (counted(events, "event"), counted(files, "file"));
        print_line(&format!("restored {id} '{name}' in {time}: {events} up to position {position}, {files}{missing}"))
    }

    fn until(&self, position: Option<u64>) -> RestoreEnd {
        match (position, self.at) {
            (Some(position), _) => RestoreEnd::Position(position),
            (None, Some(at)) => RestoreEnd::Time(at),
            (None, None) => RestoreEnd::End,
        }
    }
}

/// Returns the record of the workspace to restore into. If the store contains the archived workspace, the record has a
/// new id and the same owner. Otherwise, the record has the id of the archived workspace and a new owner.
fn new_record(id: &str, known: Option<&WorkspaceRecord>) -> WorkspaceRecord {
    let new_id = || uuid::Uuid::now_v7().to_string();
    let created_at = jiff::Timestamp::now().as_millisecond();
    let (id, name, slug, owner_id) = match known {
        Some(known) => {
            let (name, slug) = (format!("{} restored", known.name), format!("{}-restored", known.slug));
            (new_id().into(), name, slug, known.owner_id.clone())
        }
        None => (id.into(), "restored".into(), "restored".into(), new_id().into()),
    };
    WorkspaceRecord { id, name, slug, owner_id, created_at }
}
