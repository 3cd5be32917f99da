//! The Markdown files of a source: of a commit's tree, or of a folder without a repository.

use std::collections::BTreeMap;
use std::fs::{self, DirEntry};
use std::io;
use std::path::Path;

use anyhow::Context;
use git2::{ObjectType, Oid, Repository};

use super::history::{is_markdown, is_regular};

/// The maximum size in bytes of a file that is imported as an article.
pub const MAX_FILE_BYTES: u64 = 512 * 1024;
/// The maximum depth of the subfolders of a folder that are searched for files. A commit's tree has no such limit.
const MAX_DEPTH: usize = 64;
/// The maximum size in bytes of a pointer of Git LFS.
pub const MAX_POINTER_BYTES: usize = 1024;
/// The first line of every pointer of Git LFS.
const POINTER: &str = "version https://git-lfs.github.com/spec/v1\n";

const NOT_UTF8: &str = "its path is not UTF-8";
const SYMBOLIC_LINK: &str = "it is a symbolic link";
pub const TOO_LARGE: &str = "it is larger than 512 KiB";

/// The Markdown files of a source, each with the git id of its content.
#[derive(Debug, Default)]
pub struct Files {
    pub blobs: BTreeMap<String, Oid>,
    /// The files and folders that cannot be imported, with the reason.
    pub left_out: Vec<(String, String)>,
    /// The files and folders that could not be read, with the reason. An import keeps the articles of all files at and
    /// below these paths, because the files may still exist unchanged.
    pub unread: Vec<(String, String)>,
}

impl Files {
    /// Adds the files of a commit's tree.
    pub fn add_tree(&mut self, repository: &Repository, commit: Oid) -> anyhow::Result<()> {
        let mut folders = vec![(Vec::new(), repository.find_commit(commit)?.tree_id())];
        while let Some((below, tree)) = folders.pop() {
            let tree =
                repository.find_tree(tree).with_context(|| format!("a tree of commit {commit} cannot be read"))?;
            for entry in &tree {
                let path = [&below[..], entry.name_bytes()].concat();
                match entry.kind() {
                    Some(ObjectType::Tree) => folders.push(([&path[..], b"/"].concat(), entry.id())),
                    Some(ObjectType::Blob) if is_regular(entry.filemode()) => self.add_blob(path, entry.id()),
                    Some(ObjectType::Commit) => self.leave_out_file(&path, "it is a submodule"),
                    _ => self.leave_out_file(&path, SYMBOLIC_LINK),
                }
            }
        }
        Ok(())
    }

    fn add_blob(&mut self, path: Vec<u8>, blob: Oid) {
        match String::from_utf8(path) {
            Ok(path) if is_markdown(&path) => drop(self.blobs.insert(path, blob)),
            Ok(_) => {}
            Err(error) => self.leave_out_file(error.as_bytes(), NOT_UTF8),
        }
    }

    /// Leaves out an entry of a tree, and reports the entry if it has the name of a Markdown file.
    fn leave_out_file(&mut self, path: &[u8], reason: &str) {
        let path = String::from_utf8_lossy(path);
        if is_markdown(&path) {
            self.left_out.push((path.into_owned(), reason.to_owned()));
        }
    }

    /// Adds the Markdown files of a folder and of its subfolders, at most [`MAX_DEPTH`] levels deep. Skips hidden
    /// subfolders, and does not follow symbolic links.
    pub fn add_folder(&mut self, root: &Path) -> anyhow::Result<()> {
        let entries = entries(root).with_context(|| format!("{} cannot be read", root.display()))?;
        self.add_entries(entries, "", 0)
    }

    fn add_entries(&mut self, entries: Vec<DirEntry>, below: &str, depth: usize) -> anyhow::Result<()> {
        for entry in entries {
            let path = format!("{below}{}", entry.file_name().to_string_lossy());
            self.add_entry(&entry, path, depth)?;
        }
        Ok(())
    }

    /// Adds a Markdown file, or the files of a folder. Skips hidden folders, such as `.obsidian`, which contain no
    /// notes.
    fn add_entry(&mut self, entry: &DirEntry, path: String, depth: usize) -> anyhow::Result<()> {
        let kind = match entry.file_type() {
            Ok(kind) => kind,
            Err(error) => {
                self.skip_unread(path, &error);
                return Ok(());
            }
        };
        let is_folder = kind.is_dir() || (kind.is_symlink() && entry.path().is_dir());
        let is_searched = match is_folder {
            true => !entry.file_name().as_encoded_bytes().starts_with(b"."),
            false => is_markdown(&path),
        };
        if !is_searched {
            return Ok(());
        }
        let reason = if entry.file_name().to_str().is_none() {
            NOT_UTF8
        } else if kind.is_symlink() {
            SYMBOLIC_LINK
        } else if is_folder && depth == MAX_DEPTH {
            "it is deeper than 64 folders"
        } else if is_folder {
            match entries(&entry.path()) {
                Ok(entries) => self.add_entries(entries, &format!("{path}/"), depth + 1)?,
                Err(error) => self.skip_unread(path, &error),
            }
            return Ok(());
        } else if kind.is_file() {
            return self.add_file(path, &entry.path());
        } else {
            "it is not a regular file"
        };
        self.left_out.push((path, reason.to_owned()));
        Ok(())
    }

    fn add_file(&mut self, path: String, place: &Path) -> anyhow::Result<()> {
        match read_file(place) {
            Ok(Some(bytes)) => drop(self.blobs.insert(path, Oid::hash_object(ObjectType::Blob, &bytes)?)),
            Ok(None) => self.left_out.push((path, TOO_LARGE.to_owned())),
            Err(error) => self.skip_unread(path, &error),
        }
        Ok(())
    }

