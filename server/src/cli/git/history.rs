//! The history of a repository's Markdown files: the commits to import, and the differences between two commits.

use std::path::Path;

use anyhow::Context;
use git2::{Delta, Diff, DiffDelta, DiffFile, DiffFindOptions, DiffOptions, ErrorCode, Oid, Repository, Tree};
use jiff::Timestamp;

/// The endings of the names of Markdown files, in lower case.
const ENDINGS: [&str; 7] = [".md", ".markdown", ".mdx", ".mkd", ".mkdn", ".mkdown", ".mdown"];
/// The maximum number of characters of a commit's subject in an event.
const MAX_SUBJECT_CHARS: usize = 500;
/// The earliest time that the server accepts: 0000-01-01T00:00:00Z.
const YEAR_0000: Timestamp = Timestamp::constant(-62_167_219_200, 0);

/// The minimum percentage of unchanged content in a renamed file. This value must not change: otherwise later imports
/// would treat some renamed files as new articles.
const RENAME_SIMILARITY: u16 = 50;
/// The approximate maximum number of removed files that libgit2 compares with each added file to find renames. If a
/// commit removes more files, libgit2 may not find some renames, even of files with equal content.
const RENAME_LIMIT: usize = 1_000;

/// The data of a git commit. The events of the changes in the commit contain this data.
#[derive(Clone, Debug)]
pub struct Commit {
    pub id: Oid,
    /// The time of the commit, or `None` if the server would reject the time.
    pub time: Option<Timestamp>,
    /// The first paragraph of the message, at most [`MAX_SUBJECT_CHARS`] characters. Control characters are replaced by
    /// spaces.
    pub subject: String,
}

/// The path and the commit of a file's creation, which identify the article through every rename.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Birth {
    pub path: String,
    pub commit: Oid,
}

/// The change of a regular Markdown file between two trees: the path and the id of the file in each tree, or `None` if
/// the tree does not contain the file.
#[derive(Debug)]
pub struct TreeChange {
    pub before: Option<(String, Oid)>,
    pub after: Option<(String, Oid)>,
}

impl TreeChange {
    /// Returns the new path and the old path if the file was renamed.
    pub fn rename(self) -> Option<(String, String)> {
        let ((before, _), (after, _)) = (self.before?, self.after?);
        (before != after).then_some((after, before))
    }
}

impl Commit {
    pub fn read(repository: &Repository, id: Oid) -> anyhow::Result<Self> {
        let commit = repository.find_commit(id).with_context(|| format!("commit {id} cannot be read"))?;
        let subject = String::from_utf8_lossy(commit.summary_bytes().unwrap_or_default()).into_owned();
        let subject = subject.chars().take(MAX_SUBJECT_CHARS).map(|c| if c.is_control() { ' ' } else { c }).collect();
        // The server accepts times in the years 0000 to 9999.
        let time = Timestamp::from_second(commit.time().seconds()).ok().filter(|time| *time >= YEAR_0000);
        Ok(Self { id, time, subject })
    }
}

/// Returns whether a file name is the name of a Markdown file.
pub fn is_markdown(name: &str) -> bool {
    let bytes = name.as_bytes();
    ENDINGS.iter().any(|ending| {
        let start = bytes.len().checked_sub(ending.len());
        start.and_then(|start| bytes.get(start..)).is_some_and(|end| end.eq_ignore_ascii_case(ending.as_bytes()))
    })
}

/// Returns the git path pattern that matches the file names with an ending in any case. For example, the pattern for
/// `.md` is `*.[mM][dD]`.
fn pattern(ending: &str) -> String {
    let letters = ending.trim_start_matches('.').chars();
    format!("*.{}", letters.map(|letter| format!("[{letter}{}]", letter.to_ascii_uppercase())).collect::<String>())
}

/// Returns whether a mode, as `TreeEntry::filemode` returns it, is the mode of a regular file, not of a symbolic link
/// or a submodule.
pub fn is_regular(mode: i32) -> bool {
    matches!(mode, 0o100_644 | 0o100_755 | 0o100_664)
}

