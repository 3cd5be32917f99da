//! The locations of the store and of the uploaded files. Converts the paths in the URLs of these locations to absolute
//! paths, and checks whether the folders are new.

use std::path::{Path, PathBuf};

/// The folder of the store or of the uploaded files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataFolder {
    pub path: PathBuf,
    /// Whether the settings name the folder relative to the working directory.
    pub is_relative: bool,
}

impl DataFolder {
    /// Returns the folder that a URL names, or `None` if the URL has another scheme.
    pub fn of(url: &str, scheme: &str) -> Option<DataFolder> {
        let path = Path::new(url.strip_prefix(scheme)?.strip_prefix("://")?.split('?').next()?);
        let is_relative = path.is_relative();
        Some(DataFolder { path: std::path::absolute(path).unwrap_or_else(|_| path.to_owned()), is_relative })
    }

    /// Returns whether the folder does not exist, cannot be read, or is empty.
    pub fn is_new(&self) -> bool {
        std::fs::read_dir(&self.path).map_or(true, |mut entries| entries.next().is_none())
    }
}

/// Converts the URL of the store, the files or the archive. If the URL names a folder, makes the path absolute and
/// removes the query. Otherwise returns the URL unchanged.
pub fn absolute(url: &str) -> String {
    let folder = ["surrealkv", "file"].into_iter().find_map(|scheme| Some((scheme, DataFolder::of(url, scheme)?)));
    match folder {
        Some((scheme, folder)) => format!("{scheme}://{}", folder.path.display()),
        None => url.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relative_paths_are_shown_as_absolute_paths() {
        let here = std::env::current_dir().expect("a folder");
        assert_eq!(absolute("surrealkv://data/db"), format!("surrealkv://{}", here.join("data/db").display()));
        assert_eq!(absolute("file:///srv/files"), "file:///srv/files");
        assert_eq!(absolute("ws://host:1"), "ws://host:1");
        assert!(
            DataFolder::of("surrealkv://data/db?sync=every", "surrealkv")
                .is_some_and(|folder| { folder.is_relative && folder.path.ends_with("data/db") })
        );
        assert_eq!(DataFolder::of("mem://", "surrealkv"), None);
    }
}
