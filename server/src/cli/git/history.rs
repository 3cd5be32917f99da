//! The history of a repository's Markdown files: the changes of each commit, with files followed through renames.

use std::collections::{HashMap, HashSet};

use anyhow::Context;
use git2::{Delta, Diff, DiffFile, DiffFindOptions, DiffOptions, FileMode, Oid, Repository};
use globset::GlobSet;

use super::origin::Origins;
use super::slug::Slugs;

/// The git path patterns that match Markdown files.
const MARKDOWN: [&str; 2] = ["*.[mM][dD]", "*.[mM][aA][rR][kK][dD][oO][wW][nN]"];

/// The minimum percentage of unchanged content in a renamed file. With another value, later imports would treat some
/// renamed files as new articles.
const RENAME_SIMILARITY: u16 = 50;
/// The maximum number of files of a commit that are compared to find renames. In larger commits only files with equal
/// content are matched.
const RENAME_LIMIT: usize = 1_000;

/// The first-parent history of HEAD, oldest first.
#[derive(Debug)]
pub struct History {
    pub commits: Vec<Commit>,
    pub articles: Vec<Birth>,
    pub changes: Vec<Change>,
}

/// A commit of the history, which may have changed no Markdown file.
#[derive(Debug)]
pub struct Commit {
    pub id: Oid,
    pub seconds: i64,
    pub subject: String,
}

/// The path and the commit of a file's creation, which identify the article through every rename.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Birth {
    pub path: String,
    pub commit: Oid,
}

/// The change of one file in one commit.
#[derive(Debug)]
pub struct Change {
    /// The index of the commit in the history.
    pub commit: usize,
    /// The index of the article in the history.
    pub article: usize,
    /// The path of the file after the change. For a removed file, the path before the removal.
    pub path: String,
    pub act: Act,
}

/// The kind of a change.
#[derive(Debug)]
pub enum Act {
    /// Sets the content of the file and the slug of its article.
    Write { blob: Oid, slug: String },
    /// Removes the file.
    Remove,
}

/// A difference between two trees. Only regular Markdown files count on either side.
pub(super) struct Step {
    before: Option<String>,
    after: Option<(String, Oid)>,
}

impl Step {
    /// Returns the new path and the old path if the file was renamed.
    pub(super) fn rename(self) -> Option<(String, String)> {
        let (before, (after, _)) = (self.before?, self.after?);
        (before != after).then_some((after, before))
    }
}

/// A file that exists at the current commit.
#[derive(Clone)]
struct Live {
    article: usize,
    slug: String,
}

/// The state of the files at the current commit, and the changes found so far.
#[derive(Default)]
struct Walk {
    live: HashMap<String, Live>,
    /// The creations of the files that exist at the current commit.
    present: HashSet<Birth>,
    slugs: Slugs,
    articles: Vec<Birth>,
    changes: Vec<Change>,
}

impl History {
    /// Reads the history up to HEAD. Returns `None` if the repository has no commit.
    pub fn read(repository: &Repository, note: &dyn Fn(&str)) -> anyhow::Result<Option<Self>> {
        if repository.is_empty()? {
            return Ok(None);
        }
        let ids = first_parents(repository)?;
        let mut walk = Walk::default();
        let mut origins = Origins::new(repository);
        let mut commits = Vec::with_capacity(ids.len());
        for (index, &id) in ids.iter().enumerate() {
            let parent = index.checked_sub(1).and_then(|before| ids.get(before)).copied();
            let at = || format!("commit {id} cannot be read");
            let steps = steps(repository, parent, id, note).with_context(at)?;
            walk.follow(index, id, steps, &mut origins).with_context(at)?;
            commits.push(Commit::read(repository, id)?);
        }
        Ok(Some(Self { commits, articles: walk.articles, changes: walk.changes }))
    }

    /// Returns the changes of all articles whose file had a path that matches `globs` at any time.
    ///
    /// An article is imported with its whole history or not at all. Later imports with other globs therefore produce
    /// the same events.
    pub fn changes_of(&self, globs: &GlobSet) -> Vec<&Change> {
        let matching = self.changes.iter().filter(|change| globs.is_match(&change.path));
        let chosen: HashSet<usize> = matching.map(|change| change.article).collect();
        self.changes.iter().filter(|change| chosen.contains(&change.article)).collect()
    }
}

impl Commit {
    fn read(repository: &Repository, id: Oid) -> anyhow::Result<Self> {
        let commit = repository.find_commit(id)?;
        let subject = String::from_utf8_lossy(commit.summary_bytes().unwrap_or_default()).into_owned();
        Ok(Self { id, seconds: commit.time().seconds(), subject })
    }
}

