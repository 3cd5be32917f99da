//! The publication of articles, and the views of articles as drafts or published revisions.

use std::sync::Arc;

use super::aggregate::Aggregate;
use super::builtin::ARTICLE;
use super::value::Value;

/// The name of the field with an article's status.
pub const STATUS: &str = "status";
/// The status of a published article.
pub const PUBLISHED: &str = "published";
/// The name of the field with the version that is published.
pub const PUBLISHED_VERSION: &str = "published_version";

/// Returns the version of an article that is visible to readers of published content, or `None` if the article is not
/// published.
pub fn published_version(article: &Aggregate) -> Option<u64> {
    let published = article.state.get(STATUS).and_then(Value::as_str) == Some(PUBLISHED);
    let version = article.state.get(PUBLISHED_VERSION).and_then(Value::as_int);
    version.filter(|_| published).and_then(|version| u64::try_from(version).ok())
}

/// Returns whether an aggregate is an article that was published by its last event.
pub fn is_publication(after: &Aggregate) -> bool {
    &*after.aggregate_type == ARTICLE && published_version(after) == Some(after.version)
}

/// Returns the time at which an article was last published, in milliseconds since the epoch, or `None` if the state has
/// no such time. Unpublishing an article clears the time.
pub fn published_at(article: &Aggregate) -> Option<i64> {
    article.state.get("published_at")?.as_date()
}

/// An article, as a draft or as a published revision. Times are in milliseconds since the epoch.
#[derive(Debug, Clone)]
pub struct ArticleView {
    pub id: Arc<str>,
    pub project_id: Option<Arc<str>>,
    pub title: Option<Arc<str>>,
    pub body: Option<Arc<str>>,
    pub slug: Option<Arc<str>>,
    pub tags: Vec<Value>,
    pub version: u64,
    /// The version that is visible to readers of published content. `None` if the article is not published.
    pub published_version: Option<u64>,
    pub created_at: i64,
    pub updated_at: i64,
    /// The time of the last publication. `None` if the article was never published, or if an operation unpublished it.
    pub published_at: Option<i64>,
}

impl From<&Aggregate> for ArticleView {
    fn from(article: &Aggregate) -> ArticleView {
        let tags = article.state.get("tags").and_then(Value::as_array).unwrap_or_default();
        ArticleView {
            id: article.id.text(),
            project_id: article.project_id.clone(),
            title: article.text("title"),
            body: article.text("body"),
            slug: article.text("slug"),
            tags: tags.to_vec(),
            version: article.version,
            published_version: published_version(article),
            created_at: article.created_at,
            updated_at: article.last_event_at,
            published_at: published_at(article),
        }
    }
}
