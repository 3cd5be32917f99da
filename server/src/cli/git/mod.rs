//! Imports Markdown files: the history of a git repository, or the files of a folder. Each file becomes an article.
//!
//! An import is a reconciliation. A record in the log contains the commit that was imported last. The import follows
//! the first parents from that commit to HEAD, and appends the changes of each commit as events of the changed
//! articles. If that commit is not among the first parents of HEAD, a single step brings the project to the state of
//! HEAD. At the end, the import compares the articles with HEAD, and appends events for the differences.

mod article;
#[cfg(test)]
mod continuation_tests;
mod date;
mod events;
mod files;
#[cfg(test)]
mod folder_tests;
mod front_matter;
#[cfg(test)]
mod histories;
mod history;
mod lfs;
#[cfg(test)]
mod local_server;
#[cfg(test)]
mod model_project;
mod origin;
mod outbox;
mod overlap;
mod project_state;
mod publishing;
mod record;
mod report;
mod sending;
mod slug;
mod source;
mod source_reader;
mod state;
#[cfg(test)]
mod tests;
mod title;
mod walk;
mod watch;

use std::collections::HashSet;
use std::fmt;
use std::process::ExitCode;
use std::thread;

use anyhow::{Context, anyhow};
use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use jiff::Timestamp;
use tokio::sync::mpsc;

use self::project_state::{ProjectState, WorkspaceReader};
use self::sending::{BatchSender, ImportConflict};
use self::source::FileSource;
pub use self::source_reader::SourcePlace;
use self::source_reader::{SourceReader, Summary};
pub use self::watch::watch;
use super::client::Client;
use super::output::counted;
use super::progress::ProgressIndicator;

/// The maximum number of batches that are buffered while a request is in flight.
const QUEUE_CAPACITY: usize = 2;
/// The maximum number of attempts of an import. An import begins again if another import changes the project at the
/// same time.
const MAX_STARTS: usize = 3;
/// The exit code with `--strict` if a file is left out.
const LEFT_OUT: u8 = 2;

/// The options of an import.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct Options {
    /// Imports only files that have or had a path that matches this glob, such as `docs/**`; the default is every
    /// Markdown file.
    #[arg(long = "path", value_name = "GLOB")]
    pub paths: Vec<String>,
    /// The slug of the project for the articles; the default is derived from the name of the folder.
    #[arg(long, value_name = "SLUG")]
    pub project: Option<String>,
    /// Exits with 2 if a file or folder is left out.
    #[arg(long)]
    pub strict: bool,
    /// Publishes the articles whose front matter has `draft: false`, `published: true` or `publish: true`, and
    /// unpublishes the articles whose front matter has the opposite value.
    #[arg(long)]
    pub publish: bool,
    /// Imports again whenever HEAD or the files change, until the command is stopped.
    #[arg(long)]
    pub watch: bool,
    /// Imports a folder even if it lacks the files of its last import, and removes the articles of these files.
    #[arg(long, conflicts_with = "watch")]
    pub replace: bool,
}

/// The outcome of an import.
#[derive(Debug, Default)]
pub struct Outcome {
    /// The slug of the project. Empty if the repository has no commits.
    pub project: String,
    /// The number of events that were appended.
    pub appended: u64,
    /// The number of articles at HEAD or in the folder.
    pub articles: usize,
    /// The number of files and folders that were not imported: files that cannot be an article, folders that are not
    /// searched (except hidden folders), files and folders that cannot be read, and files with an event that the server
    /// rejected. If a file of a folder cannot be read, its article stays unchanged. If git cannot read a file, its
    /// article is deleted.
    pub missing: usize,
    /// Whether a file of a folder was read when the folder was listed, but could not be read again for its text. Always
    /// `false` for a git repository.
    pub has_unread: bool,
}

