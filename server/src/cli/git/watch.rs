//! `import --watch`: imports again whenever the source changes.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::process::ExitCode;
use std::time::Duration;

use super::files::Files;
use super::source::FileSource;
use super::source_reader::SourcePlace;
use super::{Options, history, import};
use crate::cli::client::Client;
use crate::cli::output;
use crate::cli::progress::ProgressIndicator;

/// The interval between two checks of the source.
const INTERVAL: Duration = Duration::from_secs(2);

/// A warning about a failed check. If consecutive checks fail for the same reason, the warning is printed only once.
#[derive(Default)]
struct RepeatedWarning {
    /// The warning about the last check, or `None` if that check succeeded.
    last: Option<String>,
}

/// Imports a source, and imports the source again after each change. If an import fails, or if the source can no longer
/// be read, the next check retries the import. Fails if the source cannot be opened at the start, for example because
/// of a misspelled path.
pub async fn watch(client: &Client, place: &SourcePlace, options: &Options) -> anyhow::Result<ExitCode> {
    place.open()?;
    let (mut imported, mut warnings) = (None, RepeatedWarning::default());
    loop {
        let checked = import_if_changed(client, place, options, &mut imported).await;
        if let Some(warning) = warnings.next(checked.as_ref().err()) {
            let progress = ProgressIndicator::start(None);
            progress.note(&warning);
            progress.finish();
        }
        if let Ok(Some(summary)) = checked {
            output::print_line(&summary)?;
        }
        tokio::time::sleep(INTERVAL).await;
    }
}

impl RepeatedWarning {
    /// Returns the warning about a failed check. Returns `None` if the check succeeded, or if the previous check failed
    /// for the same reason.
    fn next(&mut self, error: Option<&anyhow::Error>) -> Option<String> {
        let warning = error.map(|error| format!("warning: {error:#}"));
        let is_new = warning != self.last;
        self.last.clone_from(&warning);
        warning.filter(|_| is_new)
    }
}

/// Imports a source and returns a summary, or returns `None` if the source has not changed since the last successful
/// import. `imported` is the fingerprint of the source at that import. A successful import sets `imported` to the new
/// fingerprint, or to `None` if the import found a file that it then failed to read.
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
    let outcome = outcome?;
    // If the import found a file that it then failed to read, the next check imports again, even if no file changes
    // until then. A file that could not be read when the folder was listed is part of the fingerprint instead.
    *imported = Some(found).filter(|_| !outcome.has_unread);
    Ok(Some(outcome.summary(time)))
}

/// Returns a value that changes when HEAD or a file of the folder changes. The value also changes when a file can no
/// longer be read, and when a file that could not be read is removed.
fn fingerprint(source: &FileSource) -> anyhow::Result<u64> {
    let mut hasher = DefaultHasher::new();
    match source {
        FileSource::Git(repository) => history::head(repository)?.hash(&mut hasher),
        FileSource::Folder(_) => {
            let Files { blobs, left_out, unread } = source.files(None)?;
            blobs.hash(&mut hasher);
            // The value does not depend on the order in which a folder lists its files.
            for listed in [left_out, unread] {
                listed.into_iter().map(|(path, _)| path).collect::<BTreeSet<_>>().hash(&mut hasher);
            }
        }
    }
    Ok(hasher.finish())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn consecutive_equal_errors_print_one_warning() {
        let (one, other) = (anyhow::anyhow!("one"), anyhow::anyhow!("other"));
        let mut warnings = RepeatedWarning::default();
        let outcomes = [Some(&one), Some(&one), Some(&other), None, None, Some(&other)];
        let printed = outcomes.map(|error| warnings.next(error).unwrap_or_default());
        assert_eq!(printed, ["warning: one", "", "warning: other", "", "", "warning: other"]);
    }

    #[test]
    fn the_removal_of_a_file_that_was_left_out_changes_the_fingerprint() {
        let folder = tempfile::tempdir().expect("a folder");
        let source = FileSource::folder(folder.path()).expect("opened");
        fs::write(folder.path().join("large.md"), "x".repeat(600 * 1024)).expect("written");
        let before = fingerprint(&source).expect("read");
        assert_eq!(fingerprint(&source).expect("read"), before);
        fs::remove_file(folder.path().join("large.md")).expect("removed");
        assert_ne!(fingerprint(&source).expect("read"), before);
    }

    #[tokio::test]
    async fn a_folder_that_does_not_exist_is_not_watched() {
        let folder = tempfile::tempdir().expect("a folder");
        let place = SourcePlace::Folder(folder.path().join("missing"));
        let client = Client::new("http://127.0.0.1:1", "sk_unused").expect("a client");
        let refused = watch(&client, &place, &Options::default()).await.expect_err("refused");
        assert!(refused.to_string().contains("cannot be opened"), "{refused:#}");
    }
}
