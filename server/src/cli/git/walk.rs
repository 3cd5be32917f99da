//! Follows files from commit to commit, and updates their articles.

mod compare;
mod slugs;

use std::collections::{HashMap, HashSet};

use git2::Oid;
use globset::GlobSet;
use jiff::Timestamp;
use serde_json::{Map, Value};

use super::article::Document;
use super::events::{ArticleDiff, name_id};
use super::history::{Birth, TreeChange};
use super::outbox::Outbox;
use super::report::ImportWarnings;
use super::slug::{SlugQueue, Slugs};
use super::source::{FileSource, TextFault};
use super::state::ArticleState;

/// The article of a file.
#[derive(Clone, Debug, Default)]
pub struct Article {
    pub id: String,
    pub path: String,
    /// A number that distinguishes the article from the other articles of the project.
    pub number: usize,
    /// The article's fields. `None` if the project has no such article: the article is deleted, its file cannot be an
    /// article, or its file is not imported.
    pub state: Option<ArticleState>,
    /// The git id of the file content that matches the state, if known.
    pub blob: Option<Oid>,
    /// The time of the article's last event.
    pub last: Option<Timestamp>,
    /// Whether the file is imported. Files that are not imported are followed as well, because a later commit can move
    /// such a file to a path that is imported.
    pub is_chosen: bool,
}

/// A walk from commit to commit, with the files of the current commit and their articles.
pub struct HistoryWalk<'a> {
    pub source: FileSource,
    pub report: ImportWarnings<'a>,
    globs: &'a GlobSet,
    /// The ids of new articles are derived from this text together with paths and commits.
    seed: String,
    /// Distinguishes the ids of articles that different imports create at the same path and commit.
    salt: u64,
    /// The ids of the articles whose files match the globs at any commit of the walk. These articles are imported from
    /// the beginning of the walk on. A walk whose outbox is closed, so that no events are sent, collects these ids.
    pub chosen: HashSet<String>,
    live: HashMap<String, Article>,
    /// Articles whose path is already used by an article in `live`.
    spare: Vec<Article>,
    /// The articles with a path that belong to no import, by path.
    others: HashMap<String, Article>,
    /// The ids of all articles of the project.
    article_ids: HashSet<String>,
    /// The times of the last events of deleted articles, by id.
    deletion_times: HashMap<String, Timestamp>,
    slugs: Slugs,
    /// The files that wait for the slug in their front matter, because another article has this slug.
    waiting: SlugQueue,
    /// The number of the article that was recorded last. Articles are numbered from 1 in the order of recording.
    next: usize,
}

/// The articles of a project before an import.
#[derive(Clone, Debug, Default)]
pub struct ProjectArticles {
    pub seed: String,
    pub salt: u64,
    pub articles: Vec<Article>,
    pub others: Vec<Article>,
    /// The ids and slugs of the articles of other sources and of articles without a path.
    pub further: Vec<(String, String)>,
    /// The times of the last events of deleted articles, by id. A new article with the same id gets no event with an
    /// earlier time.
    pub deletion_times: HashMap<String, Timestamp>,
}

impl Article {
    /// Returns the article's slug, which is empty if the article has none.
    fn slug(&self) -> &str {
        self.state.as_ref().map_or("", ArticleState::slug)
    }
}

impl<'a> HistoryWalk<'a> {
    pub fn new(
        source: FileSource,
        held: ProjectArticles,
        globs: &'a GlobSet,
        chosen: HashSet<String>,
        report: ImportWarnings<'a>,
    ) -> Self {
        let ProjectArticles { seed, salt, articles, others, further, deletion_times } = held;
        let mut walk = Self {
            source,
            report,
            globs,
            seed,
            salt,
            chosen,
            live: HashMap::new(),
            spare: Vec::new(),
            others: HashMap::new(),
            article_ids: HashSet::new(),
            deletion_times,
            slugs: Slugs::default(),
            waiting: SlugQueue::default(),
            next: 0,
        };
        for (id, slug) in further {
            walk.admit(&id, &slug);
        }
        for mut other in others {
            other.number = walk.admit(&other.id, other.slug());
            walk.others.insert(other.path.clone(), other);
        }
        for mut article in articles {
            article.number = walk.admit(&article.id, article.slug());
            article.is_chosen = true;
            walk.keep(article);
        }
        walk
    }

    /// Records the id and the slug of an article of the project. Returns the article's number.
    fn admit(&mut self, id: &str, slug: &str) -> usize {
        self.next += 1;
        self.article_ids.insert(id.to_owned());
        if !slug.is_empty() {
            self.slugs.hold(slug, self.next);
        }
        self.next
    }