/// Brings a project to the state of a source's files. If `options.publish` is set, also publishes and unpublishes the
/// articles of the project according to their front matter.
pub async fn import(
    client: &Client,
    progress: &ProgressIndicator,
    place: &SourcePlace,
    options: &Options,
) -> anyhow::Result<Outcome> {
    let globs = glob_set(&options.paths)?;
    let outcome = Import { client, progress, place, options, globs: &globs }.reconcile().await?;
    if options.publish {
        publishing::publish(client, progress, &outcome.project).await?;
    }
    Ok(outcome)
}

/// Returns the default slug of the project for a source: the slug of its folder's name, or `repository` if that slug is
/// empty.
pub fn project_slug(source: &FileSource) -> String {
    Some(slug::slugify(&source.name())).filter(|slug| !slug.is_empty()).unwrap_or_else(|| "repository".to_owned())
}

/// The parameters of an import.
struct Import<'a> {
    client: &'a Client,
    progress: &'a ProgressIndicator,
    place: &'a SourcePlace,
    options: &'a Options,
    globs: &'a GlobSet,
}

impl Import<'_> {
    /// Brings a project to the state of the source's files. Makes up to [`MAX_STARTS`] attempts, because another import
    /// may change the project at the same time.
    async fn reconcile(&self) -> anyhow::Result<Outcome> {
        let mut version = None;
        for _ in 1..MAX_STARTS {
            let done = self.run(version).await;
            match done.as_ref().err().and_then(|error| error.downcast_ref::<ImportConflict>()) {
                Some(conflict) => version = Some(conflict.current_version),
                None => return done,
            }
        }
        self.run(version).await
    }

    /// Imports the source. `version` is the version of the import's record that the conflict of the previous attempt
    /// reported. This version is used only if the server does not list the record, because the record was deleted.
    async fn run(&self, version: Option<u64>) -> anyhow::Result<Outcome> {
        self.progress.show_activity("reading the history");
        let source = self.place.open()?;
        if let Some(repository) = source.as_repository()
            && history::head(repository)?.is_none()
        {
            self.progress.note("warning: the repository has no commits, so nothing is imported");
            return Ok(Outcome::default());
        }
        self.warn_of_clone(&source);
        let mut loaded = self.load(&source, self.options.project.as_deref()).await?;
        if let Some(version) = version.filter(|_| !loaded.record.exists) {
            (loaded.record.version, loaded.held.salt) = (version, version);
        }
        if !self.options.replace {
            overlap::check(&source, &loaded)?;
        }
        let mut sender = self.sender(&loaded);
        sender.record_path().await?;
        let first = self.pass(loaded, &mut sender, false).await?;
        if sender.refused.is_empty() {
            return Ok(self.outcome(&sender, &first));
        }
        // Compares the articles on the server with HEAD again, because the later events of an article with a rejected
        // event were not sent.
        sender.broken.clear();
        sender.refused.clear();
        sender.reported.extend(first.reported);
        let loaded = self.load(&source, Some(&sender.project)).await?;
        sender.record = loaded.record.clone();
        let last = self.pass(loaded, &mut sender, true).await?;
        Ok(self.outcome(&sender, &last))
    }

    async fn load(&self, source: &FileSource, project: Option<&str>) -> anyhow::Result<ProjectState> {
        let (identity, note) = (source.identity()?, |text: &str| self.progress.note(text));
        let knows = |commit: &str| source.has_commit(commit);
        let reader = WorkspaceReader { client: self.client, note: &note, source: &identity, knows: &knows };
        reader.load(project, &project_slug(source)).await
    }

    fn sender(&self, loaded: &ProjectState) -> BatchSender<'_> {
        let ProjectState { project, record, is_type_defined, .. } = loaded;
        BatchSender {
            client: self.client,
            progress: self.progress,
            project: project.clone(),
            record: record.clone(),
            is_type_defined: *is_type_defined,
            has_project: false,
            appended: 0,
            broken: HashSet::new(),
            refused: HashSet::new(),
            reported: HashSet::new(),
        }
    }

    /// Reads the source in a separate thread, and sends the events while the thread reads.
    async fn pass(
        &self,
        loaded: ProjectState,
        sender: &mut BatchSender<'_>,
        only_compare: bool,
    ) -> anyhow::Result<Summary> {
        let reading = SourceReader {
            place: self.place.clone(),
            project: loaded.project,
            held: loaded.held,
            progress: loaded.record.progress,
            globs: self.globs.clone(),
            is_everything: self.options.paths.is_empty(),
            only_compare,
            reported: sender.reported.clone(),
            now: Timestamp::now(),
        };
        let (full, mut batches) = mpsc::channel(QUEUE_CAPACITY);
        let bar = self.progress.clone();
        let reader = thread::Builder::new().name("import".to_owned()).spawn(move || {
            reading.run(&bar, &mut |batch| full.blocking_send(batch).map_err(|_| anyhow!("the sender has stopped")))
        })?;
        let mut sent = Ok(());
        while let Some(batch) = batches.recv().await {
            sent = sender.send(batch).await;
            if sent.is_err() {
                break;
            }
        }
        drop(batches);
        let read = reader.join().unwrap_or_else(|_| Err(anyhow!("the thread that reads the source panicked")));
        sent.and(read)
    }

    fn outcome(&self, sender: &BatchSender<'_>, summary: &Summary) -> Outcome {
        if summary.reconciled > 0 && matches!(self.place, SourcePlace::Git(_)) {
            let events = counted(summary.reconciled, "event");
            self.progress.note(&format!("added {events} to articles that differed from HEAD"));
        }
        let missing: HashSet<&String> = summary.missing.iter().chain(&sender.refused).collect();
        let missing = missing.len();
        if missing > 0 {
            let files = counted(missing as u64, "file");
            self.progress.note(&format!("warning: project `{}` lacks {files}", sender.project));
        }
        let (project, appended) = (sender.project.clone(), sender.appended);
        let articles = summary.articles.saturating_sub(sender.refused.len());
        Outcome { project, appended, articles, missing, has_unread: summary.has_unread }
    }

    fn warn_of_clone(&self, source: &FileSource) {
        let Some(repository) = source.as_repository() else { return };
        if repository.is_shallow() {
            self.progress.note(
                "warning: the clone is shallow; articles begin at its oldest commit, and an import of a full clone \
                 gives the articles other ids",
            );
        }
        let promises = repository.config().and_then(|config| config.get_bool("remote.origin.promisor"));
        if promises.unwrap_or(false) {
            self.progress.note(
                "warning: the clone is partial; files without content in the clone are left out; `git fetch \
                 --refetch --no-filter` fetches the content",
            );
        }
    }
}

