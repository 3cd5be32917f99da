//! Runs every pipeline case in `pipelines/`.

use foldwork_tests::case;
use foldwork_tests::expectation::{all_well, files};

use crate::scenarios::compare_all;

#[tokio::test(flavor = "multi_thread")]
async fn every_pipeline_answers_as_written() {
    let check = |path: std::path::PathBuf| async move { case::run(&path).await };
    all_well(compare_all(files("pipelines", "case"), check).await);
}