impl Walk {
    /// Applies one commit. The order is removals, then changes and renames, then new files, so that slugs are released
    /// before they are reused.
    fn follow(
        &mut self,
        commit: usize,
        id: Oid,
        steps: Vec<Step>,
        origins: &mut Origins<'_>,
    ) -> Result<(), git2::Error> {
        let mut rewritten = Vec::new();
        let mut born = Vec::new();
        for Step { before, after } in steps {
            let live = before.and_then(|path| Some((self.live.remove(&path)?, path)));
            match (live, after) {
                (Some((live, path)), None) => {
                    self.slugs.release(&live.slug);
                    if let Some(birth) = self.articles.get(live.article) {
                        self.present.remove(birth);
                    }
                    self.changes.push(Change { commit, article: live.article, path, act: Act::Remove });
                }
                (Some((live, path)), Some(after)) => rewritten.push((live, path, after)),
                (None, Some(after)) => born.push(after),
                (None, None) => {}
            }
        }
        let mut freed: Vec<String> = Vec::new();
        for (live, before, (path, blob)) in rewritten {
            let slug = if before == path { live.slug.clone() } else { self.slugs.take(&path, live.article) };
            if slug != live.slug {
                freed.push(live.slug);
            }
            self.write(commit, live.article, path, blob, slug);
        }
        freed.iter().for_each(|slug| self.slugs.release(slug));
        for (path, blob) in born {
            let article = self.articles.len();
            let origin = origins.of(id, &path)?;
            // If the file that was created there still exists under another path, this file is a copy and gets its own
            // article.
            let birth = match self.present.contains(&origin) {
                true => Birth { path: path.clone(), commit: id },
                false => origin,
            };
            self.present.insert(birth.clone());
            self.articles.push(birth);
            let slug = self.slugs.take(&path, article);
            self.write(commit, article, path, blob, slug);
        }
        Ok(())
    }

    fn write(&mut self, commit: usize, article: usize, path: String, blob: Oid, slug: String) {
        self.live.insert(path.clone(), Live { article, slug: slug.clone() });
        self.changes.push(Change { commit, article, path, act: Act::Write { blob, slug } });
    }
}

/// Returns HEAD and its first parents, oldest first. The history of a shallow clone begins at the oldest commit of the
/// clone.
fn first_parents(repository: &Repository) -> anyhow::Result<Vec<Oid>> {
    let head = repository.head().and_then(|head| head.peel_to_commit()).context("HEAD does not point to a commit")?;
    let mut ids = vec![head.id()];
    let mut next = head.parent_id(0).ok();
    while let Some(id) = next {
        let commit = match repository.find_commit(id) {
            Ok(commit) => commit,
            Err(_) if repository.is_shallow() => break,
            Err(error) => return Err(error).context(format!("commit {id} cannot be read")),
        };
        ids.push(id);
        next = commit.parent_id(0).ok();
    }
    ids.reverse();
    Ok(ids)
}

pub(super) fn steps(
    repository: &Repository,
    parent: Option<Oid>,
    commit: Oid,
    note: &dyn Fn(&str),
) -> Result<Vec<Step>, git2::Error> {
    let before = parent.map(|id| repository.find_commit(id)?.tree()).transpose()?;
    let after = repository.find_commit(commit)?.tree()?;
    let mut options = DiffOptions::new();
    MARKDOWN.iter().for_each(|pattern| {
        options.pathspec(pattern);
    });
    let mut diff = repository.diff_tree_to_tree(before.as_ref(), Some(&after), Some(&mut options))?;
    find_renames(&mut diff)?;
    let touched = diff.deltas().filter(|delta| {
        let (old, new) = (delta.old_file(), delta.new_file());
        delta.status() != Delta::Modified || old.id() != new.id() || old.mode() != new.mode()
    });
    let side = |file: DiffFile<'_>, exists: bool| -> Option<(String, Oid)> {
        let is_regular = matches!(file.mode(), FileMode::Blob | FileMode::BlobExecutable | FileMode::BlobGroupWritable);
        if !exists || !is_regular {
            return None;
        }
        match file.path_bytes().map(std::str::from_utf8) {
            Some(Ok(path)) => Some((path.to_owned(), file.id())),
            _ => {
                note(&format!("warning: a path in commit {commit} is not UTF-8; the file is skipped"));
                None
            }
        }
    };
    let steps = touched.map(|delta| Step {
        before: side(delta.old_file(), delta.status() != Delta::Added).map(|(path, _)| path),
        after: side(delta.new_file(), delta.status() != Delta::Deleted),
    });
    Ok(steps.collect())
}

/// Matches removed files with added files of similar content.
fn find_renames(diff: &mut Diff<'_>) -> Result<(), git2::Error> {
    let has = |status: Delta| diff.deltas().any(|delta| delta.status() == status);
    if has(Delta::Added) && has(Delta::Deleted) {
        // Sets these options explicitly, because libgit2 takes unset options from the user's git configuration.
        let mut options = DiffFindOptions::new();
        options.renames(true).rename_threshold(RENAME_SIMILARITY).rename_limit(RENAME_LIMIT);
        diff.find_similar(Some(&mut options))?;
    }
    Ok(())
}
