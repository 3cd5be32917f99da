//! The JSON of an article in responses.

use foldwork_engine::model::aggregate::Aggregate;
use foldwork_engine::model::article::{published_at, published_version};
use foldwork_engine::model::date::format_date;
use foldwork_engine::model::value::Value;
use poem_openapi::Object;
use serde::Serialize;

use super::closed_sets::{OneOf, Publication};
use super::json::AnyValue;
use super::state::text;

/// An article, as a draft or as a published revision.
#[derive(Object, Serialize)]
#[oai(rename = "Article")]
pub struct ArticleBody {
    pub aggregate_id: String,
    #[oai(nullable)]
    pub project_id: Option<String>,
    #[oai(nullable)]
    pub title: Option<String>,
    #[oai(nullable)]
    pub body: Option<String>,
    #[oai(nullable)]
    pub slug: Option<String>,
    pub tags: Vec<AnyValue>,
    pub status: OneOf<Publication>,
    pub version: u64,
    #[oai(nullable)]
    pub published_version: Option<u64>,
    pub created_at: String,
    pub updated_at: String,
    #[oai(nullable)]
    pub published_at: Option<String>,
}

impl From<&Aggregate> for ArticleBody {
    fn from(article: &Aggregate) -> ArticleBody {
        let published_version = published_version(article);
        let tags = article.state.get("tags").and_then(Value::as_array).unwrap_or_default();
        ArticleBody {
            aggregate_id: article.id.to_string(),
            project_id: article.project_id.as_deref().map(str::to_owned),
            title: text(article, "title"),
            body: text(article, "body"),
            slug: text(article, "slug"),
            tags: tags.iter().cloned().map(AnyValue).collect(),
            status: if published_version.is_some() { "published" } else { "draft" }.into(),
            version: article.version,
            published_version,
            created_at: format_date(article.created_at),
            updated_at: format_date(article.last_event_at),
            published_at: published_at(article).map(format_date),
        }
    }
}
