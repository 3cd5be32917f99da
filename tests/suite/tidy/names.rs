//! Tests that the documentation names only existing things: files, types, functions, tests, settings, metrics and
//! headings.
//!
//! A text in backticks is checked if its form shows what it is:
//!
//! * A path has a `/` and begins with a folder of the repository, or is a Rust or SurrealQL file. A path may be
//!   shortened from the left, may have `*` in its components, and may be followed by arguments.
//! * A name of code is one word with a capital letter or an underscore, or several words joined by two colons. It must
//!   occur in code, settings, scripts or the OpenAPI document, outside of the comments of Rust.
//! * A setting is a section of `config.toml` in brackets, with or without a key after it, or an environment variable.
//!
//! Everything else in backticks may be an example, and is not checked. Code blocks are not checked either.

use std::collections::{BTreeSet, HashSet};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use foldwork_tests::expectation::{all_well, read, root};

/// Folders whose text is not the project's own. The first three are not read at all.
const FOREIGN: [&str; 4] = [".git", "node_modules", "target", "vendor"];
/// Folders that the reader of a document creates.
const CREATED: [&str; 3] = ["data/", "scripts/shouting/", "scripts/find_author/"];
/// The extensions of files whose words count as names.
const SOURCES: [&str; 16] =
    ["rs", "toml", "surql", "json", "yaml", "yml", "rhai", "py", "mjs", "js", "ts", "sh", "c", "case", "txt", "html"];

/// The inventory of the repository. The tests share the inventory, because creating it reads every file.
static KNOWN: LazyLock<Inventory> = LazyLock::new(Inventory::read);

#[test]
fn documents_name_only_existing_files_settings_and_code() {
    let mut failures = Vec::new();
    for file in KNOWN.files.iter().filter(|file| file.ends_with(".md") && !is_foreign(file)) {
        let text = read(&root().join(file));
        let missing = KNOWN.missing(file, &text).into_iter().chain(KNOWN.broken_links(file, &text));
        failures.extend(missing.map(|what| format!("{file}: {what}")));
    }
    all_well(failures);
}

#[test]
fn comments_of_modules_name_only_existing_files_settings_and_code() {
    let mut failures = Vec::new();
    for file in KNOWN.files.iter().filter(|file| file.ends_with(".rs") && !is_foreign(file)) {
        let text = read(&root().join(file));
        let comment: Vec<&str> = text.lines().map_while(|line| line.strip_prefix("//!")).collect();
        failures.extend(KNOWN.missing(file, &comment.join("\n")).into_iter().map(|what| format!("{file}: {what}")));
    }
    all_well(failures);
}

#[test]
fn every_table_of_the_schema_has_a_comment() {
    let mut failures = Vec::new();
    for file in KNOWN.files.iter().filter(|file| file.ends_with(".surql") && !is_foreign(file)) {
        let text = read(&root().join(file));
        let lines: Vec<&str> = text.lines().collect();
        let tables = (0..lines.len()).filter(|line| lines[*line].starts_with("DEFINE TABLE"));
        let silent = tables.filter(|line| !line.checked_sub(1).is_some_and(|above| lines[above].starts_with("-- ")));
        failures.extend(silent.map(|line| format!("{file}: no comment above {}", lines[line])));
    }
    all_well(failures);
}

#[test]
fn unknown_names_and_broken_links_in_a_document_are_found() {
    let mut known = Inventory::default();
    known.files.extend(["engine/src/store/log.rs", "docs/files.md", "tests/api/keys.yaml"].map(str::to_owned));
    known.folders.extend(["engine", "engine/src", "engine/src/store", "tests", "tests/api"].map(str::to_owned));
    known.words.extend(["Engine", "open", "page_bytes"].map(str::to_owned));
    known.add_settings("[http]\n# [http.limits]\n#   page_bytes = 1\nport = 1\n");
    let right = "`store/log.rs` `log.rs` `engine/src/` `tests/api/*.yaml` `tests/api/keys.yaml --all` `Engine::open()` \
                 `page_bytes` `[http] port` `[http.limits] page_bytes` `FOLDWORK_HTTP__PORT` `guide/a.md` `anything`";
    assert_eq!(known.missing("docs/files.md", right), Vec::<String>::new());
    let wrong = "`store/head.rs` `head.rs` `engine/lib/` `tests/api/*.case` `Engine::close` `Engines` `page_size` \
                 `[http] host` `[http.limits] port` `FOLDWORK_HTTP__HOST`";
    assert_eq!(known.missing("docs/files.md", wrong).len(), 10);
    let hidden = "```\n`page_size`\n```\n\nA ` alone.\n\n``page_bytes``";
    assert_eq!(known.missing("docs/files.md", hidden), Vec::<String>::new());
    assert_eq!(known.broken_links("docs/a.md", "[a](files.md) [b](https://b) `[c](d.md)`"), Vec::<String>::new());
    assert_eq!(known.broken_links("docs/a.md", "[a](file.md) [b](../files.md) [c](b.md#c)").len(), 3);
    assert!(anchors("## The way of `an` event\n").contains("the-way-of-an-event"));
}