/// Returns the commit of HEAD, or `None` if the branch of HEAD has no commit.
pub fn head(repository: &Repository) -> anyhow::Result<Option<Oid>> {
    match repository.head() {
        Ok(head) => Ok(Some(head.peel_to_commit().context("HEAD does not point to a commit")?.id())),
        Err(error) if matches!(error.code(), ErrorCode::UnbornBranch | ErrorCode::NotFound) => Ok(None),
        Err(error) => Err(error).context("HEAD cannot be read"),
    }
}

/// Returns the first-parent history of HEAD, including HEAD, oldest first. The history of a shallow clone begins at the
/// oldest commit of the clone.
pub fn first_parents(repository: &Repository) -> anyhow::Result<Vec<Oid>> {
    let mut ids = Vec::new();
    let mut next = head(repository)?;
    while let Some(id) = next {
        let commit = match repository.find_commit(id) {
            Ok(commit) => commit,
            Err(_) if repository.is_shallow() && !ids.is_empty() => break,
            Err(error) => return Err(error).context(format!("commit {id} cannot be read")),
        };
        ids.push(id);
        next = commit.parent_id(0).ok();
    }
    ids.reverse();
    Ok(ids)
}

/// Returns the differences of the Markdown files between two commits. If `before` is `None`, every file of `after` is
/// new.
pub fn steps(repository: &Repository, before: Option<Oid>, after: Oid) -> Result<Vec<TreeChange>, git2::Error> {
    let before = before.map(|id| repository.find_commit(id)?.tree()).transpose()?;
    let after = repository.find_commit(after)?.tree()?;
    let mut options = DiffOptions::new();
    for ending in ENDINGS {
        options.pathspec(pattern(ending));
    }
    let mut diff = || repository.diff_tree_to_tree(before.as_ref(), Some(&after), Some(&mut options));
    let mut found = diff()?;
    if find_renames(&mut found, false).is_err() {
        // Matches only equal content, because a partial clone may lack the content to compare.
        found = diff()?;
        find_renames(&mut found, true)?;
    }
    let change = |delta: DiffDelta<'_>| {
        let old = tree_file(before.as_ref(), &delta.old_file()).filter(|_| delta.status() != Delta::Added);
        let new = tree_file(Some(&after), &delta.new_file()).filter(|_| delta.status() != Delta::Deleted);
        let is_touched = old != new;
        let side = |(path, id, _): (String, Oid, i32)| (path, id);
        is_touched.then(|| TreeChange { before: old.map(side), after: new.map(side) })
    };
    Ok(found.deltas().filter_map(change).collect())
}

/// Returns the path, the id and the mode of a regular file of a tree. Returns `None` if the tree has no regular file at
/// the path, or if the path is not UTF-8. The final comparison with the tree reports a path that is not UTF-8.
///
/// The mode comes from the tree, because `DiffFile::mode` panics at a mode that git no longer writes, such as 100600.
fn tree_file(tree: Option<&Tree<'_>>, file: &DiffFile<'_>) -> Option<(String, Oid, i32)> {
    let path = file.path_bytes().and_then(|path| std::str::from_utf8(path).ok())?;
    let entry = tree?.get_path(Path::new(path)).ok()?;
    is_regular(entry.filemode()).then(|| (path.to_owned(), entry.id(), entry.filemode()))
}

/// Matches removed files with added files of similar content. If `only_equal` is set, the content must be equal.
fn find_renames(diff: &mut Diff<'_>, only_equal: bool) -> Result<(), git2::Error> {
    let has = |status: Delta| diff.deltas().any(|delta| delta.status() == status);
    if has(Delta::Added) && has(Delta::Deleted) {
        // Sets these options explicitly, because libgit2 takes unset options from the user's git configuration.
        let mut options = DiffFindOptions::new();
        options.renames(true).rename_threshold(RENAME_SIMILARITY).rename_limit(RENAME_LIMIT);
        diff.find_similar(Some(options.exact_match_only(only_equal)))?;
    }
    Ok(())
}
