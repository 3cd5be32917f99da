//! Projects: managed aggregates whose slugs are unique in the workspace.

use std::sync::Arc;

use super::call_context::{CallContext, Operation, first_event};
use super::rights::{ContentReader, Reader, Writer};
use super::{Page, PageLimit};
use crate::append::checks::unknown_project;
use crate::append::request::{AppendOutcome, Decide};
use crate::append::staging::object_of;
use crate::error::{Error, ErrorCode, Result};
use crate::model::aggregate::Aggregate;
use crate::model::builtin::PROJECT;
use crate::model::slug::{self, slugify};
use crate::model::value::Value;
use crate::state::State;

/// The slugs that a client may choose for a project or an article, for error messages.
const EXPECTED: &str = "expected 1 to 200 of the characters a-z, 0-9, '-', '_' and '.'";

/// A project to create.
#[derive(Debug, Clone, Default)]
pub struct NewProject {
    pub name: String,
    /// The slug. `None` derives the slug from the name.
    pub slug: Option<String>,
    pub description: Option<String>,
    /// The identity of the request. A repeat of the request returns the project that the first request created.
    pub request: Option<super::responses::IdempotentRequest>,
}

impl Writer {
    /// Creates a project. Returns the project and whether an earlier request created it.
    pub async fn create_project(&self, new: NewProject) -> Result<(Arc<Aggregate>, bool)> {
        let name = new.name.trim().to_owned();
        if name.is_empty() || name.chars().count() > 200 {
            return Err(Error::invalid_at("/name", "expected 1 to 200 characters, not only white space"));
        }
        let slug = match new.slug {
            Some(slug) => check_slug(slug)?,
            None => slugify(&name),
        };
        if slug.is_empty() {
            return Err(Error::invalid_at("/slug", "cannot derive a slug from the name; provide a slug"));
        }
        let (id, request) = (self.context.state().clock.new_id().to_string(), new.request);
        let description = new.description;
        let most = self.context.limits().await?.projects;
        let given_bytes = name.len() + slug.len() + description.as_ref().map_or(0, String::len);
        let decide: Decide = Box::new(move |view: &crate::append::view::View<'_>| {
            if view.by_slug(PROJECT, None, &slug).is_some() {
                return Err(Error::conflict(
                    ErrorCode::SlugTaken,
                    format!("another project already has the slug '{slug}'"),
                ));
            }
            view.check_count(PROJECT, most, ErrorCode::ProjectLimitReached)?;
            let payload = object_of([
                ("name", Some(Value::from(name.as_str()))),
                ("slug", Some(Value::from(slug.as_str()))),
                ("description", description.as_deref().map(Value::from)),
            ]);
            Ok(vec![first_event(&id, PROJECT, None, payload)])
        });
        Operation::perform(self, |operation| async move {
            let appended = operation.append(decide, request, given_bytes, None).await?;
            operation.context().created(&appended)
        })
        .await
    }
}

impl Reader {
    /// Returns the project with this id or slug.
    pub async fn project(&self, id_or_slug: &str) -> Result<Arc<Aggregate>> {
        self.context.refresh().await?;
        find_project(self.context.state(), id_or_slug).ok_or_else(|| Error::not_found("project", id_or_slug))
    }

    /// Returns a page of projects, newest first.
    pub async fn list_projects(&self, before: Option<u64>, limit: PageLimit) -> Result<Page<Arc<Aggregate>>> {
        self.context.list(Some(PROJECT), before, limit, |_| true).await
    }
}

impl ContentReader {
    /// Returns the project that a parameter of a request names. Fails with an input error, not with
    /// [`Error::NotFound`], if the project does not exist, or if the caller may see none of its content.
    pub async fn project_named(&self, id_or_slug: &str) -> Result<Arc<Aggregate>> {
        self.context.refresh().await?;
        let project = self.context.named_project(id_or_slug)?;
        if self.shows(&project).await { Ok(project) } else { Err(unknown_project(id_or_slug)) }
    }
}

impl CallContext {
    /// Returns the project that a request names by its id or slug. Fails if there is no such project.
    pub(super) fn named_project(&self, id_or_slug: &str) -> Result<Arc<Aggregate>> {
        find_project(self.state(), id_or_slug).ok_or_else(|| unknown_project(id_or_slug))
    }

    /// Returns the id of the project that a request names by its id or slug, or `None` if the request names no project.
    /// Fails if there is no such project.
    pub(super) fn project_id(&self, project: Option<&str>) -> Result<Option<Arc<str>>> {
        Ok(project.map(|project| self.named_project(project)).transpose()?.map(|found| found.id.text()))
    }

    /// Returns the created aggregate, in the state right after its creation. Also returns whether an earlier request
    /// has already created the aggregate.
    pub(super) fn created(&self, appended: &AppendOutcome) -> Result<(Arc<Aggregate>, bool)> {
        let none = || Error::not_found("aggregate", "");
        let event = appended.events.first().ok_or_else(none)?;
        let definition = self.state().types.get(&event.aggregate_type).ok_or_else(none)?;
        Ok((Arc::new(Aggregate::fold(None, event, &definition)), appended.is_repeat()))
    }
}

/// Returns the project with this id or slug from memory.
pub(super) fn find_project(state: &State, id_or_slug: &str) -> Option<Arc<Aggregate>> {
    let resident = &state.folded;
    let by_id = resident.get(id_or_slug).filter(|found| &*found.aggregate_type == PROJECT && !found.deleted);
    by_id.or_else(|| {
        let ids = resident.by_slug(PROJECT, None, id_or_slug);
        ids.first().and_then(|id| resident.get(id.as_str()))
    })
}

/// Validates a slug chosen by a client.
pub(super) fn check_slug(slug: String) -> Result<String> {
    let is_valid = slug::is_valid(&slug) && !slug.contains(|letter: char| letter.is_ascii_uppercase());
    if is_valid { Ok(slug) } else { Err(Error::invalid_at("/slug", EXPECTED)) }
}
