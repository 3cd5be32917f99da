//! The JSON of an article in responses.

use foldwork_engine::model::aggregate::Aggregate;
use foldwork_engine::model::article::ArticleView;
use foldwork_engine::model::date::format_date;
use foldwork_engine::workspace::articles::Perspective;
use poem_openapi::Object;
use serde::Serialize;

use super::closed_sets::{OneOf, Publication};
use super::json::{AnyValue, Text};

/// An article, as a draft or as a published revision.
#[derive(Object, Serialize)]
#[oai(rename = "Article")]
pub struct ArticleBody {
    aggregate_id: Text,
    project_id: Option<Text>,
    title: Option<Text>,
    body: Option<Text>,
    slug: Option<Text>,
    tags: Vec<AnyValue>,
    status: OneOf<Publication>,
    version: u64,
    published_version: Option<u64>,
    created_at: String,
    updated_at: String,
    published_at: Option<String>,
}

impl From<&Aggregate> for ArticleBody {
    fn from(article: &Aggregate) -> ArticleBody {
        let view = ArticleView::from(article);
        let is_published = view.published_version.is_some();
        let status = if is_published { Perspective::Published } else { Perspective::Draft };
        ArticleBody {
            aggregate_id: view.id.into(),
            project_id: view.project_id.map(Text),
            title: view.title.map(Text),
            body: view.body.map(Text),
            slug: view.slug.map(Text),
            tags: view.tags.into_iter().map(AnyValue).collect(),
            status: status.name().into(),
            version: view.version,
            published_version: view.published_version,
            created_at: format_date(view.created_at),
            updated_at: format_date(view.updated_at),
            published_at: view.published_at.map(format_date),
        }
    }
}
