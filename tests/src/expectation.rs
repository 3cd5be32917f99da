//! Compares the results of tests with files. With `UPDATE=1`, the results are written to the files.

use std::path::{Path, PathBuf};

/// Returns the folder of the repository.
pub fn root() -> PathBuf {
    home().parent().unwrap_or(Path::new(".")).to_owned()
}

/// Returns the folder of this crate. Reads the environment variable at run time: two checkouts that share a target
/// folder also share their test binaries, so a path from compile time could belong to the other checkout.
fn home() -> PathBuf {
    std::env::var_os("CARGO_MANIFEST_DIR").map_or_else(|| PathBuf::from("tests"), PathBuf::from)
}

/// Returns the files in a folder of this crate that have this extension, sorted by name.
pub fn files(folder: &str, extension: &str) -> Vec<PathBuf> {
    let folder = home().join(folder);
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|found| found == extension))
        .collect();
    files.sort();
    files
}

/// Returns the subfolders of a folder of this crate, sorted by name.
pub fn folders(folder: &str) -> Vec<PathBuf> {
    let folder = home().join(folder);
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut folders: Vec<PathBuf> =
        entries.filter_map(|entry| Some(entry.ok()?.path())).filter(|path| path.is_dir()).collect();
    folders.sort();
    folders
}

/// Returns the text of a file.
pub fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Compares a file with the text that the file should contain. With `UPDATE=1`, rewrites the file instead of failing.
pub fn compare(path: &Path, expected: &str) -> Result<(), String> {
    let present = std::fs::read_to_string(path).unwrap_or_default();
    if present == expected {
        return Ok(());
    }
    if updates() {
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).map_err(|error| error.to_string())?;
        }
        return std::fs::write(path, expected).map_err(|error| format!("{}: {error}", path.display()));
    }
    Err(format!("{} differs; UPDATE=1 rewrites the file\n{}", path.display(), difference(&present, expected)))
}

/// Compares a file whose content is also a part of the generated file `derived`. Unlike [`compare`], fails after
/// rewriting the file, because only a further run rewrites `derived`.
pub fn compare_source(path: &Path, expected: &str, derived: &str) -> Result<(), String> {
    let is_outdated = std::fs::read_to_string(path).unwrap_or_default() != expected;
    compare(path, expected)?;
    match is_outdated {
        true => Err(format!("{} was rewritten; run with UPDATE=1 again, which rewrites {derived}", path.display())),
        false => Ok(()),
    }
}

/// Returns whether `UPDATE=1` is set. If so, tests write their results to the files with the expected results.
pub fn updates() -> bool {
    std::env::var("UPDATE").is_ok_and(|update| update == "1")
}

/// Panics with all failures, if there are any.
pub fn all_well(failures: Vec<String>) {
    assert!(failures.is_empty(), "{} failures\n\n{}", failures.len(), failures.join("\n\n"));
}

/// The number of lines shown before a difference.
const CONTEXT: usize = 6;
/// The maximum number of differing lines shown from each text.
const MAX_SHOWN: usize = 40;

/// Returns the first lines in which two texts differ. A few lines before the difference are included as context.
pub fn difference(present: &str, expected: &str) -> String {
    let (present, expected): (Vec<_>, Vec<_>) = (present.lines().collect(), expected.lines().collect());
    let same = present.iter().zip(&expected).take_while(|(a, b)| a == b).count();
    let tail = present[same..].iter().rev().zip(expected[same..].iter().rev()).take_while(|(a, b)| a == b).count();
    let context = present[same.saturating_sub(CONTEXT)..same].iter().map(|line| format!("  {line}"));
    let removed = present[same..present.len() - tail].iter().take(MAX_SHOWN).map(|line| format!("- {line}"));
    let added = expected[same..expected.len() - tail].iter().take(MAX_SHOWN).map(|line| format!("+ {line}"));
    let lines: Vec<String> = context.chain(removed).chain(added).collect();
    format!("line {}\n{}", same + 1, lines.join("\n"))
}
