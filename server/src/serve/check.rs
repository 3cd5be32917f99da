//! `foldwork serve --check`: checks the prerequisites of a start, without changing the data and without listening.

use std::fmt::Display;
use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context as _;
use foldwork_engine::clock::StoreClock;
use foldwork_engine::{Contents, Engine, Plugins, Store, StoreError};

use super::backup::open_archive;
use super::place::{DataFolder, absolute};
use super::{bootstrap_key, load_plugins, open_store};
use crate::config::Config;
use crate::{auth, embedding, telemetry};

/// The exit code if everything is in order except that another process has the store open.
const IN_USE: u8 = 3;

/// The result of the checks so far. The result of each check is printed as a line.
#[derive(Default)]
struct CheckReport {
    failed: bool,
    in_use: bool,
}

impl CheckReport {
    fn line(&mut self, mark: &str, what: &str, found: impl Display) {
        // Ignores a failed write, because the exit code reports the result as well.
        let _ = writeln!(std::io::stdout(), "{mark:<7} {what}: {found}");
    }

    fn add(&mut self, what: &str, result: anyhow::Result<String>) {
        match result {
            Ok(found) => self.line("ok", what, found),
            Err(error) => {
                self.failed = true;
                self.line("failed", what, format_args!("{error:#}"));
            }
        }
    }
}

/// Checks the configuration, the plugins, the addresses, the archive of backups, the data store and the file store.
/// Prints a line for each check. Returns 1 if a check failed. Returns 3 if no check failed, but the data store could
/// not be checked because another process has the data store open. Otherwise returns 0.
pub async fn check(config: &Config) -> anyhow::Result<ExitCode> {
    let mut report = CheckReport::default();
    report.add("version", Ok(env!("CARGO_PKG_VERSION").to_owned()));
    for message in config.warnings() {
        report.line("warning", "settings", message);
    }
    report.add("log", telemetry::filter(&config.log).map(|_| "the settings are valid".into()));
    report.add("plugins", plugins(config));
    report.add("access", access(config).await);
    report.add("search.embedding", embedding::open(&config.search.embedding).map(|_| "the settings are valid".into()));
    report.add("http.listen", resolved(&config.http.listen).await);
    if !config.http.public_url.is_empty() {
        let checked = config.http.check_public_url();
        report.add("http.public_url", checked.map(|()| config.http.public_url.clone()));
    }
    if !config.metrics.listen.is_empty() {
        report.add("metrics.listen", resolved(&config.metrics.listen).await);
    }
    if config.backup.is_enabled() {
        report.add("backup.url", backup(config).await);
    }
    store(config, &mut report).await;
    Ok(match report {
        CheckReport { failed: true, .. } => ExitCode::FAILURE,
        CheckReport { in_use: true, .. } => ExitCode::from(IN_USE),
        CheckReport { .. } => ExitCode::SUCCESS,
    })
}

fn plugins(config: &Config) -> anyhow::Result<String> {
    load_plugins(&config.plugins)?;
    Ok(match config.plugins.enabled.as_slice() {
        [] => "none is enabled".to_owned(),
        enabled => format!("{} loaded, and their cases passed", enabled.join(", ")),
    })
}

async fn access(config: &Config) -> anyhow::Result<String> {
    let store = Store::connect("mem://").await?;
    let engine = Engine::open(store, Arc::new(StoreClock::default()), config.engine(), Plugins::none()?).await?;
    auth::configure(&engine, config)?;
    bootstrap_key()?;
    config.dashboard.sign_in(&config.auth)?;
    config.dashboard.appearance()?;
    Ok(format!("plans: {}, issuers: {}", config.plans.offered.len(), config.auth.issuers.len()))
}

async fn resolved(address: &str) -> anyhow::Result<String> {
    let first = tokio::net::lookup_host(address).await.with_context(|| format!("cannot resolve {address}"))?.next();
    Ok(first.with_context(|| format!("{address}: the host name has no address"))?.to_string())
}

async fn backup(config: &Config) -> anyhow::Result<String> {
    let url = absolute(&config.backup.shown_url());
    let archive = open_archive(config)?.context("[backup] url names no archive")?;
    let workspaces = archive.workspaces().await.with_context(|| format!("cannot read the archive {url}"))?;
    Ok(format!("{url}: archived workspaces: {}", workspaces.len()))
}

async fn store(config: &Config, report: &mut CheckReport) {
    let (url, files) = (absolute(&config.store.url), absolute(&config.files.url));
    report.add("files.url", usable(DataFolder::of(&config.files.url, "file")).map(|found| format!("{files}: {found}")));
    let folder = DataFolder::of(&config.store.url, "surrealkv");
    if let Some(folder) = folder.filter(DataFolder::is_new) {
        report.add("store.url", usable(Some(folder)).map(|found| format!("{url}: {found}")));
        return;
    }
    match contents(config).await {
        Err(error) if error.chain().any(|cause| matches!(cause.downcast_ref(), Some(StoreError::Locked))) => {
            report.in_use = true;
            report.line("in use", "store.url", format_args!("{url}: another process has the store open; not checked"));
        }
        found => report.add("store.url", found.map(|found| format!("{url}: {found}"))),
    }
}

async fn contents(config: &Config) -> anyhow::Result<String> {
    Ok(match open_store(config).await?.contents().await? {
        None => "empty; a start creates the first workspace".to_owned(),
        Some(Contents { workspaces, pending_migrations: 0 }) => format!("workspaces: {workspaces}"),
        Some(Contents { workspaces, pending_migrations }) => {
            format!("workspaces: {workspaces}; migrations that a start applies: {pending_migrations}")
        }
    })
}

/// Checks that a folder is writable or can be created.
fn usable(folder: Option<DataFolder>) -> anyhow::Result<String> {
    let Some(DataFolder { path, .. }) = folder else { return Ok("not in a folder; not checked".to_owned()) };
    let exists = path.exists();
    // The folder itself or, if the folder does not exist, the nearest parent folder that exists.
    let tried = path.ancestors().find(|above| above.exists()).unwrap_or(&path);
    let probe = tried.join(format!(".foldwork-check-{}", std::process::id()));
    std::fs::File::create_new(&probe)
        .and_then(|_| std::fs::remove_file(&probe))
        .with_context(|| format!("cannot write to {}", tried.display()))?;
    Ok(if exists { "the folder is writable" } else { "the folder does not exist; the server creates it" }.to_owned())
}
