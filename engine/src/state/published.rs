//! Published revisions of articles. A revision is read from a cache in memory or from the store, or is folded from the
//! log.

use std::sync::Arc;

use indexmap::IndexMap;
use parking_lot::Mutex;

use super::State;
use crate::error::Result;
use crate::model::aggregate::Aggregate;
use crate::model::builtin::ARTICLE;
use crate::model::id::AggregateId;
use crate::store;

/// The maximum number of cached revisions.
const MAX_REVISIONS: usize = 1_024;
/// The maximum size of the cached revisions, in bytes.
const MAX_BYTES: usize = 4 << 20;

/// A cache of recently read revisions.
#[derive(Default)]
pub struct PublishedRevisions {
    kept: Mutex<RevisionCache>,
}

#[derive(Default)]
struct RevisionCache {
    /// The cached articles by id, each with the revision of the type definition under which the article was folded. The
    /// article whose id was cached first is the first entry.
    revisions: IndexMap<AggregateId, (u64, Arc<Aggregate>)>,
    bytes: usize,
}

impl PublishedRevisions {
    fn get(&self, id: &AggregateId, version: u64, revision: u64) -> Option<Arc<Aggregate>> {
        let kept = self.kept.lock();
        let (of, article) = kept.revisions.get(id)?;
        (article.version == version && *of == revision).then(|| article.clone())
    }

    fn put(&self, revision: u64, article: Arc<Aggregate>) {
        let mut kept = self.kept.lock();
        let bytes = article.size_bytes();
        if bytes > MAX_BYTES {
            return;
        }
        kept.bytes += bytes;
        let replaced = kept.revisions.insert(article.id.clone(), (revision, article));
        kept.bytes -= replaced.map_or(0, |(_, replaced)| replaced.size_bytes());
        while kept.revisions.len() > MAX_REVISIONS || kept.bytes > MAX_BYTES {
            let Some((_, (_, oldest))) = kept.revisions.shift_remove_index(0) else { break };
            kept.bytes -= oldest.size_bytes();
        }
    }

    /// Returns the size of the cached revisions, in bytes.
    pub fn size_bytes(&self) -> usize {
        self.kept.lock().bytes
    }
}

impl State {
    /// Returns an article's state at the published version `version`, or `None` if the store contains no events of the
    /// article.
    pub async fn published(&self, id: &AggregateId, version: u64) -> Result<Option<Arc<Aggregate>>> {
        let Some(definition) = self.types.get(ARTICLE) else { return Ok(None) };
        if let Some(known) = self.published.get(id, version, definition.revision) {
            return Ok(Some(known));
        }
        let stored = match self.db.read_published(id, &definition).await {
            Ok(stored) => stored,
            Err(store::Error::Corrupt { reason, .. }) => {
                tracing::warn!(
                    article = %id, workspace = %self.record.id, reason,
                    "cannot read a stored published revision; folding the article again"
                );
                None
            }
            Err(error) => return Err(error.into()),
        };
        let is_it = |stored: &store::workspace::nodes::NodeSnapshot| {
            stored.aggregate.version == version && stored.revision == definition.revision
        };
        let article = match stored.filter(is_it) {
            Some(stored) => Some(stored.aggregate),
            // The store contains no readable revision with this version and this definition: an older version of the
            // program published the article, the type folds differently now, another server has published a newer
            // version since, or the stored revision is corrupt.
            None => self.fold_stream(id, version, None, &definition).await?,
        };
        Ok(article.map(Arc::new).inspect(|article| self.published.put(definition.revision, article.clone())))
    }
}
