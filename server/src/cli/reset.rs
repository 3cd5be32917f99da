//! `foldwork keys reset`: creates a new owner key for an operator who has lost all keys. Opens the store without a
//! server.

use std::path::PathBuf;

use anyhow::Context;
use foldwork_engine::OwnerKey;
use foldwork_engine::model::access::KeyRecord;

use super::output::{note, print_line};
use super::portable::store::{check_presence, open_engine};
use crate::config::Config;

/// The maximum number of keys that the message lists.
const MAX_LISTED: usize = 20;

#[derive(clap::Args, Debug)]
pub struct Arguments {
    /// The configuration file; the default is config.toml.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The URL of the data store; the default is the store of the configuration.
    #[arg(long, value_name = "URL")]
    database: Option<String>,
    /// Revokes the owner's other keys in the first workspace, and all keys derived from them.
    #[arg(long)]
    revoke: bool,
}

/// Runs `foldwork keys reset`.
pub async fn run(arguments: Arguments) -> anyhow::Result<()> {
    let mut config = Config::load(arguments.config.as_deref())?;
    if let Some(url) = arguments.database {
        config.store.url = url;
    }
    // The command needs no files, and must not create the folder for files.
    config.files.url = "mem://".into();
    check_presence(&config)?;
    let engine = open_engine(&config).await?;
    let OwnerKey { workspace, key, others } =
        engine.reset_owner_key(arguments.revoke).await.context("could not create an owner key")?;
    // Only the key goes to standard output, so that a script can capture the key.
    note(&format!(
        "created an owner key for the workspace '{}' ({})\n{}The key is shown only once:\n",
        workspace.name,
        workspace.id,
        other_keys_message(&others, arguments.revoke)
    ));
    print_line(&key)
}

/// Returns a message that lists the owner's keys except the new key, and states whether these keys are revoked.
fn other_keys_message(others: &[KeyRecord], revoked: bool) -> String {
    if others.is_empty() {
        return "the owner had no other keys in this workspace\n".to_owned();
    }
    let verb = if revoked { "revoked, with all keys derived from them" } else { "kept; --revoke revokes them" };
    let mut lines = format!("the owner's other keys in this workspace are {verb}:\n");
    for key in others.iter().take(MAX_LISTED) {
        lines += &format!("  {}  {}  {}\n", key.id, key.display, key.name);
    }
    if others.len() > MAX_LISTED {
        lines += &format!("  and {} more\n", others.len() - MAX_LISTED);
    }
    lines
}
