//! Runs every HTTP scenario in `api/`.

use std::path::PathBuf;

use foldwork_tests::expectation::{all_well, compare, files};
use foldwork_tests::{apart, scenario};

#[test]
fn every_scenario_matches_its_file() {
    all_well(compare_all(&files("api", "yaml"), |path| scenario::run(path)));
}

/// Runs each file and compares it with the text that it should have. `ONLY=text` selects files whose paths contain the
/// text.
pub fn compare_all<'a, F>(files: &'a [PathBuf], check: impl Fn(&'a PathBuf) -> F + Sync) -> Vec<String>
where
    F: Future<Output = anyhow::Result<String>>,
{
    let only = std::env::var("ONLY").unwrap_or_default();
    let chosen: Vec<&PathBuf> = files.iter().filter(|path| path.display().to_string().contains(&only)).collect();
    let texts = apart::each(&chosen, |path| check(path));
    let compared = chosen.into_iter().zip(texts).map(|(path, text)| match text {
        Ok(text) => compare(path, &text),
        Err(error) => Err(format!("{}: {error}", path.display())),
    });
    compared.filter_map(Result::err).collect()
}
