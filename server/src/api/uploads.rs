//! `/uploads`: files that come by a link, from whoever has it.

use std::sync::Arc;

use foldwork_engine::Engine;
use poem::web::Data;
use poem_openapi::OpenApi;
use poem_openapi::param::Query;

use super::Section;
use super::files::{Stored, stored};
use crate::download;
use crate::http::error::{ApiResult, answer};
use crate::wire::raw_body::RawBody;

pub struct Api;

#[OpenApi(tag = "Section::Files")]
impl Api {
    /// Stores the file that a link was made for. Its bytes are the body.
    ///
    /// Links are made by the tool `upload_file_link` of `/mcp`. A link is good for 15 minutes and says what is stored:
    /// path, media type and the most bytes; the body's own media type counts for nothing. It stands for whoever made it, and
    /// ends with their key, membership or plan. Where the file has changed since it was made, by this link too, it is refused
    /// (409 `file_changed`).
    #[oai(path = "/uploads", method = "put", operation_id = "upload_linked_file")]
    async fn upload_linked_file(
        &self,
        engine: Data<&Arc<Engine>>,
        /// The link, as it was handed out.
        link: Query<String>,
        body: RawBody,
    ) -> ApiResult<Stored> {
        let linked = answer(engine.linked_upload(&link).await)?;
        let upload = body.upload.at_most(linked.max_bytes());
        let announced = upload.announced;
        let (bytes, failure) = upload.blocks()?;
        let content_disposition = download::attachment(linked.filename());
        match linked.store(announced, content_disposition, bytes).await {
            Ok(uploaded) => Ok(stored(&uploaded)),
            Err(error) => Err(failure.or(error).into()),
        }
    }
}
