//! The sources of Markdown files: the commits of a git repository, or a folder without a repository.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use git2::{ErrorCode, ObjectType, Oid, Repository};

use super::history::{first_parents, is_markdown, is_regular};

/// The maximum size in bytes of a file that is imported as an article.
const MAX_FILE_BYTES: u64 = 512 * 1024;
/// The maximum depth of the folders that are searched for files.
const MAX_DEPTH: usize = 64;

/// A source of files.
pub enum FileSource {
    Git(Repository),
    Folder(PathBuf),
}

/// The data that distinguishes the sources that are imported into one project.
#[derive(Clone, Debug, Default)]
pub struct SourceIdentity {
    pub kind: &'static str,
    /// The name of the folder.
    pub name: String,
    /// The id of the first commit, or the empty string.
    pub root: String,
    /// The address of the remote `origin` without a user and a password, or the empty string.
    pub remote: String,
}

/// The Markdown files of a source, each with the git id of its content.
#[derive(Debug, Default)]
pub struct Files {
    pub blobs: BTreeMap<String, Oid>,
    /// The files that cannot be imported because of their paths, with the reason.
    pub unnamed: Vec<(String, String)>,
}

impl FileSource {
    /// Opens the repository that a folder belongs to.
    pub fn repository(folder: &Path) -> anyhow::Result<Self> {
        let opened = Repository::discover(folder).map_err(|error| match error.code() {
            ErrorCode::NotFound if !folder.exists() => anyhow!("{} does not exist", folder.display()),
            ErrorCode::NotFound => anyhow!("{} is not in a git repository", folder.display()),
            _ => anyhow!("the git repository of {} cannot be read: {}", folder.display(), error.message()),
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
            *repository = Repository::open(repository.path()).context("the git repository cannot be opened again")?;
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
        let Self::Git(repository) = self else {
            return Ok(SourceIdentity { kind: "folder", name, ..SourceIdentity::default() });
        };
        let root = first_parents(repository)?.first().map(Oid::to_string).unwrap_or_default();
        let remote = repository.find_remote("origin").ok().and_then(|remote| remote.url().ok().map(str::to_owned));
        Ok(SourceIdentity { kind: "git", name, root, remote: without_secret(remote.as_deref().unwrap_or_default()) })
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

    /// Returns the Markdown files of the repository at a commit, or the Markdown files of the folder.
    pub fn files(&self, commit: Option<Oid>) -> anyhow::Result<Files> {
        let mut files = Files::default();
        match (self, commit) {
            (Self::Git(repository), Some(commit)) => files.add_tree(repository, commit)?,
            (Self::Git(_), None) => {}
            (Self::Folder(folder), _) => files.add_folder(folder, "", 0)?,
        }
        Ok(files)
    }

    /// Returns the text of a file, or the reason why the file cannot be an article.
    pub fn text(&self, path: &str, blob: Oid) -> anyhow::Result<Result<String, String>> {
        let too_large = || Ok(Err("it is larger than 512 KiB".to_owned()));
        let bytes = match self {
            Self::Folder(folder) => match read_file(&folder.join(path)) {
                Ok(Some(bytes)) => bytes,
                Ok(None) => return too_large(),
                Err(error) => return Ok(Err(error.to_string())),
            },
            Self::Git(repository) => {
                let missing = || Ok(Err("the clone does not have its content, but a full clone does".to_owned()));
                match repository.odb()?.read_header(blob) {
                    Ok((size, _)) if size as u64 > MAX_FILE_BYTES => return too_large(),
                    Ok(_) => {}
                    Err(error) if error.code() == ErrorCode::NotFound => return missing(),
                    Err(error) => return Ok(Err(format!("git cannot read it: {}", error.message()))),
                }
                match repository.find_blob(blob) {
                    Ok(blob) => blob.content().to_vec(),
                    Err(error) => return Ok(Err(format!("git cannot read it: {}", error.message()))),
                }
            }
        };
        Ok(match String::from_utf8(bytes) {
            Ok(text) if !text.contains('\0') => Ok(text),
            _ => Err("it is not UTF-8 text".to_owned()),
        })
    }
}

impl Files {
    fn add_tree(&mut self, repository: &Repository, commit: Oid) -> anyhow::Result<()> {
        let mut folders = vec![(Vec::new(), repository.find_commit(commit)?.tree_id())];
        while let Some((below, tree)) = folders.pop() {
            let tree =
                repository.find_tree(tree).with_context(|| format!("a tree of commit {commit} cannot be read"))?;
            for entry in &tree {
                let path = [&below[..], entry.name_bytes()].concat();
                match entry.kind() {
                    Some(ObjectType::Tree) => folders.push(([&path[..], b"/"].concat(), entry.id())),
                    Some(ObjectType::Blob) if is_regular(entry.filemode()) => self.add_blob(path, entry.id()),
                    _ => {}
                }
            }
        }
        Ok(())
    }

    fn add_blob(&mut self, path: Vec<u8>, blob: Oid) {
        match String::from_utf8(path) {
            Ok(path) if is_markdown(&path) => drop(self.blobs.insert(path, blob)),
            Ok(_) => {}
            Err(error) => {
                let path = String::from_utf8_lossy(error.as_bytes()).into_owned();
                if is_markdown(&path) {
                    self.unnamed.push((path, "its path is not UTF-8".to_owned()));
                }
            }
        }
    }

    /// Adds the files below a folder. Skips hidden folders, such as `.obsidian`, which have no notes.
    fn add_folder(&mut self, root: &Path, below: &str, depth: usize) -> anyhow::Result<()> {
        let folder = root.join(below);
        let entries = fs::read_dir(&folder).with_context(|| format!("{} cannot be read", folder.display()))?;
        for entry in entries {
            let entry = entry?;
            let name = entry.file_name();
            let path = format!("{below}{}", name.to_string_lossy());
            let kind = entry.file_type()?;
            if kind.is_dir() {
                if depth < MAX_DEPTH && !name.as_encoded_bytes().starts_with(b".") && name.to_str().is_some() {
                    self.add_folder(root, &format!("{path}/"), depth + 1)?;
                }
            } else if kind.is_file() && is_markdown(&path) {
                if name.to_str().is_none() {
                    self.unnamed.push((path, "its path is not UTF-8".to_owned()));
                    continue;
                }
                match read_file(&entry.path()) {
                    Ok(Some(bytes)) => {
                        let id = Oid::hash_object(ObjectType::Blob, &bytes)?;
                        self.blobs.insert(path, id);
                    }
                    Ok(None) => self.unnamed.push((path, "it is larger than 512 KiB".to_owned())),
                    Err(error) => self.unnamed.push((path, error.to_string())),
                }
            }
        }
        Ok(())
    }
}

/// Returns the bytes of a file, or `None` if the file is too large.
fn read_file(path: &Path) -> std::io::Result<Option<Vec<u8>>> {
    if fs::metadata(path)?.len() > MAX_FILE_BYTES { Ok(None) } else { fs::read(path).map(Some) }
}

fn without_secret(remote: &str) -> String {
    match remote.split_once("://").and_then(|(scheme, rest)| Some((scheme, rest.split_once('@')?))) {
        Some((scheme, (user, rest))) if !user.contains('/') => format!("{scheme}://{rest}"),
        _ => remote.to_owned(),
    }
}
