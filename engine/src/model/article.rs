//! Articles: which of their revisions is published.

use super::aggregate::Aggregate;
use super::builtin::ARTICLE;
use super::value::Value;

/// Fields that say what is published.
pub const STATUS: &str = "status";
pub const PUBLISHED: &str = "published";
pub const PUBLISHED_VERSION: &str = "published_version";

/// The version that readers of published content see.
pub fn published_version(article: &Aggregate) -> Option<u64> {
    let published = article.state.get(STATUS).and_then(Value::as_str) == Some(PUBLISHED);
    let version = article.state.get(PUBLISHED_VERSION).and_then(Value::as_int);
    version.filter(|_| published).and_then(|version| u64::try_from(version).ok())
}

/// Whether the last event of an aggregate published it.
pub fn is_publication(after: &Aggregate) -> bool {
    &*after.aggregate_type == ARTICLE && published_version(after) == Some(after.version)
}

/// When an article was published, milliseconds since the epoch.
pub fn published_at(article: &Aggregate) -> Option<i64> {
    match article.state.get("published_at") {
        Some(Value::Date(ms)) => Some(*ms),
        _ => None,
    }
}