/// The things that the documentation may name.
#[derive(Default)]
struct Inventory {
    /// The paths of all files, relative to the repository.
    files: BTreeSet<String>,
    folders: BTreeSet<String>,
    /// The words of all source files. The comment lines of Rust files do not count.
    words: HashSet<String>,
    /// The sections of `config.toml`, and its keys with their sections.
    settings: HashSet<String>,
}

impl Inventory {
    fn read() -> Inventory {
        let mut known = Inventory::default();
        let mut folders = vec![root()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
                let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
                let inside = relative(&path);
                if path.is_dir() {
                    if !FOREIGN[..3].contains(&name.as_str()) {
                        known.folders.insert(inside);
                        folders.push(path);
                    }
                } else {
                    known.add_words(&path, &inside);
                    known.files.insert(inside);
                }
            }
        }
        known.add_settings(&read(&root().join("config.toml")));
        known
    }

    fn add_words(&mut self, path: &Path, inside: &str) {
        let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or("");
        let is_script = extension.is_empty() && inside.contains('/');
        // The samples in this file do not exist.
        if is_foreign(inside) || inside.ends_with("tidy/names.rs") || !(is_script || SOURCES.contains(&extension)) {
            return;
        }
        let Ok(text) = std::fs::read_to_string(path) else { return };
        let is_rust = extension == "rs";
        for line in text.lines().filter(|line| !is_rust || !line.trim_start().starts_with("//")) {
            self.words.extend(words(line).map(str::to_owned));
        }
    }

    /// Adds the sections and keys of a configuration, including those that occur only in comments. A section in a
    /// comment ends with the comment.
    fn add_settings(&mut self, config: &str) {
        let (mut section, mut shown) = ("", "");
        for line in config.lines() {
            let is_comment = line.starts_with('#');
            let line = line.trim_start_matches(['#', ' ']);
            if let Some(name) = line.strip_prefix('[') {
                shown = name.trim_start_matches('[').split(']').next().unwrap_or("");
                self.settings.insert(shown.to_owned());
                if !is_comment {
                    section = shown;
                }
            } else if let Some((key, _)) = line.split_once(" =") {
                let section = if is_comment { shown } else { section };
                self.settings.insert(format!("{section} {}", key.trim()));
            } else if !is_comment {
                shown = section;
            }
        }
    }

    /// Returns a message for each thing that a text names in backticks and that does not exist.
    fn missing(&self, file: &str, text: &str) -> Vec<String> {
        let (spans, _) = code_and_prose(text);
        let missing = spans.iter().filter(|span| !self.has(file, span));
        missing.map(|span| format!("`{span}` does not exist")).collect()
    }

    fn has(&self, file: &str, span: &str) -> bool {
        if let Some(setting) = span.strip_prefix('[') {
            return self.has_setting(setting.trim_start_matches('['));
        }
        let first = span.split([' ', '{', '(', '<', '=']).next().unwrap_or(span);
        if self.is_path(first) {
            return CREATED.iter().any(|folder| first.starts_with(folder)) || self.has_path(file, first);
        }
        if let Some(variable) = first.strip_prefix("FOLDWORK_")
            && let Some((section, key)) = variable.split_once("__")
        {
            let section = section.to_ascii_lowercase();
            return section.starts_with('<') || self.has_setting(&format!("{section}] {}", key.to_ascii_lowercase()));
        }
        let mut parts = first.trim_end_matches("::").split("::");
        let is_joined = first.contains("::");
        parts.all(|part| !(is_joined || is_name(part)) || self.words.contains(part) || self.files.contains(part))
    }

    /// Returns whether the setting in `text` exists, for example `http] listen` for the setting `listen` in the section
    /// `[http]`. Returns `true` for a text that does not have the form of a setting. A section that is not in
    /// `config.toml` may belong to another file: its settings count as existing if each part of the section's name is a
    /// word of the sources.
    fn has_setting(&self, text: &str) -> bool {
        let Some((section, key)) = text.split_once(']') else { return true };
        let is_section = section.split('.').all(|part| is_lower(part) || part.contains('-'));
        let key = key.trim_matches([']', ' ']).split([' ', '=']).next().unwrap_or("");
        if !is_section || !self.settings.contains(section) {
            return !is_section || section.split('.').all(|part| self.words.contains(part));
        }
        // The last word of a key in an environment variable may follow the number of a list's item.
        let key = key.rsplit("__").next().unwrap_or(key);
        let end = format!(" {key}");
        let has = |known: &String| known.strip_prefix(section).is_some_and(|rest| rest.ends_with(&end));
        !is_lower(key) || self.settings.iter().any(has)
    }

    /// Returns whether a text has the form of a path into the repository.
    fn is_path(&self, text: &str) -> bool {
        let is_plain = text.chars().all(|c| c.is_ascii_alphanumeric() || "_-./*".contains(c));
        if !is_plain || text.starts_with(['/', '.']) && !text.starts_with(".ci/") {
            return false;
        }
        let is_source = [".rs", ".surql"].iter().any(|extension| text.ends_with(extension));
        let first = text.split('/').next().unwrap_or("");
        is_source || text.contains('/') && self.folders.iter().any(|folder| ends_with(folder, first))
    }

    /// Returns whether a path that is written in `file` exists. The path may begin at the root of the repository or in
    /// the folder of `file`, or may be the end of a longer path.
    fn has_path(&self, file: &str, path: &str) -> bool {
        let path = path.trim_end_matches('/');
        let beside = Path::new(file).parent().map(|folder| folder.join(path)).unwrap_or_default();
        let beside = beside.to_string_lossy();
        let mut all = self.files.iter().chain(&self.folders);
        all.any(|known| *known == beside || ends_with(known, path))
    }

    /// Returns the links of a document to files or headings that do not exist.
    fn broken_links(&self, file: &str, text: &str) -> Vec<String> {
        let folder = Path::new(file).parent().unwrap_or(Path::new(""));
        let (_, prose) = code_and_prose(text);
        let links = prose.split("](").skip(1).filter_map(|rest| rest.split([')', ' ']).next());
        let local = links.filter(|link| !link.contains(':') && !link.is_empty());
        let is_broken = |link: &&str| {
            let (path, heading) = link.split_once('#').unwrap_or((link, ""));
            let target = if path.is_empty() { PathBuf::from(file) } else { resolved(folder, path) };
            let target = target.to_string_lossy();
            if heading.is_empty() {
                return !(self.files.contains(&*target) || self.folders.contains(&*target));
            }
            !self.files.contains(&*target) || !anchors(&read(&root().join(&*target))).contains(heading)
        };
        local.filter(is_broken).map(|link| format!("the target of the link {link} does not exist")).collect()
    }
}

