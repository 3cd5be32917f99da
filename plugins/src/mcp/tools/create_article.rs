//! `create_article`: creates an article as a draft.

use foldwork_engine::model::article::ArticleView;
use foldwork_engine::workspace::articles::{ArticleChange, NewArticle};
use foldwork_engine::workspace::responses::IdempotentRequest;
use foldwork_engine::{Error, Result, Writer};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::presentation::ShownArticle;
use crate::mcp::tool::{ToolCall, ToolWords};

pub(super) const WORDS: ToolWords = ToolWords {
    name: "create_article",
    title: "Create an article",
    description: "Creates an article as a draft, with a body in Markdown. Readers see it only after \
        `publish_article`. Pass an `idempotency_key` (any unique text), so that a repeated call creates no second \
        article.",
};

#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    title: String,
    /// The text of the article, in Markdown.
    body: Option<String>,
    /// The id or slug of the project.
    project_id: Option<String>,
    /// A readable name for URLs, unique in the project. Derived from the title by default.
    slug: Option<String>,
    tags: Option<Vec<String>>,
    /// A unique key for the call. Calls with the same key within a day create only one article.
    idempotency_key: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Output {
    article: ShownArticle,
    /// Whether an earlier call has already created the article.
    repeated: bool,
}

pub(super) async fn create_article(writer: Writer, arguments: Arguments, _call: ToolCall) -> Result<Output> {
    let user_id = writer.caller().user_id();
    let request = arguments.idempotency_key.as_deref().map(|key| request_id(user_id, key, &arguments)).transpose()?;
    let Arguments { title, body, project_id, slug, tags, .. } = arguments;
    let change = ArticleChange { title: None, body, slug, tags };
    let (article, repeated) = writer.create_article(NewArticle { project: project_id, title, change, request }).await?;
    Ok(Output { article: ShownArticle::from(ArticleView::from(&*article)), repeated })
}

/// Returns the identity of a call with an idempotency key. The engine recognizes a repeated call by this identity.
fn request_id(user_id: &str, key: &str, arguments: &Arguments) -> Result<IdempotentRequest> {
    let text = serde_json::to_vec(arguments).map_err(Error::internal)?;
    IdempotentRequest::new(user_id, key, &format!("mcp/{}", WORDS.name), &text)
}
