//! The history of a repository's Markdown files: which commit touched which, with files followed through renames.

use std::collections::{HashMap, HashSet};

use anyhow::Context;
use git2::{Delta, Diff, DiffFile, DiffFindOptions, DiffOptions, FileMode, Oid, Repository};
use globset::GlobSet;

use super::slug::Slugs;

/// What a path must look like to hold Markdown, as git matches paths.
const MARKDOWN: [&str; 2] = ["*.[mM][dD]", "*.[mM][aA][rR][kK][dD][oO][wW][nN]"];

/// How much of a file's lines, in percent, is left after a rename. With another share, a later import would take a renamed
/// file for a new article.
const RENAME_SIMILARITY: u16 = 50;
/// Files of one commit that are compared with each other to find renames; of more than that, only those with the same content.
const RENAME_LIMIT: usize = 1_000;

/// The first-parent history of HEAD, oldest first.
#[derive(Debug)]
pub struct History {
    pub commits: Vec<Commit>,
    pub articles: Vec<Birth>,
    pub changes: Vec<Change>,
}

/// A commit that touched Markdown or not.
#[derive(Debug)]
pub struct Commit {
    pub id: Oid,
    pub seconds: i64,
    pub subject: String,
}

/// Where and when a file came into being; it stays the same article through every rename.
#[derive(Debug)]
pub struct Birth {
    pub path: String,
    pub commit: Oid,
}

/// One file's change in one commit.
#[derive(Debug)]
pub struct Change {
    /// Index of the commit in the history.
    pub commit: usize,
    /// Index of the article in the history.
    pub article: usize,
    /// The file's path after the change, or before it is removed.
    pub path: String,
    pub act: Act,
}

/// What a change does.
#[derive(Debug)]
pub enum Act {
    /// The file has this content from now on, and its article this slug.
    Write { blob: Oid, slug: String },
    /// The file is gone.
    Remove,
}

/// A delta of two trees, reduced to the regular Markdown files on either side.
struct Step {
    before: Option<String>,
    after: Option<(String, Oid)>,
}

/// A file that exists at the commit being read.
#[derive(Clone)]
struct Live {
    article: usize,
    slug: String,
}

/// What is known while the history is read.
#[derive(Default)]
struct Walk {
    live: HashMap<String, Live>,
    slugs: Slugs,
    articles: Vec<Birth>,
    changes: Vec<Change>,
}

impl History {
    /// Reads the history up to HEAD; nothing if there is no commit yet.
    pub fn read(repository: &Repository, note: &dyn Fn(&str)) -> anyhow::Result<Option<Self>> {
        if repository.is_empty()? {
            return Ok(None);
        }
        let ids = first_parents(repository)?;
        let mut walk = Walk::default();
        let mut commits = Vec::with_capacity(ids.len());
        for (index, &id) in ids.iter().enumerate() {
            let parent = index.checked_sub(1).and_then(|before| ids.get(before)).copied();
            let steps = steps(repository, parent, id, note).with_context(|| format!("commit {id} cannot be read"))?;
            walk.follow(index, id, steps);
            commits.push(Commit::read(repository, id)?);
        }
        Ok(Some(Self { commits, articles: walk.articles, changes: walk.changes }))
    }

    /// Returns the changes of the articles that were ever at a path of these globs.
    ///
    /// An article comes with its whole history or not at all, so that other globs later give the same events.
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
    /// Takes in one commit: removals, then changes and renames, then new files: a slug is free before it is taken.
    fn follow(&mut self, commit: usize, id: Oid, steps: Vec<Step>) {
        let mut rewritten = Vec::new();
        let mut born = Vec::new();
        for Step { before, after } in steps {
            let live = before.and_then(|path| Some((self.live.remove(&path)?, path)));
            match (live, after) {
                (Some((live, path)), None) => {
                    self.slugs.release(&live.slug);
                    self.changes.push(Change { commit, article: live.article, path, act: Act::Remove });
                }
                (Some((live, path)), Some(after)) => rewritten.push((live, path, after)),
                (None, Some(after)) => born.push(after),
                (None, None) => {}
            }
        }
        let mut left: Vec<String> = Vec::new();
        for (live, before, (path, blob)) in rewritten {
            let slug = if before == path { live.slug.clone() } else { self.slugs.take(&path, live.article) };
            if slug != live.slug {
                left.push(live.slug);
            }
            self.write(commit, live.article, path, blob, slug);
        }
        left.iter().for_each(|slug| self.slugs.release(slug));
        for (path, blob) in born {
            let article = self.articles.len();
            self.articles.push(Birth { path: path.clone(), commit: id });
            let slug = self.slugs.take(&path, article);
            self.write(commit, article, path, blob, slug);
        }
    }

    fn write(&mut self, commit: usize, article: usize, path: String, blob: Oid, slug: String) {
        self.live.insert(path.clone(), Live { article, slug: slug.clone() });
        self.changes.push(Change { commit, article, path, act: Act::Write { blob, slug } });
    }
}

/// Returns HEAD and its first parents, oldest first; a shallow clone ends where it was cut.
fn first_parents(repository: &Repository) -> anyhow::Result<Vec<Oid>> {
    let head = repository.head().and_then(|head| head.peel_to_commit()).context("HEAD names no commit")?;
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

fn steps(
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
                note(&format!("warning: a path in commit {commit} is not UTF-8; the file is left out"));
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

/// Joins what was removed with what was added where the texts are alike.
fn find_renames(diff: &mut Diff<'_>) -> Result<(), git2::Error> {
    let has = |status: Delta| diff.deltas().any(|delta| delta.status() == status);
    if has(Delta::Added) && has(Delta::Deleted) {
        // What is not said here comes from the git settings of whoever runs the import.
        let mut options = DiffFindOptions::new();
        options.renames(true).rename_threshold(RENAME_SIMILARITY).rename_limit(RENAME_LIMIT);
        diff.find_similar(Some(&mut options))?;
    }
    Ok(())
}
