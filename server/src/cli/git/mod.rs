//! Imports the Markdown history of a git repository. Each file becomes an article, and each commit that changes the
//! file becomes an event.

mod article;
mod events;
mod history;
mod origin;
mod slug;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};

use git2::{ErrorCode, Repository};
use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use reqwest::StatusCode;

use self::events::Writer;
use self::history::History;
use super::client::{CallError, Client};
use super::progress::Progress;
use super::sender::{Outlet, Tally, deliver};

/// The Markdown history of a git repository, from the first commit to HEAD along first parents.
#[derive(clap::Args, Debug)]
pub struct Arguments {
    /// A folder in the repository.
    pub repo: PathBuf,
    /// Only files that were ever at a matching path, such as `docs/**`; the default is every Markdown file.
    #[arg(long = "path", value_name = "GLOB")]
    pub paths: Vec<String>,
    /// The slug of the project for the articles; the default is the name of the repository's folder.
    #[arg(long, value_name = "SLUG")]
    pub project: Option<String>,
}

/// Imports a repository's history. Events that the server already has are not appended again.
pub async fn import(client: &Client, progress: &Progress, arguments: Arguments) -> anyhow::Result<Tally> {
    let globs = glob_set(&arguments.paths)?;
    progress.say("reading the history");
    let bar = progress.clone();
    deliver(client, progress, move |outlet| {
        let repository = open(&arguments.repo)?;
        let project = arguments.project.unwrap_or_else(|| project_slug(&repository));
        write_events(&repository, &globs, &project, &bar, outlet)
    })
    .await
    .map_err(explain)
}

/// Opens the repository that a folder belongs to.
pub fn open(folder: &Path) -> anyhow::Result<Repository> {
    Repository::discover(folder).map_err(|error| match error.code() {
        ErrorCode::NotFound if !folder.exists() => anyhow!("{} does not exist", folder.display()),
        ErrorCode::NotFound => anyhow!("{} is not in a git repository", folder.display()),
        _ => anyhow!("the git repository of {} cannot be read: {}", folder.display(), error.message()),
    })
}

/// Returns the default slug of the project for a repository's articles: the name of its folder.
pub fn project_slug(repository: &Repository) -> String {
    let folder = repository.workdir().unwrap_or_else(|| repository.path());
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    let name = folder.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    match slug::slugify(name.strip_suffix(".git").unwrap_or(&name)) {
        slug if slug.is_empty() => "repository".to_owned(),
        slug => slug,
    }
}

/// Adds a likely cause to a conflict error: the articles were imported into another project, or an imported event would
/// change.
fn explain(error: anyhow::Error) -> anyhow::Error {
    let code = error.chain().find_map(|cause| match cause.downcast_ref::<CallError>()? {
        CallError::Refused(refusal) if refusal.status == StatusCode::CONFLICT => refusal.body.get("code")?.as_str(),
        _ => None,
    });
    let hint = match code {
        Some("project_mismatch") => {
            Some("this history was imported before into another project: set --project to that one")
        }
        Some("event_id_conflict") => {
            Some("this history was imported before by a version of this program that read the file differently")
        }
        _ => None,
    };
    match hint {
        Some(hint) => error.context(hint),
        None => error,
    }
}

fn write_events(
    repository: &Repository,
    globs: &GlobSet,
    project: &str,
    progress: &Progress,
    outlet: &mut Outlet,
) -> anyhow::Result<()> {
    let note = |text: &str| progress.note(text);
    if repository.is_shallow() {
        note("warning: the clone is shallow; articles begin at its oldest commit, and a full clone gives other ids");
    }
    let Some(history) = History::read(repository, &note)? else { return Ok(()) };
    let changes = history.changes_of(globs);
    progress.set_total(changes.len() as u64);
    let mut writer = Writer::new(repository, &history, project);
    for (read, change) in (1..).zip(changes) {
        writer.write(change, &note, |event, place| outlet.push(event, place, read))?;
    }
    Ok(())
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