    /// Returns the number of files that have an article.
    pub fn articles(&self) -> usize {
        self.live.values().filter(|article| article.state.is_some()).count()
    }

    /// Applies the steps of one commit. The order is removals, then changes and renames, then new files, so that slugs
    /// are free before they are used again. `origin` returns the path and the commit at which a new file was created.
    pub fn follow(
        &mut self,
        steps: Vec<TreeChange>,
        mut origin: impl FnMut(&FileSource, &str) -> anyhow::Result<Birth>,
        outbox: &mut Outbox<'_>,
    ) -> anyhow::Result<()> {
        // `kept` has the files that exist after the step, each with its article, its path, its blob, and its blob
        // before the step if that is known.
        let (mut removed, mut kept, mut born) = (Vec::new(), Vec::new(), Vec::new());
        for TreeChange { before, after } in steps {
            let article = before.and_then(|(path, blob)| Some((self.live.remove(&path)?, blob)));
            match (article, after) {
                (Some((article, _)), None) => removed.push(article),
                (Some((article, before)), Some((path, after))) => kept.push((article, path, after, Some(before))),
                (None, Some(after)) => born.push(after),
                (None, None) => {}
            }
        }
        let mut created = Vec::new();
        for (path, blob) in born {
            if let Some(article) = self.live.remove(&path) {
                kept.push((article, path, blob, None));
                continue;
            }
            let birth = origin(&self.source, &path)?;
            let id = self.id_of(&birth);
            // A merge may add a file that was renamed and rewritten. Git reports such a file as a removal and a new
            // file.
            let place = removed.iter().position(|gone: &Article| gone.id == id);
            let place = place.or_else(|| removed.iter().position(|gone| gone.path == birth.path && gone.path != path));
            match place {
                Some(place) => kept.push((removed.swap_remove(place), path, blob, None)),
                None => created.push((path, blob, birth)),
            }
        }
        for article in removed {
            self.remove(article, outbox)?;
        }
        for (article, path, blob, before) in kept {
            self.write(article, path, blob, before, outbox)?;
        }
        for (path, blob, birth) in created {
            self.create(path, blob, &birth, outbox)?;
        }
        self.assign_released_slugs(outbox)
    }

    /// Returns the id of the article for a file that was created at this path and commit.
    fn id_of(&self, birth: &Birth) -> String {
        name_id(&[&self.seed, &birth.path, &birth.commit.to_string()])
    }

    /// Creates the article of a new file. If the project has an article at the same path that belongs to no import,
    /// adopts that article instead. If another article already has the id that is derived from `birth`, the new article
    /// gets a different id.
    fn create(&mut self, path: String, blob: Oid, birth: &Birth, outbox: &mut Outbox<'_>) -> anyhow::Result<()> {
        if let Some(other) = self.others.remove(&path) {
            return self.adopt(other, path, blob, outbox);
        }
        let commit = outbox.moment.commit_id();
        let salt = self.salt.to_string();
        let ids =
            [self.id_of(birth), name_id(&[&self.seed, &path, &commit]), name_id(&[&self.seed, &path, &commit, &salt])];
        let [.., last] = &ids;
        let id = ids.iter().find(|id| !self.article_ids.contains(*id)).unwrap_or(last).clone();
        let (number, last) = (self.admit(&id, ""), self.deletion_times.get(&id).copied());
        let article = Article { number, id, path: path.clone(), last, ..Article::default() };
        self.write(article, path, blob, None, outbox)
    }

    /// Assigns an article that belongs to no import to the file at the article's path. If the file is imported, adds
    /// the article to the record of the import, and gives the article the text of the file.
    fn adopt(&mut self, mut article: Article, path: String, blob: Oid, outbox: &mut Outbox<'_>) -> anyhow::Result<()> {
        if !outbox.is_closed() && (self.globs.is_match(&path) || self.chosen.contains(&article.id)) {
            let (payload, is_new, blob) = (Map::new(), true, Some(blob));
            let (id, after) = (article.id.as_str(), article.last);
            let change = ArticleDiff { id, path: &path, verb: "updated", payload, is_new, blob, after };
            if let Ok(last) = outbox.append(change)? {
                article.last = last.or(article.last);
            }
        }
        self.write(article, path, blob, None, outbox)
    }

