//! `/articles`: drafts and published revisions.

use foldwork_engine::model::aggregate::Aggregate;
use foldwork_engine::workspace::article_list::ArticleFilter;
use foldwork_engine::workspace::articles::{ArticleChange, NewArticle, Perspective};
use foldwork_engine::{Error, Writer};
use poem::web::Data;
use poem_openapi::param::{Header, Path, Query};
use poem_openapi::types::MaybeUndefined;
use poem_openapi::{Object, OpenApi};
use serde::Deserialize;

use super::section::Section;
use crate::auth::{ApiWrite, ContentRead};
use crate::http::error::ApiResult;
use crate::http::etag::{etag, expected_at, is_known};
use crate::http::routes::API;
use crate::wire::article::ArticleBody;
use crate::wire::body::{Body, JsonResponse};
use crate::wire::closed_sets::{OneOf, Publication};
use crate::wire::idempotency::{CreationOutcome, CreationResponse, idempotent};
use crate::wire::page::{PageBody, PageBytes, Whole, listed, named_cursor, page_limit, read_named_cursor, wrong_list};
use crate::wire::patch;
use crate::wire::response::{no_content, revalidated, tagged};

pub struct Api;

/// An article to create.
#[derive(Object, Deserialize)]
#[serde(deny_unknown_fields)]
struct CreateArticle {
    /// The id or slug of the article's project.
    project_id: Option<String>,
    title: String,
    /// The text of the article in Markdown.
    body: Option<String>,
    /// The slug, which must be unique in the project; the default is derived from the title.
    slug: Option<String>,
    tags: Option<Vec<String>>,
}

/// Changes to an article. Absent fields do not change.
#[derive(Object, Deserialize, Default)]
#[serde(default, deny_unknown_fields)]
struct ChangeArticle {
    #[oai(write_only)]
    title: MaybeUndefined<String>,
    /// The text of the article in Markdown. Null makes the text empty.
    body: MaybeUndefined<String>,
    #[oai(write_only)]
    slug: MaybeUndefined<String>,
    /// The tags, which replace the previous tags. Null removes all tags.
    tags: MaybeUndefined<Vec<String>>,
    /// The expected version. If the article has another version, the request is rejected with 409.
    expected_version: Option<Whole>,
}

listed!(ArticleBody as "ArticlePage": "A page of articles.");

revalidated!(ArticleResponse of ArticleBody: "The article.");

tagged!(ArticleUpdateResponse of ArticleBody: "The article after the change.");

no_content!(ArticleDeletionResponse: "The article was deleted. Its history stays in the log.");

const LIST: &str = "articles";

#[OpenApi(tag = "Section::Articles")]
impl Api {
    /// Lists articles, newest first. A key with only the scope `content:read` gets only published revisions.
    ///
    /// `perspective` selects the revision to return. The filters apply to the selected revision. A page may have fewer
    /// rows than `limit`, or none, because the server also limits the size of a page in bytes and the number of
    /// revisions that it reads for a page. `next_cursor` is null only on the last page.
    #[oai(path = "/articles", method = "get", operation_id = "list_articles")]
    #[expect(clippy::too_many_arguments, reason = "one argument per query parameter")]
    async fn list_articles(
        &self,
        access: ContentRead,
        project_id: Query<Option<String>>,
        #[oai(name = "limit")] Query(rows): Query<Option<u64>>,
        /// The `next_cursor` of the previous page.
        cursor: Query<Option<String>>,
        /// Only articles with this slug. A slug is unique within a project.
        slug: Query<Option<String>>,
        /// Only articles with this tag.
        tag: Query<Option<String>>,
        /// Only published articles (`published`), or only unpublished articles (`draft`).
        status: Query<Option<OneOf<Publication>>>,
        /// The revision to return; the default is `draft`.
        perspective: Query<Option<OneOf<Publication>>>,
        page_bytes: Data<&PageBytes>,
    ) -> ApiResult<JsonResponse<PageBody<ArticleBody>>> {
        let perspective = read_perspective(perspective.as_deref())?;
        let published = match status.as_deref() {
            None => None,
            Some("published") => Some(true),
            Some("draft") => Some(false),
            Some(_) => return Err(Error::invalid("`status` must be `draft` or `published`").into()),
        };
        let filter = ArticleFilter { project: project_id.0, slug: slug.0, tag: tag.0, published };
        let limit = page_limit(rows, *page_bytes.0)?;
        let before = match read_named_cursor(LIST, cursor.as_deref())? {
            None => None,
            Some(last) => Some(access.0.place_of(&last).await?.ok_or_else(wrong_list)?),
        };
        let page = access.0.list_articles(&filter, perspective, before, limit).await?;
        let next_cursor = page.next.map(|last| named_cursor(LIST, last.as_str()));
        let bytes = page.items.iter().map(|article| article.size_bytes()).sum();
        let bodies = || page.items.iter().map(|article| ArticleBody::from(&**article)).collect();
        Ok(JsonResponse::large(bytes, || PageBody { data: bodies(), next_cursor }))
    }

