//! `/uploads`: uploads through a link that needs no token.

use std::sync::Arc;

use foldwork_engine::Engine;
use foldwork_engine::workspace::files::attachment;
use poem::web::Data;
use poem_openapi::OpenApi;
use poem_openapi::param::Query;

use super::files::{FileUploadResponse, stored};
use super::section::Section;
use crate::http::error::ApiResult;
use crate::wire::raw_body::RawBody;

pub struct Api;

#[OpenApi(tag = "Section::Files")]
impl Api {
    /// Stores the file that a link was created for. The request body is the file's bytes.
    ///
    /// The tool `upload_file_link` of `/mcp` creates links. A link determines the path, the media type and the maximum
    /// size of the file. The body's own media type is ignored. A link is valid for 15 minutes, but not longer than the
    /// key or token with which the link was created. The upload is made as the user who created the link, and the link
    /// becomes invalid when that user's key, membership or plan ends. If the file, or its project, type or aggregate,
    /// has changed since the link was created, the upload is rejected (409 `file_changed`). An earlier upload through
    /// the same link also counts as a change.
    #[oai(path = "/uploads", method = "put", operation_id = "upload_linked_file")]
    async fn upload_linked_file(
        &self,
        engine: Data<&Arc<Engine>>,
        /// The signed part of the upload URL, unchanged.
        link: Query<String>,
        body: RawBody,
    ) -> ApiResult<FileUploadResponse> {
        let linked = engine.linked_upload(&link).await?;
        let upload = body.upload.at_most(linked.max_bytes());
        let announced = upload.announced;
        let bytes = upload.blocks()?;
        let content_disposition = attachment(linked.filename());
        Ok(stored(&linked.store(announced, content_disposition, bytes).await?))
    }
}
