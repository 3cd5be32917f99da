//! Runs every HTTP scenario in `api/`.

use std::path::{Path, PathBuf};

use foldwork_tests::expectation::{all_well, compare, difference, files, read};
use foldwork_tests::{apart, scenario, server};

#[test]
fn every_scenario_matches_its_file() {
    all_well(compare_all(&files("api", "yaml"), |path| scenario::run(path)));
}

/// Replaces each id with its number in the order of first appearance, and leaves out the signatures of links, which
/// depend on ids.
fn with_numbered_ids(text: &str) -> String {
    let is_of_id = |character: char| matches!(character, '0'..='9' | 'a'..='f' | '-');
    let is_id = |word: &str| word.len() == 36 && [8, 13, 18, 23].iter().all(|at| word.as_bytes()[*at] == b'-');
    let (mut rest, mut numbered, mut ids) = (text, String::with_capacity(text.len()), Vec::new());
    while !rest.is_empty() {
        let (word, after) = rest.split_at(rest.find(|character| !is_of_id(character)).unwrap_or(rest.len()));
        if is_id(word) {
            let number = ids.iter().position(|id| *id == word).unwrap_or_else(|| {
                ids.push(word);
                ids.len() - 1
            });
            numbered.push_str(&format!("id-{number}"));
        } else {
            numbered.push_str(word);
        }
        let between = after.split_at(after.find(is_of_id).unwrap_or(after.len()));
        numbered.push_str(between.0);
        rest = between.1;
    }
    let mut parts = numbered.split("sig=");
    let first = parts.next().unwrap_or_default().to_owned();
    let is_of_signature = |character: char| character.is_ascii_alphanumeric() || matches!(character, '-' | '_');
    parts.fold(first, |text, part| text + "sig=" + part.trim_start_matches(is_of_signature))
}

/// Compares a file with the text that a scenario's run returned. A second server draws more ids, because a request that
/// another server has overtaken is repeated. With a second server, ids are therefore compared by their numbers.
fn compare_run(path: &Path, text: &str) -> Result<(), String> {
    if !server::has_peers() {
        return compare(path, text);
    }
    let (present, text) = (with_numbered_ids(&read(path)), with_numbered_ids(text));
    if present == text { Ok(()) } else { Err(format!("{} differs\n{}", path.display(), difference(&present, &text))) }
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
        Ok(text) => compare_run(path, &text),
        Err(error) => Err(format!("{}: {error}", path.display())),
    });
    compared.filter_map(Result::err).collect()
}
