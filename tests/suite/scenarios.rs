//! Runs every HTTP scenario in `api/`.

use foldwork_tests::expectation::{all_well, files, settle};
use foldwork_tests::scenario;
use futures_util::StreamExt;
use futures_util::stream;

/// Servers that run at a time.
const AT_A_TIME: usize = 4;

#[tokio::test(flavor = "multi_thread")]
async fn every_answer_is_as_written() {
    let only = std::env::var("ONLY").unwrap_or_default();
    let chosen = files("api", "yaml").into_iter().filter(|path| path.display().to_string().contains(&only));
    let check = |path: std::path::PathBuf| async move {
        let wanted = tokio::spawn({
            let path = path.clone();
            async move { scenario::run(&path).await }
        });
        match wanted.await {
            Ok(Ok(wanted)) => settle(&path, &wanted).err(),
            Ok(Err(error)) => Some(format!("{}: {error:#}", path.display())),
            Err(error) => Some(format!("{}: {error}", path.display())),
        }
    };
    let failures = stream::iter(chosen).map(check).buffer_unordered(AT_A_TIME).filter_map(async |failure| failure);
    all_well(failures.collect().await);
}
