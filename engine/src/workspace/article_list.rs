//! Lists articles. Callers who see only published content get the published revisions. If an article has changed since
//! it was published, its published revision is read from a cache in memory or from the store.

use std::sync::Arc;

use super::articles::Perspective;
use super::events::MAX_REJECTED_BYTES;
use super::rights::ContentReader;
use super::{Page, PageLimit};
use crate::error::Result;
use crate::model::aggregate::Aggregate;
use crate::model::article::published_version;
use crate::model::builtin::ARTICLE;
use crate::model::id::AggregateId;
use crate::model::value::Value;

/// The maximum number of changed articles whose published revisions are examined for one page. At this limit, the page
/// ends early.
const MAX_EXAMINED_REVISIONS: usize = 500;

/// A filter for lists of articles.
#[derive(Debug, Clone, Default)]
pub struct ArticleFilter {
    pub project: Option<String>,
    pub slug: Option<String>,
    pub tag: Option<String>,
    pub published: Option<bool>,
}

impl ArticleFilter {
    /// Returns whether a revision matches the filter's slug and tag.
    fn reads(&self, article: &Aggregate) -> bool {
        let tags = article.state.get("tags").and_then(Value::as_array).unwrap_or_default();
        let slug = article.state.get("slug").and_then(Value::as_str);
        self.slug.as_ref().is_none_or(|expected| slug == Some(expected))
            && self.tag.as_ref().is_none_or(|expected| tags.iter().any(|tag| tag.as_str() == Some(expected)))
    }
}

/// A page of the requested revisions of articles, newest article first. The next page begins after the last examined
/// article, which `next` names.
pub type ArticlePage = Page<Arc<Aggregate>, AggregateId>;

impl ContentReader {
    /// Returns a page of articles, newest first. A page may be empty although there is a next page.
    pub async fn list_articles(
        &self,
        filter: &ArticleFilter,
        requested: Perspective,
        before: Option<u64>,
        limit: PageLimit,
    ) -> Result<ArticlePage> {
        let perspective = self.shown(requested);
        self.context.refresh().await?;
        let project_id = match &filter.project {
            None => None,
            Some(project) => Some(self.project_named(project).await?.id.text()),
        };
        let is_listed = |article: &Aggregate| {
            let published = published_version(article).is_some();
            (perspective == Perspective::Draft || published)
                && filter.published.is_none_or(|expected| expected == published)
                && project_id.as_ref().is_none_or(|id| article.project_id.as_deref() == Some(&**id))
        };
        if perspective == Perspective::Draft {
            let admits = |article: &Aggregate| is_listed(article) && filter.reads(article);
            let page = self.context.list(Some(ARTICLE), before, limit, admits).await?;
            let next = page.next.and(page.items.last()).map(|last| last.id.clone());
            return Ok(ArticlePage { items: page.items, next });
        }
        let may_match = |article: &Aggregate| is_listed(article) && (is_changed(article) || filter.reads(article));
        self.list_published(filter, before, limit, may_match).await
    }

    /// Returns a page of the published revisions of the articles that `may_match` accepts. The filter applies to the
    /// published revisions, so the page reveals no slug or tag of a draft.
    async fn list_published(
        &self,
        filter: &ArticleFilter,
        before: Option<u64>,
        limit: PageLimit,
        may_match: impl Fn(&Aggregate) -> bool + Copy,
    ) -> Result<ArticlePage> {
        let (mut items, mut last, mut place, mut bytes) = (Vec::new(), None, before, 0);
        let (mut examined, mut rejected_bytes) = (0, 0);
        loop {
            let rest = PageLimit { rows: limit.rows - items.len(), ..PageLimit::NONE };
            let page = self.context.list(Some(ARTICLE), place, rest, may_match).await?;
            for article in page.items {
                last = Some(article.id.clone());
                examined += usize::from(is_changed(&article));
                match self.context.published(article).await? {
                    Some(revision) if filter.reads(&revision) => {
                        bytes += revision.size_bytes();
                        items.push(revision);
                    }
                    Some(rejected) => rejected_bytes += rejected.size_bytes(),
                    None => {}
                }
                if bytes >= limit.bytes || examined >= MAX_EXAMINED_REVISIONS || rejected_bytes >= MAX_REJECTED_BYTES {
                    return Ok(ArticlePage { items, next: last });
                }
            }
            place = page.next;
            if place.is_none() || items.len() == limit.rows {
                return Ok(ArticlePage { items, next: last.filter(|_| place.is_some()) });
            }
        }
    }
}

/// Returns whether an article has changed since it was published.
fn is_changed(article: &Aggregate) -> bool {
    published_version(article).is_some_and(|version| version < article.version)
}
