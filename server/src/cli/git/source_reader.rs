//! Reads the commits of an import, and compares the project with HEAD at the end.

use std::collections::{BTreeSet, HashSet};
use std::path::PathBuf;

use anyhow::Context;
use git2::{ErrorCode, Oid};
use globset::GlobSet;
use jiff::Timestamp;

use super::events::EventMoment;
use super::history::{Birth, Commit, first_parents, steps};
use super::origin::Origins;
use super::outbox::{ImportBatch, ImportProgress, Outbox};
use super::report::ImportWarnings;
use super::source::FileSource;
use super::walk::{HistoryWalk, ProjectArticles};
use crate::cli::progress::ProgressIndicator;

/// The number of commits after which the repository is opened again. Until then, libgit2 keeps in memory all objects
/// that were read.
const COMMITS_AT_ONCE: usize = 2_000;

/// The kind of a source, with the folder to open.
#[derive(Clone, Debug)]
pub enum SourcePlace {
    /// A folder in a git repository.
    Git(PathBuf),
    /// A folder of files.
    Folder(PathBuf),
}

/// A reader that converts the changes of a source to batches of events.
pub struct SourceReader {
    pub place: SourcePlace,
    pub project: String,
    pub held: ProjectArticles,
    pub progress: ImportProgress,
    pub globs: GlobSet,
    /// Whether the import selects every file. The import does so if the user gave no globs.
    pub is_everything: bool,
    /// Whether the project is only compared with HEAD.
    pub only_compare: bool,
    /// The files that were already reported as left out.
    pub reported: HashSet<String>,
    pub now: Timestamp,
}

/// The outcome of reading a source.
#[derive(Debug, Default)]
pub struct Summary {
    /// The number of articles at HEAD or in the folder.
    pub articles: usize,
    /// The paths at HEAD or in the imported folder whose files or folders could not be imported. A file that could not
    /// be read may still have an article.
    pub missing: BTreeSet<String>,
    /// The files that were reported as left out.
    pub reported: HashSet<String>,
    /// The number of events added because the articles of the project differed from HEAD or from the folder.
    pub reconciled: u64,
    /// Whether a file of a folder was read when the folder was listed, but could not be read again for its text. Always
    /// `false` for a git repository.
    pub has_unread: bool,
}

/// The commits whose changes bring a project from its current state to the state of HEAD.
#[derive(Debug, Default, PartialEq, Eq)]
struct CommitRoute {
    /// The commit with which the project is compared first. Set only if an earlier import may have ended before all
    /// events of a commit were appended, and the first parents of HEAD contain that commit or the last imported commit.
    partial: Option<Oid>,
    /// The commits to follow one by one. Each item is the previous commit, if any, and the commit to follow.
    commits: Vec<(Option<Oid>, Oid)>,
    /// Whether `commits` consists of a single step from the last imported commit to HEAD. The route is such a step if
    /// the last imported commit is no longer among the first parents of HEAD, but is still in the repository.
    is_one_step: bool,
}

/// Assigns times to events. No commit gets an earlier time than the previous commit, even if the clocks of the
/// committers differ. A time in the future is replaced by the time of the import.
struct Times {
    last: Option<Timestamp>,
    now: Timestamp,
}

impl SourcePlace {
    pub fn open(&self) -> anyhow::Result<FileSource> {
        match self {
            Self::Git(folder) => FileSource::repository(folder),
            Self::Folder(folder) => FileSource::folder(folder),
        }
    }
}

impl SourceReader {
    /// Reads the source and passes the batches to `put`.
    pub fn run(
        mut self,
        progress: &ProgressIndicator,
        put: &mut dyn FnMut(ImportBatch) -> anyhow::Result<()>,
    ) -> anyhow::Result<Summary> {
        let note = |text: &str| progress.note(text);
        let source = self.place.open()?;
        let line = source.as_repository().map(first_parents).transpose()?.unwrap_or_default();
        let route = self.route(&source, &line);
        progress.set_total(route.commits.len() as u64);
        let chosen = self.chosen(&route)?;
        let held = std::mem::take(&mut self.held);
        let mut report = ImportWarnings::new(&note);
        report.left_out = std::mem::take(&mut self.reported);
        let mut walk = HistoryWalk::new(source, held, &self.globs, chosen, report);
        let mut outbox = Outbox::new(&self.project, self.progress.clone(), put);
        let mut times = Times { last: self.progress.at, now: self.now };
        if let Some(commit) = route.partial {
            self.compare(&mut walk, Some(commit), &mut times, &mut outbox)?;
        }
        self.follow(&mut walk, &route, &mut times, &mut outbox)?;
        let before = outbox.pushed;
        self.compare(&mut walk, line.last().copied(), &mut times, &mut outbox)?;
        let reconciled = outbox.pushed - before;
        outbox.finish(&self.progress)?;
        let articles = walk.articles();
        let ImportWarnings { missing, left_out, has_unread, .. } = walk.report;
        Ok(Summary { articles, missing, reported: left_out, reconciled, has_unread })
    }

