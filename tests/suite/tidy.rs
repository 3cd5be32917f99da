//! Tests rules of the code base: dependency directions, file names, file lengths, and the names in the documentation.

mod circles;
mod imports;
mod layers;
mod names;
mod tables;
mod types;
mod wire;

use std::path::{Path, PathBuf};

use foldwork_tests::expectation::{all_well, read, root};

/// The folders of the crates, and the crates that the files in each folder may name. The folder `server` contains the
/// crates `foldwork_server` and `foldwork_local_model`.
const CRATES: [(&str, &[&str]); 3] = [
    ("engine", &[]),
    ("plugins", &["foldwork_engine"]),
    ("server", &["foldwork_engine", "foldwork_local_model", "foldwork_plugins", "foldwork_server"]),
];
const OURS: [&str; 5] =
    ["foldwork_engine", "foldwork_local_model", "foldwork_plugins", "foldwork_server", "foldwork_tests"];
/// File names that do not describe their content.
const EMPTY_NAMES: [&str; 8] = ["core", "util", "utils", "common", "helpers", "misc", "manager", "service"];
const MAX_LINES: usize = 400;

#[test]
fn crates_depend_in_one_direction() {
    let mut failures = Vec::new();
    for (folder, allowed) in CRATES {
        for file in sources(folder) {
            for (number, line) in code(&file) {
                let wrong = OURS.iter().filter(|ours| line.contains(*ours) && !allowed.contains(ours));
                failures.extend(wrong.map(|ours| at(&file, number, &format!("{folder} must not name {ours}"))));
            }
        }
    }
    all_well(failures);
}

#[test]
fn only_the_store_module_uses_the_database_crate() {
    let mut failures = Vec::new();
    for file in ["engine", "plugins", "server"].into_iter().flat_map(sources) {
        if file.starts_with(root().join("engine/src/store")) {
            continue;
        }
        let naming =
            code(&file).into_iter().filter(|(_, line)| line.contains("surrealdb::") || line.contains("surrealdb_"));
        failures.extend(naming.map(|(number, line)| at(&file, number, &format!("outside of the store: {line}"))));
    }
    all_well(failures);
}

#[test]
fn no_path_of_a_source_file_contains_a_listed_generic_name() {
    let mut failures = Vec::new();
    for file in everything() {
        let inside = file.strip_prefix(root()).unwrap_or(&file);
        for part in inside.components() {
            let part = part.as_os_str().to_string_lossy();
            let stem = part.strip_suffix(".rs").unwrap_or(&part);
            if EMPTY_NAMES.contains(&stem) {
                failures.push(format!("{}: '{stem}' says nothing about its content", inside.display()));
            }
        }
    }
    all_well(failures);
}

#[test]
fn every_source_file_begins_with_a_module_comment() {
    let silent = everything().into_iter().filter(|file| !read(file).starts_with("//! "));
    all_well(silent.map(|file| format!("{}: the first line is no //! line", file.display())).collect());
}

#[test]
fn no_file_exceeds_the_line_limit() {
    let mut failures = Vec::new();
    for file in everything() {
        let lines = code(&file).into_iter().filter(|(_, line)| !line.trim().is_empty()).count();
        if lines > MAX_LINES {
            failures.push(format!("{}: {lines} lines of code; expected at most {MAX_LINES}", file.display()));
        }
    }
    all_well(failures);
}

#[test]
fn no_code_uses_todo_or_unimplemented_and_no_test_is_ignored() {
    // Written in two parts, so that this file does not match itself.
    let undone = [concat!("todo", "!"), concat!("unimplemented", "!"), concat!("#[ig", "nore")];
    let mut failures = Vec::new();
    for file in everything() {
        for (number, line) in code(&file) {
            let found = undone.iter().filter(|undone| line.contains(*undone));
            failures.extend(found.map(|undone| at(&file, number, &format!("unfinished code: {undone}"))));
        }
    }
    all_well(failures);
}

#[test]
fn no_lint_is_silenced_with_an_allow_attribute() {
    let mut failures = Vec::new();
    let silencer = concat!("[al", "low(");
    for file in everything() {
        let silenced = code(&file).into_iter().filter(|(_, line)| line.contains(silencer));
        failures.extend(silenced.map(|(number, line)| at(&file, number, &format!("an allowed lint: {line}"))));
    }
    all_well(failures);
}

fn at(file: &Path, number: usize, what: &str) -> String {
    let inside = file.strip_prefix(root()).unwrap_or(file);
    format!("{}:{number}: {}", inside.display(), what.trim())
}

/// Returns the lines of a file with their numbers, without lines of comments and without the test module at its end.
fn code(file: &Path) -> Vec<(usize, String)> {
    let text = read(file);
    let code = text.find("\n#[cfg(test)]\nmod tests {").map_or(text.as_str(), |tests| &text[..tests]);
    let lines = code.lines().enumerate().filter(|(_, line)| !line.trim_start().starts_with("//"));
    lines.map(|(index, line)| (index + 1, line.to_owned())).collect()
}

fn everything() -> Vec<PathBuf> {
    ["engine", "plugins", "server", "tests"].into_iter().flat_map(sources).collect()
}

/// Returns all source files below a folder.
pub fn sources(folder: &str) -> Vec<PathBuf> {
    let mut folders = vec![root().join(folder)];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                files.push(path);
            }
        }
    }
    files.sort();
    files
}
