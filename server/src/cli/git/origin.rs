//! Finds the commit and the path at which a file was created, if a merge brought the file into the history of HEAD.
//!
//! A file's article is identified by the path and the commit of the file's creation, even if that commit is not among
//! the first parents of HEAD. A merge with swapped parents, which changes the first parents, therefore does not create
//! a second article.

use std::collections::HashMap;
use std::path::Path;

use git2::{ObjectType, Oid, Repository};

use super::history::{Birth, steps};

/// The maximum number of commits that are searched for the creation of a file that a merge brought in. If the search
/// does not find the creation, the merge counts as the creation.
const MAX_STEPS: usize = 100_000;
/// The maximum number of entries in the cache of file creations.
const MAX_KNOWN: usize = 500_000;
/// The maximum number of entries in the cache of the renames between commits.
const MAX_RENAMES: usize = 256;

/// A search for the creations of files, with a cache of the results.
#[derive(Default)]
pub struct Origins {
    /// Maps a commit and a path in the commit to the commit and the path of the file's creation.
    known: HashMap<(Oid, String), (Oid, String)>,
    /// Maps a parent commit and its child commit to the renames between the commits. The renames map each new path to
    /// the old path.
    renames: HashMap<(Oid, Oid), HashMap<String, String>>,
}

impl Origins {
    /// Returns the commit and the path at which a file was created. The file exists in `commit`, but not in the first
    /// parent of `commit`. If `commit` is a merge, the file may have been created at an earlier commit.
    pub fn of(&mut self, repository: &Repository, commit: Oid, path: &str) -> Result<Birth, git2::Error> {
        let own = Birth { path: path.to_owned(), commit };
        if repository.find_commit(commit)?.parent_count() < 2 {
            return Ok(own);
        }
        let (mut at, mut path) = (commit, path.to_owned());
        let mut walked = Vec::new();
        let found = loop {
            if let Some(found) = self.known.get(&(at, path.clone())) {
                break found.clone();
            }
            if walked.len() >= MAX_STEPS {
                return Ok(own);
            }
            walked.push((at, path.clone()));
            match self.before(repository, at, &path)? {
                Some(before) => (at, path) = before,
                None => break (at, path),
            }
        };
        if self.known.len() + walked.len() > MAX_KNOWN {
            self.known.clear();
        }
        self.known.extend(walked.into_iter().map(|place| (place, found.clone())));
        let (commit, path) = found;
        Ok(Birth { path, commit })
    }

    /// Finds a file of a commit in the commit's parents. Returns the parent and the path of the file in the parent, or
    /// `None` if no parent contains the file. The result does not depend on the order of the parents.
    fn before(
        &mut self,
        repository: &Repository,
        commit: Oid,
        path: &str,
    ) -> Result<Option<(Oid, String)>, git2::Error> {
        let mut parents: Vec<Oid> = repository.find_commit(commit)?.parent_ids().collect();
        parents.sort_unstable();
        // Ignores parents that a shallow clone does not have.
        parents.retain(|parent| repository.find_commit(*parent).is_ok());
        for parent in &parents {
            if Self::has_file(repository, *parent, path)? {
                return Ok(Some((*parent, path.to_owned())));
            }
        }
        for parent in parents {
            if let Some(before) = self.renames_of(repository, parent, commit)?.get(path) {
                return Ok(Some((parent, before.clone())));
            }
        }
        Ok(None)
    }

    fn has_file(repository: &Repository, commit: Oid, path: &str) -> Result<bool, git2::Error> {
        let tree = repository.find_commit(commit)?.tree()?;
        // Excludes symbolic links, whose mode is 120000.
        Ok(tree
            .get_path(Path::new(path))
            .is_ok_and(|entry| entry.kind() == Some(ObjectType::Blob) && entry.filemode() != 0o120_000))
    }

    fn renames_of(
        &mut self,
        repository: &Repository,
        parent: Oid,
        commit: Oid,
    ) -> Result<&HashMap<String, String>, git2::Error> {
        if self.renames.len() >= MAX_RENAMES && !self.renames.contains_key(&(parent, commit)) {
            self.renames.clear();
        }
        let renames = match self.renames.entry((parent, commit)) {
            std::collections::hash_map::Entry::Occupied(known) => known.into_mut(),
            std::collections::hash_map::Entry::Vacant(place) => {
                let steps = steps(repository, Some(parent), commit)?;
                place.insert(steps.into_iter().filter_map(|step| step.rename()).collect())
            }
        };
        Ok(renames)
    }
}