    /// Returns the commits to follow. `line` contains the first-parent history of HEAD, oldest first.
    fn route(&self, source: &FileSource, line: &[Oid]) -> CommitRoute {
        let commit = |id: &str| Oid::from_str(id).ok();
        let (base, towards) = (commit(&self.progress.commit), commit(&self.progress.towards));
        let Some(&head) = line.last().filter(|_| !self.only_compare) else { return CommitRoute::default() };
        let after = |place: usize| -> Vec<(Option<Oid>, Oid)> {
            let next = line.get(place + 1..).unwrap_or_default();
            line.get(place..).unwrap_or_default().iter().copied().map(Some).zip(next.iter().copied()).collect()
        };
        let place = |commit: Option<Oid>| line.iter().position(|id| Some(*id) == commit);
        if let Some(place) = place(towards) {
            return CommitRoute { partial: towards, commits: after(place), is_one_step: false };
        }
        if let Some(place) = place(base) {
            // The comparison with the base first reverts the changes of a commit that is no longer part of the history.
            let partial = base.filter(|_| towards.is_some());
            return CommitRoute { partial, commits: after(place), is_one_step: false };
        }
        let is_known = |commit: &Oid| source.has_commit(&commit.to_string());
        match base.or(towards) {
            Some(base) if is_known(&base) => {
                CommitRoute { partial: None, commits: vec![(Some(base), head)], is_one_step: true }
            }
            Some(_) => CommitRoute::default(),
            None if !self.held.articles.is_empty() => CommitRoute::default(),
            None => {
                let before = std::iter::once(None).chain(line.iter().copied().map(Some));
                CommitRoute { commits: before.zip(line.iter().copied()).collect(), ..CommitRoute::default() }
            }
        }
    }

    /// Returns the ids of the articles whose files match the globs at any commit of the route. An article is imported
    /// with all its changes on the route, or not at all.
    ///
    /// If the user gave no globs, every article is imported, and the set is empty.
    fn chosen(&self, route: &CommitRoute) -> anyhow::Result<HashSet<String>> {
        if self.is_everything {
            return Ok(HashSet::new());
        }
        let quiet = |_: &str| {};
        let source = self.place.open()?;
        let mut walk =
            HistoryWalk::new(source, self.held.clone(), &self.globs, HashSet::new(), ImportWarnings::new(&quiet));
        let mut times = Times { last: None, now: self.now };
        self.follow(&mut walk, route, &mut times, &mut Outbox::default())?;
        Ok(walk.chosen)
    }

    fn follow(
        &self,
        walk: &mut HistoryWalk<'_>,
        route: &CommitRoute,
        times: &mut Times,
        outbox: &mut Outbox<'_>,
    ) -> anyhow::Result<()> {
        let mut origins = Origins::default();
        for (index, &(before, id)) in route.commits.iter().enumerate() {
            if index > 0 && index.is_multiple_of(COMMITS_AT_ONCE) {
                walk.source.reopen()?;
                origins = Origins::default();
            }
            let Some(repository) = walk.source.as_repository() else { return Ok(()) };
            let moment = times.moment(Commit::read(repository, id)?, route.is_one_step);
            let steps = match steps(repository, before, id) {
                // The comparison with HEAD, which comes next, needs no earlier commit.
                Err(error) if error.code() == ErrorCode::NotFound => {
                    let reason = "the clone lacks folders of this commit or of its parent";
                    let effect = "the changes up to HEAD are imported as one step";
                    (walk.report.note)(&format!("warning: commit {id}: {reason}; {effect}"));
                    return Ok(());
                }
                steps => steps.with_context(|| format!("commit {id} cannot be read"))?,
            };
            let origin = |source: &FileSource, path: &str| {
                let own = || Birth { path: path.to_owned(), commit: id };
                match source.as_repository().filter(|_| !route.is_one_step) {
                    // If the origin cannot be found, the article begins with this commit.
                    Some(repository) => Ok(origins.of(repository, id, path).unwrap_or_else(|_| own())),
                    None => Ok(own()),
                }
            };
            outbox.begin(moment);
            walk.follow(steps, origin, outbox)?;
            outbox.end();
        }
        Ok(())
    }

    /// Adds the events that make the project match the files at `commit` or, without a commit, the files in the folder.
    fn compare(
        &self,
        walk: &mut HistoryWalk<'_>,
        commit: Option<Oid>,
        times: &mut Times,
        outbox: &mut Outbox<'_>,
    ) -> anyhow::Result<()> {
        let files = walk.source.files(commit)?;
        walk.report.missing.clear();
        let read = |id: Oid| walk.source.as_repository().map(|repository| Commit::read(repository, id)).transpose();
        let Some(commit) = commit.map(read).transpose()?.flatten() else {
            return walk.compare(files, outbox);
        };
        outbox.begin(times.moment(commit, true));
        walk.compare(files, outbox)?;
        outbox.end();
        Ok(())
    }
}

impl Times {
    fn moment(&mut self, commit: Commit, reconciled: bool) -> EventMoment {
        let time = commit.time.map(|time| time.min(self.now));
        self.last = time.max(self.last);
        EventMoment { commit: Some(commit), at: self.last, reconciled }
    }
}
