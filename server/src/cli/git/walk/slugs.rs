//! Assigns slugs to articles. If the front matter of a file has a slug, the file's article has this slug after each
//! commit, unless another article has the slug.

use git2::Oid;

use super::{Article, HistoryWalk};
use crate::cli::git::outbox::Outbox;
use crate::cli::git::slug;

impl HistoryWalk<'_> {
    /// Assigns a slug to an article and returns the slug. `wanted` is the slug in the front matter of the file. If
    /// another article has the wanted slug, this article gets a different slug, and the file waits until the wanted
    /// slug is free.
    pub fn slug(&mut self, article: &Article, path: &str, wanted: Option<&str>) -> String {
        let slug = self.assign(article, path, wanted);
        match wanted.filter(|wanted| *wanted != slug) {
            Some(wanted) => self.waiting.insert(path, wanted),
            None => self.waiting.remove(path),
        }
        slug
    }

    /// Assigns a slug to an article. The article keeps its current slug if its path has not changed and one of these
    /// conditions holds: the current slug is `wanted`; or the current slug is derived from the path, and `wanted` is
    /// `None` or not free.
    fn assign(&mut self, article: &Article, path: &str, wanted: Option<&str>) -> String {
        let current = article.slug();
        let is_kept = match wanted {
            Some(wanted) if current == wanted => true,
            Some(wanted) if self.slugs.is_free(wanted, article.number) => false,
            _ => slug::is_of_path(current, path),
        };
        if is_kept && article.path == path && !current.is_empty() {
            return current.to_owned();
        }
        let slug = self.slugs.assign(wanted, path, article.number);
        if slug != current {
            self.slugs.release(current);
        }
        slug
    }

    /// Assigns released slugs to the files that wait for these slugs. Without this step, the next import would assign
    /// the slugs, even if no file has changed.
    pub fn assign_released_slugs(&mut self, outbox: &mut Outbox<'_>) -> anyhow::Result<()> {
        // An article that gets another slug releases its former slug, for which another file may wait.
        while let Some(slug) = self.slugs.next_released() {
            // A file that no longer has the slug in its front matter leaves the slug to the next file.
            while let Some((path, blob)) = self.first_waiting(&slug) {
                self.waiting.remove(&path);
                if let Some(article) = self.live.remove(&path) {
                    self.write(Article { blob: None, ..article }, path, blob, None, outbox)?;
                }
            }
        }
        Ok(())
    }

    /// Returns the path of the first file that waits for a slug, and the git id of the file's content, if the slug is
    /// free.
    fn first_waiting(&self, slug: &str) -> Option<(String, Oid)> {
        self.waiting.of(slug).find_map(|path| {
            let article = self.live.get(path).filter(|article| article.state.is_some())?;
            let is_released = article.slug() != slug && self.slugs.is_free(slug, article.number);
            article.blob.filter(|_| is_released).map(|blob| (path.clone(), blob))
        })
    }
}
