//! `import --watch`: imports again whenever the source changes.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::process::ExitCode;
use std::time::Duration;

use super::source::FileSource;
use super::source_reader::SourcePlace;
use super::{Options, history, import};
use crate::cli::client::Client;
use crate::cli::output;
use crate::cli::progress::ProgressIndicator;

/// The interval between two checks of the source.
const INTERVAL: Duration = Duration::from_secs(2);

/// Imports a source, and imports it again after each change. A failed import is retried at the next check.
pub async fn watch(client: &Client, place: &SourcePlace, options: &Options) -> anyhow::Result<ExitCode> {
    let mut imported = None;
    loop {
        let found = fingerprint(&place.open()?)?;
        if imported != Some(found) {
            let progress = ProgressIndicator::start(None);
            let outcome = import(client, &progress, place, options).await;
            let time = progress.finish();
            match outcome {
                Ok(outcome) => {
                    output::print_line(&format!("imported {outcome} in {time}"))?;
                    imported = Some(found);
                }
                Err(error) => progress.note(&format!("warning: {error:#}")),
            }
        }
        tokio::time::sleep(INTERVAL).await;
    }
}

/// Returns a value that changes when HEAD or a file of the folder changes.
fn fingerprint(source: &FileSource) -> anyhow::Result<u64> {
    let mut hasher = DefaultHasher::new();
    match source {
        FileSource::Git(repository) => history::head(repository)?.hash(&mut hasher),
        FileSource::Folder(_) => source.files(None)?.blobs.hash(&mut hasher),
    }
    Ok(hasher.finish())
}
