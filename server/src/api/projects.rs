//! `/projects`: listing, creating and reading projects.

use foldwork_engine::Writer;
use foldwork_engine::workspace::projects::NewProject;
use poem::web::Data;
use poem_openapi::param::{Header, Query};
use poem_openapi::{Object, OpenApi};
use serde::Deserialize;

use super::section::Section;
use crate::auth::{ApiRead, ApiWrite};
use crate::http::error::ApiResult;
use crate::http::etag::{etag, is_known};
use crate::http::routes::API;
use crate::wire::body::{Body, JsonResponse};
use crate::wire::idempotency::{CreationOutcome, CreationResponse, idempotent};
use crate::wire::page::{PageBody, PageBytes, listed, page_limit, read_cursor};
use crate::wire::project::ProjectBody;
use crate::wire::response::revalidated;

pub struct Api;

/// A project to create.
#[derive(Object, Deserialize)]
#[serde(deny_unknown_fields)]
struct CreateProject {
    name: String,
    /// The slug, which must be unique in the workspace; the default is derived from the name.
    slug: Option<String>,
    description: Option<String>,
}

listed!(ProjectBody as "ProjectPage": "A page of projects.");

revalidated!(ProjectResponse of ProjectBody: "The project.");

const LIST: &str = "projects";

#[OpenApi(tag = "Section::Workspace")]
impl Api {
    /// Lists all projects of the workspace, newest first.
    ///
    /// A page may have fewer rows than `limit`, because its size in bytes is limited as well.
    ///
    /// A project groups aggregates. The field or parameter `project_id` of a request accepts the slug of a project as
    /// well.
    #[oai(path = "/projects", method = "get", operation_id = "list_projects")]
    async fn list_projects(
        &self,
        access: ApiRead,
        #[oai(name = "limit")] Query(rows): Query<Option<u64>>,
        /// The `next_cursor` of the previous page.
        cursor: Query<Option<String>>,
        page_bytes: Data<&PageBytes>,
    ) -> ApiResult<JsonResponse<PageBody<ProjectBody>>> {
        let before = read_cursor(LIST, cursor.as_deref())?;
        let page = access.0.list_projects(before, page_limit(rows, *page_bytes.0)?).await?;
        let bytes = page.items.iter().map(|project| project.size_bytes()).sum();
        Ok(JsonResponse::large(bytes, || PageBody::new(page, LIST, |project| ProjectBody::from(&*project))))
    }

    /// Creates a project.
    ///
    /// The slug must be unique in the workspace (409 `slug_taken`). If the slug is absent, the server derives a slug
    /// from the name.
    #[oai(path = "/projects", method = "post", operation_id = "create_project")]
    async fn create_project(
        &self,
        access: ApiWrite,
        body: Body<CreateProject>,
        #[oai(name = "Idempotency-Key")] key: Header<Option<String>>,
    ) -> ApiResult<CreationResponse<ProjectBody>> {
        let Body { value: CreateProject { name, slug, description }, text } = body;
        let make = async move |writer: Writer, request| {
            let (project, repeated) = writer.create_project(NewProject { name, slug, description, request }).await?;
            let location = format!("{}/projects/{}", API, project.id);
            Ok(CreationOutcome { body: ProjectBody::from(&*project), location, repeated })
        };
        idempotent(&access.0, key.0, "create_project", &text, make).await
    }

    /// Returns one project by its id or slug.
    ///
    /// The response contains the current name, slug and description. The history of a project is in the log, because a
    /// project is an aggregate.
    #[oai(path = "/projects/:project_id", method = "get", operation_id = "get_project")]
    async fn get_project(
        &self,
        access: ApiRead,
        project_id: poem_openapi::param::Path<String>,
        #[oai(name = "If-None-Match")] if_none_match: Header<Option<String>>,
    ) -> ApiResult<ProjectResponse> {
        let project = access.0.project(&project_id).await?;
        let tag = etag(project.version);
        Ok(match is_known(if_none_match.as_deref(), &tag) {
            true => ProjectResponse::Known(tag),
            false => ProjectResponse::Found(JsonResponse::new(&ProjectBody::from(&*project)), tag),
        })
    }
}