    /// Creates an article, which is a draft until it is published.
    ///
    /// The slug must be unique in its project (409 `slug_taken`). If the slug is absent, the server derives it from the
    /// title. Agents that subscribe to the trait `content-bearing` get tasks for the appended event.
    #[oai(path = "/articles", method = "post", operation_id = "create_article")]
    async fn create_article(
        &self,
        access: ApiWrite,
        body: Body<CreateArticle>,
        #[oai(name = "Idempotency-Key")] key: Header<Option<String>>,
    ) -> ApiResult<CreationResponse<ArticleBody>> {
        let Body { value: CreateArticle { project_id, title, body, slug, tags }, text } = body;
        let make = async move |writer: Writer, request| {
            let change = ArticleChange { title: None, body, slug, tags };
            let new = NewArticle { project: project_id, title, change, request };
            let (article, repeated) = writer.create_article(new).await?;
            let location = format!("{}/articles/{}", API, article.id);
            Ok(CreationOutcome { body: ArticleBody::from(&*article), location, repeated })
        };
        idempotent(&access.0, key.0, "create_article", &text, make).await
    }

    /// Returns one article.
    ///
    /// A key with only the scope `content:read` gets the published revision, or 404 if the article is not published.
    #[oai(path = "/articles/:aggregate_id", method = "get", operation_id = "get_article")]
    async fn get_article(
        &self,
        access: ContentRead,
        aggregate_id: Path<String>,
        /// The revision to return; the default is `draft`.
        perspective: Query<Option<OneOf<Publication>>>,
        #[oai(name = "If-None-Match")] if_none_match: Header<Option<String>>,
    ) -> ApiResult<ArticleResponse> {
        let perspective = read_perspective(perspective.as_deref())?;
        let article = access.0.article(&aggregate_id, perspective).await?;
        let tag = etag(article.version);
        Ok(match is_known(if_none_match.as_deref(), &tag) {
            true => ArticleResponse::Known(tag),
            false => ArticleResponse::Found(response(&article), tag),
        })
    }

    /// Changes an article.
    ///
    /// Only the fields in the body change. Null clears the text and the tags. Null as the title or the slug gets 400,
    /// because every article has both. The published revision does not change until the article is published again.
    #[oai(path = "/articles/:aggregate_id", method = "patch", operation_id = "update_article")]
    async fn update_article(
        &self,
        access: ApiWrite,
        aggregate_id: Path<String>,
        body: Body<ChangeArticle>,
        #[oai(name = "If-Match")] if_match: Header<Option<String>>,
    ) -> ApiResult<ArticleUpdateResponse> {
        let ChangeArticle { title, body, slug, tags, expected_version } = body.value;
        let change = ArticleChange {
            title: patch::required(title, "title", "a string")?,
            body: patch::clearable(body),
            slug: patch::required(slug, "slug", "1 to 200 of the characters a-z, 0-9, '-', '_' and '.'")?,
            tags: patch::clearable(tags),
        };
        let expected = expected_at(expected_version, if_match.as_deref())?;
        Ok(changed(&*access.0.change_article(&aggregate_id, change, expected).await?))
    }

    /// Publishes an article in its current state.
    ///
    /// Callers with the scope `content:read` then see this revision. Agents that subscribe to the trait `publishable`
    /// get tasks for the publication.
    #[oai(path = "/articles/:aggregate_id/publish", method = "post", operation_id = "publish_article")]
    async fn publish_article(
        &self,
        access: ApiWrite,
        aggregate_id: Path<String>,
        expected_version: Query<Option<Whole>>,
        #[oai(name = "If-Match")] if_match: Header<Option<String>>,
    ) -> ApiResult<ArticleUpdateResponse> {
        let expected = expected_at(expected_version.0, if_match.as_deref())?;
        Ok(changed(&*access.0.publish_article(&aggregate_id, expected).await?))
    }

    /// Unpublishes an article, which becomes a draft again.
    ///
    /// Callers with only the scope `content:read` no longer see the article. Title, text, slug and tags do not change.
    #[oai(path = "/articles/:aggregate_id/unpublish", method = "post", operation_id = "unpublish_article")]
    async fn unpublish_article(
        &self,
        access: ApiWrite,
        aggregate_id: Path<String>,
        expected_version: Query<Option<Whole>>,
        #[oai(name = "If-Match")] if_match: Header<Option<String>>,
    ) -> ApiResult<ArticleUpdateResponse> {
        let expected = expected_at(expected_version.0, if_match.as_deref())?;
        Ok(changed(&*access.0.unpublish_article(&aggregate_id, expected).await?))
    }

    /// Deletes an article. Its history stays in the log.
    ///
    /// The server appends `article.deleted`. Lists, searches and pipelines no longer include the article.
    #[oai(path = "/articles/:aggregate_id", method = "delete", operation_id = "delete_article")]
    async fn delete_article(
        &self,
        access: ApiWrite,
        aggregate_id: Path<String>,
        expected_version: Query<Option<Whole>>,
        #[oai(name = "If-Match")] if_match: Header<Option<String>>,
    ) -> ApiResult<ArticleDeletionResponse> {
        let expected = expected_at(expected_version.0, if_match.as_deref())?;
        access.0.delete_article(&aggregate_id, expected).await?;
        Ok(ArticleDeletionResponse::Done)
    }
}

fn changed(article: &Aggregate) -> ArticleUpdateResponse {
    ArticleUpdateResponse::Done(response(article), etag(article.version))
}

fn response(article: &Aggregate) -> JsonResponse<ArticleBody> {
    JsonResponse::large(article.size_bytes(), || ArticleBody::from(article))
}

fn read_perspective(perspective: Option<&str>) -> Result<Perspective, Error> {
    match perspective {
        None | Some("draft") => Ok(Perspective::Draft),
        Some("published") => Ok(Perspective::Published),
        Some(_) => Err(Error::invalid("`perspective` must be `draft` or `published`")),
    }
}