    /// Adds a file or folder that cannot be read to `unread`, unless the file or folder has been removed since its
    /// folder was listed.
    fn skip_unread(&mut self, path: String, error: &io::Error) {
        if error.kind() != io::ErrorKind::NotFound {
            self.unread.push((path, format!("the file cannot be read: {error}")));
        }
    }

    /// Returns whether a path could not be read, or is below a folder that could not be read.
    pub fn is_unread(&self, path: &str) -> bool {
        self.unread.iter().any(|(unread, _)| {
            path.strip_prefix(unread.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
    }
}

fn entries(folder: &Path) -> io::Result<Vec<DirEntry>> {
    fs::read_dir(folder)?.collect()
}

/// Returns the bytes of a file, or `None` if the file is too large.
pub fn read_file(path: &Path) -> io::Result<Option<Vec<u8>>> {
    if fs::metadata(path)?.len() > MAX_FILE_BYTES { Ok(None) } else { fs::read(path).map(Some) }
}

/// Returns the text of a file's content, or the reason why the file cannot be an article.
pub fn text_of(bytes: Vec<u8>) -> Result<String, String> {
    match String::from_utf8(bytes) {
        Ok(text) if id_in_pointer(&text).is_some() => {
            Err("it is a Git LFS pointer, without the text of the file".to_owned())
        }
        Ok(text) if !text.contains('\0') => Ok(text),
        _ => Err("it is not UTF-8 text".to_owned()),
    }
}

/// If a text is a pointer of Git LFS, returns the id of the content to which the pointer refers.
pub fn id_in_pointer(text: &str) -> Option<&str> {
    if text.len() > MAX_POINTER_BYTES || !text.starts_with(POINTER) {
        return None;
    }
    text.split_once("\noid sha256:").and_then(|(_, rest)| rest.lines().next())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(files: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a folder");
        for file in files {
            let file = folder.path().join(file);
            fs::create_dir_all(file.parent().expect("a parent")).expect("a folder");
            fs::write(file, "text").expect("written");
        }
        folder
    }

    fn files_of(folder: &Path) -> Files {
        let mut files = Files::default();
        files.add_folder(folder).expect("read");
        files.left_out.sort();
        files
    }

    fn left_out(files: &Files) -> Vec<(&str, &str)> {
        files.left_out.iter().map(|(path, reason)| (path.as_str(), reason.as_str())).collect()
    }

    #[cfg(unix)]
    #[test]
    fn symlinks_and_special_files_in_a_folder_are_left_out_with_a_reason() {
        use std::os::unix::fs::symlink;
        use std::os::unix::net::UnixListener;

        let folder = folder(&["notes/a.md", "notes/b.txt", ".hidden/c.md"]);
        let path = |name: &str| folder.path().join(name);
        symlink("notes/a.md", path("link.md")).expect("linked");
        symlink("gone.md", path("gone.md")).expect("linked");
        symlink("notes/b.txt", path("link.txt")).expect("linked");
        symlink("notes", path("linked")).expect("linked");
        symlink("notes", path(".linked")).expect("linked");
        let _socket = UnixListener::bind(path("socket.md")).expect("a socket");
        let files = files_of(folder.path());
        assert_eq!(files.blobs.keys().collect::<Vec<_>>(), ["notes/a.md"]);
        let link = SYMBOLIC_LINK;
        let expected =
            [("gone.md", link), ("link.md", link), ("linked", link), ("socket.md", "it is not a regular file")];
        assert_eq!(left_out(&files), expected);
        assert!(files.unread.is_empty());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_folder_whose_name_is_not_utf_8_is_left_out() {
        use std::ffi::OsStr;
        use std::os::unix::ffi::OsStrExt as _;

        let folder = folder(&["a.md"]);
        let other = folder.path().join(OsStr::from_bytes(b"\xff"));
        fs::create_dir(&other).expect("a folder");
        fs::write(other.join("b.md"), "text").expect("written");
        let files = files_of(folder.path());
        assert_eq!((files.blobs.len(), left_out(&files)), (1, vec![("\u{fffd}", NOT_UTF8)]));
    }

    #[test]
    fn a_folder_nested_deeper_than_64_folders_is_left_out() {
        let (deep, deeper) = (vec!["d"; MAX_DEPTH].join("/"), vec!["d"; MAX_DEPTH + 1].join("/"));
        let folder = folder(&[&format!("{deep}/a.md"), &format!("{deeper}/b.md")]);
        let files = files_of(folder.path());
        assert_eq!(files.blobs.keys().collect::<Vec<_>>(), [&format!("{deep}/a.md")]);
        assert_eq!(left_out(&files), [(deeper.as_str(), "it is deeper than 64 folders")]);
    }

    #[test]
    fn paths_below_a_folder_that_cannot_be_read_count_as_unread() {
        let mut files = Files::default();
        files.skip_unread("a/b".to_owned(), &io::ErrorKind::PermissionDenied.into());
        files.skip_unread("gone".to_owned(), &io::ErrorKind::NotFound.into());
        let paths = ["a/b", "a/b/c.md", "a/b.md", "a/bc/d.md", "gone/e.md"];
        assert_eq!(paths.map(|path| files.is_unread(path)), [true, true, false, false, false]);
    }

    #[test]
    fn a_git_lfs_pointer_is_not_text() {
        let pointer = format!("{POINTER}oid sha256:{}\nsize 12345\n", "0".repeat(64));
        assert!(text_of(pointer.clone().into_bytes()).is_err());
        for text in [POINTER.to_owned(), format!("# LFS\n\n{pointer}"), format!("{pointer}{}", "x".repeat(1_000))] {
            assert_eq!(text_of(text.clone().into_bytes()), Ok(text));
        }
    }
}