    /// Gives an article the path and, if the file is imported, the text of its file. `before` is the content that the
    /// file had before. If a file of a folder cannot be read, the article keeps its fields and its former path. If the
    /// file cannot be an article, or if git cannot read the file, deletes the article. If the outbox is closed, the
    /// article gets only the path, and the walk records whether the file is to be imported.
    fn write(
        &mut self,
        mut article: Article,
        path: String,
        blob: Oid,
        before: Option<Oid>,
        outbox: &mut Outbox<'_>,
    ) -> anyhow::Result<()> {
        if outbox.is_closed() {
            if self.globs.is_match(&path) {
                self.chosen.insert(article.id.clone());
            }
            article.path.clone_from(&path);
            self.live.insert(path, article);
            return Ok(());
        }
        article.is_chosen |= self.chosen.contains(&article.id) || self.globs.is_match(&path);
        let is_known = article.blob == Some(blob) && article.path == path && article.state.is_some();
        if article.is_chosen && !is_known {
            match self.text_event(&mut article, &path, blob, before, outbox)? {
                Ok(()) => {}
                Err(TextFault::Unread(reason)) => {
                    self.report.miss(&path, &outbox.moment, &reason);
                    self.report.has_unread = true;
                    self.keep(article);
                    return Ok(());
                }
                Err(TextFault::Unfit(reason)) => {
                    self.report.miss(&path, &outbox.moment, &reason);
                    self.delete(&mut article, outbox)?;
                }
            }
        }
        article.path = path;
        self.keep(article);
        Ok(())
    }

    /// Assigns an article to the file at its path. Another article may already have the path if the project differed
    /// from the files before this commit. The other article is moved to `spare`.
    fn keep(&mut self, article: Article) {
        self.spare.extend(self.live.insert(article.path.clone(), article));
    }

    /// Writes the event that gives an article the text of its file. Returns the reason if the file has no text for an
    /// article, or if the event is too large.
    fn text_event(
        &mut self,
        article: &mut Article,
        path: &str,
        blob: Oid,
        before: Option<Oid>,
        outbox: &mut Outbox<'_>,
    ) -> anyhow::Result<Result<(), TextFault>> {
        let text = match self.source.text(path, blob)? {
            Ok(text) => text,
            Err(fault) => return Ok(Err(fault)),
        };
        self.mark(article, before)?;
        let mut warnings = Vec::new();
        let document = Document::read(&text, &mut warnings);
        let slug = self.slug(article, path, document.slug().as_deref());
        let fields = document.into_fields(path, &slug, &mut warnings);
        self.report.warn(path, &outbox.moment, warnings);
        let renamed = article.path != path;
        let (verb, payload) = match &article.state {
            None => ("created", fields.clone()),
            Some(state) => ("updated", state.difference(&fields)),
        };
        // A commit that touches a file becomes an event of the file's article, even if no field differs.
        if before.is_some() || renamed || !payload.is_empty() {
            let (is_new, blob, after) = (verb == "created", Some(blob), article.last);
            let change = ArticleDiff { id: &article.id, path, verb, payload, is_new, blob, after };
            match outbox.append(change)? {
                Ok(last) => article.last = last.or(article.last),
                Err(reason) => return Ok(Err(TextFault::Unfit(reason))),
            }
        }
        article.state.get_or_insert_default().update(&fields);
        article.blob = Some(blob);
        Ok(Ok(()))
    }

    /// Marks the fields of the file's earlier text as fields that come from the file. Does nothing if these fields are
    /// already marked. Only in a state that was read from the server can these fields be unmarked.
    fn mark(&self, article: &mut Article, before: Option<Oid>) -> anyhow::Result<()> {
        if let (Some(state), Some(before)) = (&mut article.state, before)
            && !state.is_marked()
            && let Ok(text) = self.source.text(&article.path, before)?
        {
            state.mark(fields_of(&article.path, &text).keys());
        }
        Ok(())
    }

    fn remove(&mut self, mut article: Article, outbox: &mut Outbox<'_>) -> anyhow::Result<()> {
        self.article_ids.remove(&article.id);
        self.delete(&mut article, outbox)?;
        self.deletion_times.extend(article.last.map(|last| (article.id, last)));
        Ok(())
    }

    fn delete(&mut self, article: &mut Article, outbox: &mut Outbox<'_>) -> anyhow::Result<()> {
        article.blob = None;
        let Some(state) = article.state.take() else { return Ok(()) };
        self.slugs.release(state.slug());
        if outbox.is_closed() {
            return Ok(());
        }
        let Article { id, path, last, .. } = &*article;
        let (payload, is_new, blob, after) = (Map::new(), false, None, *last);
        let change = ArticleDiff { id, path, verb: "deleted", payload, is_new, blob, after };
        if let Ok(last) = outbox.append(change)? {
            article.last = last.or(article.last);
        }
        Ok(())
    }
}

/// Returns the fields of the article for a file with this path and text. The slug is empty.
pub fn fields_of(path: &str, text: &str) -> Map<String, Value> {
    let mut ignored = Vec::new();
    Document::read(text, &mut ignored).into_fields(path, "", &mut ignored)
}
