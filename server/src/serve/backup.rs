//! Opens the archive of backups that the configuration names.

use anyhow::{Context as _, bail};
use foldwork_engine::archive::{Archive, SealingKey};

use crate::config::Config;

/// The environment variable with the key that encrypts dumps of the control database.
const KEY_VARIABLE: &str = "FOLDWORK_BACKUP_KEY";

/// Opens the archive that the configuration names. Returns `None` if the configuration names no archive.
pub fn open_archive(config: &Config) -> anyhow::Result<Option<Archive>> {
    if !config.backup.is_enabled() {
        return Ok(None);
    }
    let text = std::env::var(KEY_VARIABLE).unwrap_or_default();
    if text.trim().is_empty() {
        bail!("[backup] url needs a key: create a key with `foldwork backup key` and set {KEY_VARIABLE}");
    }
    let key = SealingKey::parse(text.trim())
        .map_err(anyhow::Error::msg)
        .with_context(|| format!("the environment variable {KEY_VARIABLE} is invalid"))?;
    let archive = Archive::open(&config.backup.url, std::env::vars(), key)
        .with_context(|| format!("cannot open the archive {}", config.backup.shown_url()))?;
    Ok(Some(archive))
}
