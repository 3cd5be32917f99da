//! Compares the articles of a project with all files at a commit or in a folder.

use std::collections::{BTreeMap, HashMap};

use git2::Oid;

use super::{Article, HistoryWalk, fields_of};
use crate::cli::git::files::Files;
use crate::cli::git::history::Birth;
use crate::cli::git::outbox::Outbox;
use crate::cli::git::state::{ArticleState, BODY, Digest, digest};

impl HistoryWalk<'_> {
    /// Creates, updates and deletes articles, so that the articles match the files at a commit or in a folder.
    pub fn compare(&mut self, files: Files, outbox: &mut Outbox<'_>) -> anyhow::Result<()> {
        for (path, reason) in files.left_out.iter().chain(&files.unread) {
            if self.globs.is_match(path) {
                self.report.miss(path, &outbox.moment, reason);
            }
        }
        let is_gone = |path: &&String| !files.blobs.contains_key(*path) && !files.is_unread(path);
        let gone: Vec<String> = self.live.keys().filter(is_gone).cloned().collect();
        let mut files = files.blobs;
        files.retain(|path, _| self.live.contains_key(path) || self.globs.is_match(path));
        let mut gone: Vec<Article> = gone.iter().filter_map(|path| self.live.remove(path)).collect();
        gone.sort_unstable_by(|one, other| other.path.cmp(&one.path));
        let renamed = self.renames(&mut gone, &files)?;
        gone.append(&mut self.spare);
        for article in gone {
            self.remove(article, outbox)?;
        }
        for (path, blob) in files {
            if let Some(article) = self.live.remove(&path) {
                self.write(article, path, blob, None, outbox)?;
            } else if let Some(article) = renamed.get(&path) {
                self.write(article.clone(), path, blob, None, outbox)?;
            } else {
                let commit = outbox.moment.commit.as_ref().map_or(Oid::ZERO_SHA1, |commit| commit.id);
                let birth = Birth { path: path.clone(), commit };
                self.create(path, blob, &birth, outbox)?;
            }
        }
        self.assign_released_slugs(outbox)
    }

    /// Removes the articles of renamed files from `gone`, and returns these articles by their new paths. A missing file
    /// was renamed if a new file has the same text after the front matter.
    fn renames(
        &self,
        gone: &mut Vec<Article>,
        files: &BTreeMap<String, Oid>,
    ) -> anyhow::Result<HashMap<String, Article>> {
        let mut renamed = HashMap::new();
        let mut by_body: HashMap<Digest, Vec<Article>> = HashMap::new();
        for article in std::mem::take(gone) {
            match article.state.as_ref().and_then(ArticleState::body) {
                Some(body) => by_body.entry(body).or_default().push(article),
                None => gone.push(article),
            }
        }
        let new = files.iter().filter(|(path, _)| !self.live.contains_key(*path) && !self.others.contains_key(*path));
        for (path, blob) in new {
            if by_body.is_empty() {
                break;
            }
            let Ok(text) = self.source.text(path, *blob)? else { continue };
            let body = fields_of(path, &text).get(BODY).map(digest);
            if let Some(article) = body.and_then(|body| by_body.get_mut(&body)?.pop()) {
                renamed.insert(path.clone(), article);
            }
        }
        gone.extend(by_body.into_values().flatten());
        gone.sort_unstable_by(|one, other| one.path.cmp(&other.path));
        Ok(renamed)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::cli::git::glob_set;
    use crate::cli::git::outbox::{ImportBatch, ImportProgress};
    use crate::cli::git::report::ImportWarnings;
    use crate::cli::git::source::FileSource;
    use crate::cli::git::walk::ProjectArticles;

    /// Compares articles at these paths with `files`. The source is an empty folder, so the text of no file can be
    /// read. Returns the paths of the changed articles, the number of articles, and the paths that are reported
    /// missing.
    fn compared(paths: &[&str], files: Files) -> (Vec<String>, usize, Vec<String>) {
        let (folder, globs) = (tempfile::tempdir().expect("a folder"), glob_set(&[]).expect("valid globs"));
        let article = |path: &str| {
            let (id, path, state) = (path.to_owned(), path.to_owned(), Some(ArticleState::default()));
            Article { id, path, state, ..Article::default() }
        };
        let articles = paths.iter().copied().map(article).collect();
        let held = ProjectArticles { articles, ..ProjectArticles::default() };
        let (source, quiet) = (FileSource::folder(folder.path()).expect("opened"), |_: &str| {});
        let mut walk = HistoryWalk::new(source, held, &globs, HashSet::new(), ImportWarnings::new(&quiet));
        let mut changed = Vec::new();
        let mut put = |batch: ImportBatch| {
            changed.extend(batch.events.into_iter().map(|event| event.path));
            Ok(())
        };
        let mut outbox = Outbox::new("notes", ImportProgress::default(), &mut put);
        walk.compare(files, &mut outbox).expect("compared");
        outbox.finish(&ImportProgress::default()).expect("sent");
        (changed, walk.articles(), walk.report.missing.into_iter().collect())
    }

    #[test]
    fn articles_below_a_folder_that_cannot_be_read_stay() {
        let files = Files { unread: vec![("unread".to_owned(), "locked".to_owned())], ..Files::default() };
        let compared = compared(&["read/a.md", "unread/b.md"], files);
        assert_eq!(compared, (vec!["read/a.md".to_owned()], 1, vec!["unread".to_owned()]));
    }

    #[test]
    fn an_article_whose_file_can_no_longer_be_read_stays() {
        let blobs = BTreeMap::from([("a.md".to_owned(), Oid::ZERO_SHA1)]);
        let compared = compared(&["a.md"], Files { blobs, ..Files::default() });
        assert_eq!(compared, (Vec::new(), 1, vec!["a.md".to_owned()]));
    }
}
