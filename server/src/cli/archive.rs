//! Opens the configured archive of backups for a command, and shows the progress of reading the archive.

use std::path::Path;

use anyhow::Context;
use foldwork_engine::archive::{Archive, RestoreProgress};

use super::progress::ProgressIndicator;
use crate::config::Config;
use crate::serve::backup::open_archive;

/// Reads the configuration. `url` replaces the URL of the archive.
pub fn configured(file: Option<&Path>, url: Option<String>) -> anyhow::Result<Config> {
    let mut config = Config::load(file)?;
    if let Some(url) = url {
        config.backup.url = url;
    }
    Ok(config)
}

/// Opens the archive of a configuration.
pub fn open(config: &Config) -> anyhow::Result<Archive> {
    open_archive(config)?.context("no archive is configured: set [backup] url, or name an archive with --from")
}

/// Returns a function that shows the progress of reading one workspace.
pub fn shown_on(progress: &ProgressIndicator) -> impl Fn(RestoreProgress) + Send + Sync + use<> {
    let progress = progress.clone();
    move |RestoreProgress { position, end, .. }: RestoreProgress| {
        progress.set_total(end);
        progress.advance(position, position);
    }
}
