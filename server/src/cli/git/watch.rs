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

/// Imports a source, and imports it again after each change. A failed import is retried at the next check, and so is a
/// source that cannot be read.
pub async fn watch(client: &Client, place: &SourcePlace, options: &Options) -> anyhow::Result<ExitCode> {
    let mut imported = None;
    loop {
        match import_if_changed(client, place, options, &mut imported).await {
            Ok(Some(summary)) => output::print_line(&summary)?,
            Ok(None) => {}
            Err(error) => {
                let progress = ProgressIndicator::start(None);
                progress.note(&format!("warning: {error:#}"));
                progress.finish();
            }
        }
        tokio::time::sleep(INTERVAL).await;
    }
}

/// Imports a source, and returns a summary, unless the source is as it was when the import last succeeded. `imported`
/// is the fingerprint of the source at that time.
pub async fn import_if_changed(
    client: &Client,
    place: &SourcePlace,
    options: &Options,
    imported: &mut Option<u64>,
) -> anyhow::Result<Option<String>> {
    let found = fingerprint(&place.open()?)?;
    if *imported == Some(found) {
        return Ok(None);
    }
    let progress = ProgressIndicator::start(None);
    let outcome = import(client, &progress, place, options).await;
    let time = progress.finish();
    let summary = format!("imported {} in {time}", outcome?);
    *imported = Some(found);
    Ok(Some(summary))
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