impl Outcome {
    /// Returns the exit code of the command.
    pub fn exit_code(&self, options: &Options) -> ExitCode {
        if options.strict && self.missing > 0 { ExitCode::from(LEFT_OUT) } else { ExitCode::SUCCESS }
    }

    /// Returns the line that sums up the import. `time` is the duration of the import.
    pub fn summary(&self, time: impl fmt::Display) -> String {
        match self.project.as_str() {
            "" => format!("imported {self} in {time}"),
            project => format!("imported {self} into project `{project}` in {time}"),
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { appended, articles, missing, .. } = self;
        write!(f, "{} ({}", counted(*appended, "event"), counted(*articles as u64, "article"))?;
        match missing {
            0 => f.write_str(")"),
            missing => write!(f, ", {} missing)", counted(*missing as u64, "file")),
        }
    }
}

/// Returns the set of globs for `paths`. A plain folder matches all files in the folder. An empty list matches every
/// file.
fn glob_set(paths: &[String]) -> anyhow::Result<GlobSet> {
    let everything = ["**".to_owned()];
    let paths = if paths.is_empty() { everything.as_slice() } else { paths };
    let mut globs = GlobSetBuilder::new();
    for path in paths {
        let path = path.trim_start_matches("./").trim_end_matches('/');
        for glob in [path.to_owned(), format!("{path}/**")] {
            let glob = GlobBuilder::new(&glob).literal_separator(true).build();
            globs.add(glob.with_context(|| format!("--path {path} is not a valid glob"))?);
        }
    }
    globs.build().context("the globs of --path cannot be combined")
}
