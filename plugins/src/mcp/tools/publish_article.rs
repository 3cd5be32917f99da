//! `publish_article`: publishes the current revision of an article.

use foldwork_engine::model::article::ArticleView;
use foldwork_engine::model::event::StreamExpectation;
use foldwork_engine::{Result, Writer};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::presentation::ShownArticle;
use crate::mcp::tool::{ToolCall, ToolWords};

pub(super) const WORDS: ToolWords = ToolWords {
    name: "publish_article",
    title: "Publish an article",
    description: "Publishes the current revision of an article. Readers see this revision until another one is \
        published. Publishing a revision that is already published changes nothing.",
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// The article's id.
    aggregate_id: String,
    /// The version that the article must have. If the article has another version, the call fails with
    /// `version_conflict`.
    #[schemars(range(min = 1))]
    expected_version: Option<u64>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Output {
    article: ShownArticle,
}

pub(super) async fn publish_article(writer: Writer, arguments: Arguments, _call: ToolCall) -> Result<Output> {
    let expected = arguments.expected_version.map(StreamExpectation::at).unwrap_or_default();
    let article = writer.publish_article(&arguments.aggregate_id, expected).await?;
    Ok(Output { article: ShownArticle::from(ArticleView::from(&*article)) })
}
