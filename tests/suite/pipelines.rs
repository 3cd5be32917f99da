//! Runs every pipeline case in `pipelines/`.

use foldwork_tests::case;
use foldwork_tests::expectation::{all_well, compare, files};

use crate::scenarios::compare_all;

#[test]
fn every_pipeline_case_matches_its_file() {
    all_well(compare_all(&files("pipelines", "case"), |path| case::run(path), compare));
}
