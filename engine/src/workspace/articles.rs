//! Articles: aggregates of the built-in type `article`, with slugs unique in a project, drafts and published revisions.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use strum::{EnumString, IntoStaticStr, VariantArray};

use super::call_context::{CallContext, Operation, first_event};
use super::projects::check_slug;
use super::responses::IdempotentRequest;
use super::rights::{ContentReader, Writer};
use crate::append::request::Decide;
use crate::append::staging::object_of;
use crate::append::view::View;
use crate::error::{Error, Result};
use crate::model::aggregate::Aggregate;
use crate::model::article::{PUBLISHED, PUBLISHED_VERSION, STATUS, published_at, published_version};
use crate::model::builtin::ARTICLE;
use crate::model::closed_set::named;
use crate::model::date::format_date;
use crate::model::event::StreamExpectation;
use crate::model::fold::DELETED;
use crate::model::slug;
use crate::model::value::{Object, Value};

/// An article to create.
#[derive(Debug, Clone, Default)]
pub struct NewArticle {
    pub project: Option<String>,
    pub title: String,
    /// The body, the slug and the tags; the `title` of the change is ignored. If `slug` is `None`, a unique slug is
    /// derived from the title.
    pub change: ArticleChange,
    pub request: Option<IdempotentRequest>,
}

/// A change to an article. Fields that are `None` stay unchanged.
#[derive(Debug, Clone, Default)]
pub struct ArticleChange {
    pub title: Option<String>,
    pub body: Option<String>,
    pub slug: Option<String>,
    pub tags: Option<Vec<String>>,
}

impl ArticleChange {
    /// Returns the size of the fields in a payload, in bytes. A tag takes more memory in a payload than its text.
    fn size_bytes(&self) -> usize {
        let texts = [&self.title, &self.body, &self.slug].into_iter().flatten().map(String::len);
        texts.chain(self.tags.iter().flatten().map(|tag| size_of::<Value>() + tag.len())).sum()
    }

    /// Returns the payload of the event that records the change. The payload contains the given slug, not the slug of
    /// the change.
    fn payload(&self, slug: Option<&str>) -> Object {
        object_of([
            ("title", self.title.as_deref().map(Value::from)),
            ("body", self.body.as_deref().map(Value::from)),
            ("slug", slug.map(Value::from)),
            ("tags", self.tags.as_deref().map(tag_values)),
        ])
    }
}

named!(Perspective);

/// The revision of articles that a reader sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq, EnumString, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "lowercase")]
pub enum Perspective {
    Draft,
    Published,
}

impl ContentReader {
    /// Returns the draft or the published revision of an article, as `requested`. Callers who may not see drafts always
    /// get the published revision.
    pub async fn article(&self, id: &str, requested: Perspective) -> Result<Arc<Aggregate>> {
        self.context.refresh().await?;
        let article = self.context.live(ARTICLE, id)?;
        match self.shown(requested) {
            Perspective::Draft => Ok(article),
            Perspective::Published => {
                self.context.published(article).await?.ok_or_else(|| Error::not_found("article", id))
            }
        }
    }

    /// Returns the cursor of an article in lists, or `None` if no article has this id or the caller may not see the
    /// article.
    pub async fn place_of(&self, id: &str) -> Result<Option<u64>> {
        self.context.refresh().await?;
        let sees_all = self.shown(Perspective::Draft) == Perspective::Draft;
        let found = self.context.state().folded.get(id).filter(|found| &*found.aggregate_type == ARTICLE);
        let seen = found.filter(|found| sees_all || (!found.deleted && published_version(found).is_some()));
        Ok(seen.map(|found| found.first_position))
    }

