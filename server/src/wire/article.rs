//! The JSON of an article in responses.

use foldwork_engine::model::aggregate::Aggregate;
use foldwork_engine::model::article::ArticleView;
use foldwork_engine::model::date::format_date;
use foldwork_engine::workspace::articles::Perspective;

use super::closed_sets::{OneOf, Publication};
use super::json::{AnyValue, Text};
use super::shown::shown;

shown! {
    /// An article, as a draft or as a published revision.
    #[oai(rename = "Article")]
    pub struct ArticleBody from article: &Aggregate where {
        let view = ArticleView::from(article);
        let is_published = view.published_version.is_some();
    };

    aggregate_id: Text = view.id.into(),
    project_id: Option<Text> = view.project_id.map(Text),
    title: Option<Text> = view.title.map(Text),
    body: Option<Text> = view.body.map(Text),
    slug: Option<Text> = view.slug.map(Text),
    tags: Vec<AnyValue> = view.tags.into_iter().map(AnyValue).collect(),
    status: OneOf<Publication> = if is_published { Perspective::Published } else { Perspective::Draft }.name().into(),
    version: u64 = view.version,
    published_version: Option<u64> = view.published_version,
    created_at: String = format_date(view.created_at),
    updated_at: String = format_date(view.updated_at),
    published_at: Option<String> = view.published_at.map(format_date),
}
