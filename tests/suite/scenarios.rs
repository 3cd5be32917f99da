//! Runs every HTTP scenario in `api/`.

use std::path::PathBuf;

use foldwork_tests::expectation::{all_well, compare, files};
use foldwork_tests::scenario;
use futures_util::StreamExt;
use futures_util::stream;

/// Servers that run at a time.
const AT_A_TIME: usize = 4;

#[tokio::test(flavor = "multi_thread")]
async fn every_answer_is_as_written() {
    let check = |path: PathBuf| async move { scenario::run(&path).await };
    all_well(compare_all(files("api", "yaml"), check).await);
}

/// Runs files, of which each tells the text that it should have. `ONLY=text` runs those whose paths have the text.
pub async fn compare_all<F>(files: Vec<PathBuf>, check: impl Fn(PathBuf) -> F) -> Vec<String>
where
    F: Future<Output = anyhow::Result<String>> + Send + 'static,
{
    let only = std::env::var("ONLY").unwrap_or_default();
    let chosen = files.into_iter().filter(|path| path.display().to_string().contains(&only));
    let one = |path: PathBuf| {
        let wanted = tokio::spawn(check(path.clone()));
        async move {
            match wanted.await {
                Ok(Ok(wanted)) => compare(&path, &wanted).err(),
                Ok(Err(error)) => Some(format!("{}: {error:#}", path.display())),
                Err(error) => Some(format!("{}: {error}", path.display())),
            }
        }
    };
    stream::iter(chosen).map(one).buffer_unordered(AT_A_TIME).filter_map(async |failure| failure).collect().await
}
