//! Runs every HTTP scenario in `api/`.

use std::path::{Path, PathBuf};

use foldwork_tests::expectation::{all_well, compare, difference, files, read, updates};
use foldwork_tests::{apart, scenario};

use crate::examples::compare_examples;

/// The scenarios whose responses on two servers differ from the responses on one server, with the reason.
const ALONE: [(&str, &str); 1] = [("keys.yaml", "each server records the last use of a key once a minute")];

#[test]
fn every_scenario_returns_the_responses_in_its_file() {
    let mut failures = compare_all(&files("api", "yaml"), |path| scenario::run(path, false), compare);
    if updates() {
        // The test of the examples may have read the scenarios before this test rewrote them.
        failures.extend(compare_examples().err());
    }
    all_well(failures);
}

#[test]
fn two_servers_on_one_store_respond_like_one_server() {
    let mut scenarios = files("api", "yaml");
    scenarios.retain(|path| !ALONE.iter().any(|(name, _)| path.ends_with(name)));
    all_well(compare_all(&scenarios, |path| scenario::run(path, true), compare_with_numbered_ids));
}

/// Replaces each id with its number in the order of first appearance, and leaves out the signatures of links, which
/// depend on ids.
fn with_numbered_ids(text: &str) -> String {
    let is_of_id = |character: char| matches!(character, '0'..='9' | 'a'..='f' | '-');
    let (mut rest, mut numbered, mut ids) = (text, String::with_capacity(text.len()), Vec::new());
    while !rest.is_empty() {
        let (word, after) = rest.split_at(rest.find(|character| !is_of_id(character)).unwrap_or(rest.len()));
        match id_of(word) {
            Some((id, behind)) => {
                let number = ids.iter().position(|known| *known == id).unwrap_or_else(|| {
                    ids.push(id);
                    ids.len() - 1
                });
                numbered.push_str(&format!("id-{number}{behind}"));
            }
            None => numbered.push_str(word),
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

/// Returns the id at the beginning of a word, and the text after the id. If the word is a cursor, the text is empty: a
/// cursor is the hexadecimal text of an id, followed by a checksum, and the checksum is left out.
fn id_of(word: &str) -> Option<(String, &str)> {
    const LENGTH: usize = 36;
    let is_id = |word: &str| [8, 13, 18, 23].iter().all(|at| word.as_bytes()[*at] == b'-');
    if let Some((id, behind)) = word.split_at_checked(LENGTH).filter(|(id, _)| is_id(id)) {
        return Some((id.to_owned(), behind));
    }
    let id = String::from_utf8(hex::decode(word.get(..2 * LENGTH)?).ok()?).ok()?;
    Some((id, "")).filter(|(id, _)| is_id(id))
}

/// Compares a file with the text that two servers returned. Ids are compared by their numbers, because two servers
/// generate more ids than one server: a server retries an append if the other server appended first.
fn compare_with_numbered_ids(path: &Path, text: &str) -> Result<(), String> {
    let (present, text) = (with_numbered_ids(&read(path)), with_numbered_ids(text));
    if present == text { Ok(()) } else { Err(format!("{} differs\n{}", path.display(), difference(&present, &text))) }
}

/// Runs each file, compares the result with the file, and returns a message for each failure. `ONLY=text` selects files
/// whose paths contain the text.
pub fn compare_all<'a, F>(
    files: &'a [PathBuf],
    check: impl Fn(&'a PathBuf) -> F + Sync,
    compare: fn(&Path, &str) -> Result<(), String>,
) -> Vec<String>
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
