//! The sources of Markdown files: the commits of a git repository, or a folder without a repository.

use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use git2::{ErrorCode, Oid, Repository};
use serde::Deserialize;

use super::files::{Files, MAX_FILE_BYTES, TOO_LARGE, read_file, text_of};
use super::history::first_parents;
use super::lfs;

/// A source of files.
pub enum FileSource {
    Git(Repository),
    Folder(PathBuf),
}

/// The data that distinguishes the sources that are imported into one project.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct SourceIdentity {
    /// `git`, or `folder` for a folder without a repository.
    pub kind: String,
    /// The name of the folder.
    pub name: String,
    /// The id of the first commit, or the full path of a folder without a repository. Empty if the repository has no
    /// commit.
    pub root: String,
    /// The address of the remote `origin`, without the user and the password of a URL. Empty if the source has no such
    /// remote.
    pub remote: String,
}

/// The reason why an article gets no text from its file.
#[derive(Debug)]
pub enum TextFault {
    /// The file cannot be an article, or git cannot read the file. The article of the file is deleted.
    Unfit(String),
    /// The file of a folder could not be read. Its article stays, because the file can still exist unchanged.
    Unread(String),
}

impl SourceIdentity {
    /// Returns the text that names the source for the user: the path of a folder, or the remote of a repository. If the
    /// path or the remote is empty, returns the name of the source's folder.
    pub fn shown(&self) -> &str {
        let address = if self.kind == "git" { &self.remote } else { &self.root };
        if address.is_empty() { &self.name } else { address }
    }
}

impl FileSource {
    /// Opens the repository that a folder belongs to.
    pub fn repository(folder: &Path) -> anyhow::Result<Self> {
        let opened = Repository::discover(folder).map_err(|error| match error.code() {
            ErrorCode::NotFound if !folder.exists() => anyhow!("{} does not exist", folder.display()),
            ErrorCode::NotFound => anyhow!("{} is not in a git repository", folder.display()),
            _ => anyhow!("the git repository of {} cannot be read: {}", folder.display(), reason(error.message())),
        });
        opened.map(Self::Git)
    }

    /// Opens a folder.
    pub fn folder(folder: &Path) -> anyhow::Result<Self> {
        let found = folder.canonicalize().with_context(|| format!("{} cannot be opened", folder.display()))?;
        anyhow::ensure!(found.is_dir(), "{} is not a folder", folder.display());
        Ok(Self::Folder(found))
    }

    /// Opens a repository again, which frees the objects that libgit2 keeps in memory.
    pub fn reopen(&mut self) -> anyhow::Result<()> {
        if let Self::Git(repository) = self {
            *repository = Repository::open(repository.path()).with_context(|| {
                format!("the git repository {} cannot be opened again", repository.path().display())
            })?;
        }
        Ok(())
    }

    /// Returns the repository, if the source has one.
    pub fn as_repository(&self) -> Option<&Repository> {
        match self {
            Self::Git(repository) => Some(repository),
            Self::Folder(_) => None,
        }
    }

    /// Returns the identity of the source.
    pub fn identity(&self) -> anyhow::Result<SourceIdentity> {
        let name = self.name();
        let repository = match self {
            Self::Git(repository) => repository,
            Self::Folder(folder) => {
                let root = folder.to_string_lossy().into_owned();
                return Ok(SourceIdentity { kind: "folder".into(), name, root, remote: String::new() });
            }
        };
        let root = first_parents(repository)?.first().map(Oid::to_string).unwrap_or_default();
        let remote = repository.find_remote("origin").ok().and_then(|remote| remote.url().ok().map(without_secret));
        Ok(SourceIdentity { kind: "git".into(), name, root, remote: remote.unwrap_or_default() })
    }

    /// Returns the name of the source's folder, without the ending `.git` that the folder of a bare repository has.
    pub fn name(&self) -> String {
        let folder = match self {
            Self::Git(repository) => repository.workdir().unwrap_or_else(|| repository.path()),
            Self::Folder(folder) => folder,
        };
        let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
        let name = folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        name.strip_suffix(".git").unwrap_or(&name).to_owned()
    }

    /// Returns whether the repository has the commit with this id.
    pub fn has_commit(&self, id: &str) -> bool {
        let Some(repository) = self.as_repository() else { return false };
        Oid::from_str(id).is_ok_and(|id| repository.find_commit(id).is_ok())
    }

    /// Returns the Markdown files of the repository at a commit, or the Markdown files of the folder. A repository has
    /// no files if `commit` is `None`.
    pub fn files(&self, commit: Option<Oid>) -> anyhow::Result<Files> {
        let mut files = Files::default();
        match (self, commit) {
            (Self::Git(repository), Some(commit)) => files.add_tree(repository, commit)?,
            (Self::Git(_), None) => {}
            (Self::Folder(folder), _) => files.add_folder(folder)?,
        }
        Ok(files)
    }

    /// Returns the text of a file, or the reason why the file has no text for an article.
    pub fn text(&self, path: &str, blob: Oid) -> anyhow::Result<Result<String, TextFault>> {
        let unfit = |reason: String| Ok(Err(TextFault::Unfit(reason)));
        let too_large = || unfit(TOO_LARGE.to_owned());
        let bytes = match self {
            Self::Folder(folder) => match read_file(&folder.join(path)) {
                Ok(Some(bytes)) => bytes,
                Ok(None) => return too_large(),
                // The file existed when the folder was listed. The file was removed since, or is being replaced, or the
                // drive fails.
                Err(error) => return Ok(Err(TextFault::Unread(format!("the file cannot be read: {error}")))),
            },
            Self::Git(repository) => {
                let missing = || unfit("the content is not in the clone; a full clone has the content".to_owned());
                match repository.odb()?.read_header(blob) {
                    Ok((size, _)) if size as u64 > MAX_FILE_BYTES => return too_large(),
                    Ok(_) => {}
                    Err(error) if error.code() == ErrorCode::NotFound => return missing(),
                    Err(error) => return unfit(format!("git cannot read the file: {}", error.message())),
                }
                match repository.find_blob(blob) {
                    Ok(blob) => match lfs::content(repository, blob.content()) {
                        Some(Ok(content)) => content,
                        Some(Err(reason)) => return unfit(reason.to_owned()),
                        None => blob.content().to_vec(),
                    },
                    Err(error) => return unfit(format!("git cannot read the file: {}", error.message())),
                }
            }
        };
        Ok(text_of(bytes).map_err(TextFault::Unfit))
    }
}

/// Returns the reason why a repository cannot be opened. If libgit2 does not support the format of the object ids or of
/// the references, the reason contains the remedy.
fn reason(message: &str) -> String {
    if message.contains("object format") {
        return "its object ids are SHA-256, and only SHA-1 is supported; import a copy of its history in a repository \
                with SHA-1, or its files with `foldwork import folder`"
            .to_owned();
    }
    if message.contains("extensions.refstorage") {
        return "its references are in the format reftable, which is not supported; convert them with `git refs migrate \
                --ref-format=files`"
            .to_owned();
    }
    message.to_owned()
}

fn without_secret(remote: &str) -> String {
    match remote.split_once("://").and_then(|(scheme, rest)| Some((scheme, rest.split_once('@')?))) {
        Some((scheme, (user, rest))) if !user.contains('/') => format!("{scheme}://{rest}"),
        _ => remote.to_owned(),
    }
}
