//! The report of an import: the warnings, once for each file, and the files that could not be imported.

use std::collections::{BTreeSet, HashSet};

use super::article::Warning;
use super::events::EventMoment;

/// The maximum number of front matter warnings for one file.
const MAX_WARNINGS: usize = 10;

/// The warnings of an import.
pub struct ImportWarnings<'a> {
    pub note: &'a dyn Fn(&str),
    /// The files that were reported as left out.
    pub left_out: HashSet<String>,
    /// The files with reported warnings about their front matter.
    pub doubtful: HashSet<String>,
    /// The files and folders that could not be imported since the last comparison with the files began.
    pub missing: BTreeSet<String>,
    /// Whether a file of a folder was read when the folder was listed, but could not be read again for its text. Always
    /// `false` for a git repository.
    pub has_unread: bool,
}

impl<'a> ImportWarnings<'a> {
    pub fn new(note: &'a dyn Fn(&str)) -> Self {
        let (left_out, doubtful, missing, has_unread) = Default::default();
        Self { note, left_out, doubtful, missing, has_unread }
    }

    /// Adds a file or folder to the files that could not be imported. Also reports the reason, unless the path was
    /// already reported as left out.
    pub fn miss(&mut self, path: &str, moment: &EventMoment, reason: &str) {
        self.missing.insert(path.to_owned());
        if self.left_out.insert(path.to_owned()) {
            (self.note)(&format!("warning: {} is left out: {reason}", place(path, &moment.commit_id())));
        }
    }

    /// Reports warnings about parts of a file that are not imported as they are written. If warnings for the file were
    /// already reported, does nothing.
    pub fn warn(&mut self, path: &str, moment: &EventMoment, warnings: Vec<Warning>) {
        if warnings.is_empty() || !self.doubtful.insert(path.to_owned()) {
            return;
        }
        let commit = moment.commit_id();
        for Warning { line, reason } in warnings.into_iter().take(MAX_WARNINGS) {
            (self.note)(&format!("warning: {}: {reason}", place(&format!("{path}:{line}"), &commit)));
        }
    }
}

/// Returns the path of a file, with the abbreviated id of the commit, for a warning. `commit` is empty if the file is
/// in no commit.
pub fn place(path: &str, commit: &str) -> String {
    match commit.get(..10) {
        Some(commit) => format!("{path} at commit {commit}"),
        None => path.to_owned(),
    }
}
