//! Articles, and which of their revisions are published.

use super::aggregate::Aggregate;
use super::builtin::ARTICLE;
use super::value::Value;

/// The name of the status field of an article, and the value of the field in a published article.
pub const STATUS: &str = "status";
pub const PUBLISHED: &str = "published";
pub const PUBLISHED_VERSION: &str = "published_version";

/// Returns the version of an article that readers of published content see, or `None` if the article is not published.
pub fn published_version(article: &Aggregate) -> Option<u64> {
    let published = article.state.get(STATUS).and_then(Value::as_str) == Some(PUBLISHED);
    let version = article.state.get(PUBLISHED_VERSION).and_then(Value::as_int);
    version.filter(|_| published).and_then(|version| u64::try_from(version).ok())
}

/// Returns whether the last event of an aggregate published the aggregate.
pub fn is_publication(after: &Aggregate) -> bool {
    &*after.aggregate_type == ARTICLE && published_version(after) == Some(after.version)
}

/// Returns when an article was published, in milliseconds since the epoch.
pub fn published_at(article: &Aggregate) -> Option<i64> {
    match article.state.get("published_at") {
        Some(Value::Date(ms)) => Some(*ms),
        _ => None,
    }
}