fn relative(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).to_string_lossy().into_owned()
}

fn is_foreign(inside: &str) -> bool {
    inside.split('/').any(|part| FOREIGN.contains(&part))
}

/// Returns whether the last components of `path` match `end`, whose components may contain a `*`.
fn ends_with(path: &str, end: &str) -> bool {
    let mut parts = path.rsplit('/');
    end.rsplit('/').all(|wanted| parts.next().is_some_and(|part| fits(part, wanted)))
}

/// Returns whether a component of a path fits a pattern with at most one `*`.
fn fits(part: &str, pattern: &str) -> bool {
    match pattern.split_once('*') {
        Some((start, end)) => part.len() >= start.len() + end.len() && part.starts_with(start) && part.ends_with(end),
        None => part == pattern,
    }
}

fn resolved(folder: &Path, link: &str) -> PathBuf {
    let mut path = folder.to_owned();
    for part in link.trim_end_matches('/').split('/') {
        match part {
            ".." => _ = path.pop(),
            "." => {}
            part => path.push(part),
        }
    }
    path
}

fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').filter(|word| !word.is_empty())
}

fn is_lower(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
}

/// Returns whether a word has the form of a name in code.
fn is_name(word: &str) -> bool {
    let is_plain = word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let is_marked = word.contains('_') || word.contains(|c: char| c.is_ascii_uppercase());
    is_plain && is_marked && word.contains(|c: char| c.is_ascii_lowercase())
}

/// Returns a document without its blocks of code.
fn without_blocks(text: &str) -> String {
    let mut is_inside = false;
    let mut prose = String::new();
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            is_inside = !is_inside;
        } else if !is_inside {
            prose.push_str(line);
            prose.push('\n');
        }
    }
    prose
}

/// Returns the texts in backticks, and the text around them. In the texts in backticks, one space replaces each
/// sequence of whitespace. A text in backticks ends in the paragraph in which it begins.
fn code_and_prose(text: &str) -> (Vec<String>, String) {
    let (mut spans, mut prose) = (Vec::new(), String::new());
    for paragraph in without_blocks(text).split("\n\n") {
        let mut rest = paragraph;
        while let Some(start) = rest.find('`') {
            let after = rest[start..].trim_start_matches('`');
            let fence = &rest[start..rest.len() - after.len()];
            let Some(end) = after.find(fence) else { break };
            spans.push(after[..end].split_whitespace().collect::<Vec<_>>().join(" "));
            prose.push_str(&rest[..start]);
            rest = &after[end + fence.len()..];
        }
        prose.push_str(rest);
        prose.push_str("\n\n");
    }
    (spans, prose)
}

/// Returns the anchors of a document's headings, as GitHub writes them.
fn anchors(text: &str) -> HashSet<String> {
    let prose = without_blocks(text);
    let headings = prose.lines().filter(|line| line.starts_with('#'));
    headings.map(|line| anchor(line.trim_start_matches('#').trim())).collect()
}

fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.map(|c| if c == ' ' { '-' } else { c.to_ascii_lowercase() }).collect()
}