    /// Returns whether the caller may see a project. Callers who may not see drafts see only projects with published
    /// articles.
    pub(super) async fn shows(&self, project: &Aggregate) -> bool {
        if self.shown(Perspective::Draft) == Perspective::Draft {
            return true;
        }
        let mut is_shown = false;
        let visit = |article: &Arc<Aggregate>| {
            is_shown = !article.deleted
                && article.project_id.as_deref() == Some(project.id.as_str())
                && published_version(article).is_some();
            if is_shown { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        self.context.visit_newest(Some(ARTICLE), None, visit).await;
        is_shown
    }

    /// Returns the published revisions of the most recently published articles, newest first.
    pub async fn newest_published(&self, project_id: Option<&str>, limit: usize) -> Result<Vec<Arc<Aggregate>>> {
        self.context.refresh().await?;
        let mut newest = BTreeMap::new();
        let visit = |article: &Arc<Aggregate>| {
            let is_listed = !article.deleted
                && published_version(article).is_some()
                && project_id.is_none_or(|id| article.project_id.as_deref() == Some(id));
            if is_listed {
                newest.insert((published_at(article), article.first_position), article.clone());
                if newest.len() > limit {
                    newest.pop_first();
                }
            }
            ControlFlow::Continue(())
        };
        self.context.visit_newest(Some(ARTICLE), None, visit).await;
        let mut published = Vec::with_capacity(newest.len());
        for article in newest.into_values().rev() {
            published.extend(self.context.published(article).await?);
        }
        Ok(published)
    }
}

impl Writer {
    /// Creates an article as a draft. Returns the article and whether an earlier request created it.
    pub async fn create_article(&self, new: NewArticle) -> Result<(Arc<Aggregate>, bool)> {
        let NewArticle { project, title, mut change, request } = new;
        change.slug = change.slug.map(check_slug).transpose()?;
        change.title = Some(title.clone());
        change.body.get_or_insert_default();
        change.tags.get_or_insert_default();
        let (id, given_bytes) = (self.context.state().clock.new_id().to_string(), change.size_bytes());
        let decide: Decide = Box::new(move |view: &View<'_>| {
            let project_id = view.named_project(project.as_deref())?;
            let slug = match &change.slug {
                // The append rejects a slug that another article has.
                Some(slug) => slug.clone(),
                None => view.free_slug(project_id.as_deref(), &slug::derived(&title, ARTICLE), None),
            };
            let payload = change.payload(Some(&slug));
            Ok(vec![first_event(&id, ARTICLE, project_id.map(|id| id.to_string()), payload)])
        });
        Operation::perform(self, |operation| async move {
            let appended = operation.append(decide, request, given_bytes, None).await?;
            operation.context().created(&appended)
        })
        .await
    }

    /// Changes the draft of an article. Does not change the published revision.
    pub async fn change_article(
        &self,
        id: &str,
        change: ArticleChange,
        expected: StreamExpectation,
    ) -> Result<Arc<Aggregate>> {
        let slug = change.slug.clone().map(check_slug).transpose()?;
        let given_bytes = change.size_bytes();
        self.append_to_article(id, expected, "updated", given_bytes, move |article| {
            let requested = change.payload(slug.as_deref());
            // Fields that keep their value are not part of the event.
            let changed: Object =
                requested.into_iter().filter(|(name, value)| article.state.get(name) != Some(value)).collect();
            Ok((!changed.is_empty()).then_some(changed))
        })
        .await
    }

    /// Publishes the current draft of an article. Appends no event if the current draft is already published.
    pub async fn publish_article(&self, id: &str, expected: StreamExpectation) -> Result<Arc<Aggregate>> {
        let now = self.context.state().clock.now_ms();
        self.append_to_article(id, expected, "published", 0, move |article| {
            if published_version(article) == Some(article.version) {
                return Ok(None);
            }
            Ok(Some(object_of([
                (STATUS, Some(Value::from(PUBLISHED))),
                (PUBLISHED_VERSION, Some(Value::Int(article.version as i64 + 1))),
                ("published_at", Some(Value::from(format_date(now)))),
            ])))
        })
        .await
    }

    /// Unpublishes an article. Its draft stays. Appends no event if the article is not published.
    pub async fn unpublish_article(&self, id: &str, expected: StreamExpectation) -> Result<Arc<Aggregate>> {
        self.append_to_article(id, expected, "unpublished", 0, |article| {
            let nothing = [
                (STATUS, Some(Value::from("draft"))),
                (PUBLISHED_VERSION, Some(Value::Null)),
                ("published_at", Some(Value::Null)),
            ];
            Ok(published_version(article).map(|_| object_of(nothing)))
        })
        .await
    }

    /// Deletes an article. Its history stays.
    pub async fn delete_article(&self, id: &str, expected: StreamExpectation) -> Result<()> {
        self.append_to_article(id, expected, DELETED, 0, |_| Ok(Some(Object::new()))).await.map(drop)
    }

    /// Appends one event to an existing article, unless `payload` returns `None`.
    async fn append_to_article(
        &self,
        id: &str,
        expected: StreamExpectation,
        verb: &'static str,
        given_bytes: usize,
        payload: impl Fn(&Aggregate) -> Result<Option<Object>> + Send + Sync + 'static,
    ) -> Result<Arc<Aggregate>> {
        // Another server may have created the article.
        self.context.state().refresh().await?;
        self.context.live(ARTICLE, id)?;
        let payload = move |_: &View<'_>, article: &Aggregate| payload(article);
        Operation::change(self, (ARTICLE, id), expected, verb, given_bytes, payload).await
    }
}

impl CallContext {
    /// Returns the published revision of an article, or `None` if the article is not published.
    pub(super) async fn published(&self, article: Arc<Aggregate>) -> Result<Option<Arc<Aggregate>>> {
        let Some(version) = published_version(&article) else { return Ok(None) };
        if version >= article.version {
            return Ok(Some(article));
        }
        self.state().published(&article.id, version).await
    }
}

fn tag_values(tags: &[String]) -> Value {
    tags.iter().map(|tag| Value::from(tag.as_str())).collect::<Vec<_>>().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_size_of_an_article_change_is_close_to_the_size_of_its_payload() {
        let text = |bytes: usize| Some("x".repeat(bytes));
        let tags = Some(vec!["x".repeat(40); 25]);
        let change = ArticleChange { title: text(1_000), body: text(3_000_000), slug: text(100), tags };
        let (counted, payload) = (change.size_bytes(), change.payload(change.slug.as_deref()));
        assert!(counted.abs_diff(payload.size_bytes()) < 1_024, "{counted} of {}", payload.size_bytes());
        assert_eq!(ArticleChange::default().size_bytes(), 0);
    }
}
