//! `/files`: storing, listing and deleting files.

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use bytes::Bytes;
use foldwork_engine::model::aggregate::Aggregate;
use foldwork_engine::model::date::format_date;
use foldwork_engine::model::file;
use foldwork_engine::model::file_path::{FileOwner, FilePath};
use foldwork_engine::model::value::Value;
use foldwork_engine::workspace::files::{
    FileLink, Incoming, NewFile, StorageUsage, UploadOutcome, attachment, mime_type,
};
use foldwork_engine::{Error, Writer};
use futures_util::StreamExt;
use poem::Request;
use poem::web::Data;
use poem_openapi::param::{Header, Path, Query};
use poem_openapi::{ApiResponse, Object, OpenApi};
use serde::{Deserialize, Serialize};

use super::section::Section;
use crate::auth::{ApiRead, ApiWrite, ContentRead};
use crate::download;
use crate::http::error::ApiResult;
use crate::http::offloading::offload;
use crate::http::routes::API;
use crate::wire::body::{Body, JsonResponse};
use crate::wire::idempotency::request_id;
use crate::wire::page::{PageBody, PageBytes, listed, page_limit, read_cursor};
use crate::wire::raw_body::RawBody;
use crate::wire::response::no_content;
use crate::wire::shown::shown;

pub struct Api;

/// A file to store.
#[derive(Object, Deserialize)]
#[serde(deny_unknown_fields)]
struct UploadFile {
    filename: String,
    /// The bytes, in base64.
    data: String,
    /// The media type; the default is derived from the filename.
    mime_type: Option<String>,
    /// The id of the aggregate that the file is attached to.
    aggregate_id: Option<String>,
    aggregate_type: Option<String>,
    /// The id or slug of the file's project.
    project_id: Option<String>,
}

#[derive(Object, Deserialize)]
#[serde(deny_unknown_fields)]
struct DeleteFile {
    path: String,
}

shown! {
    /// The metadata of a stored file.
    #[oai(rename = "StoredFile")]
    pub(super) struct FileBody from found: &Aggregate where {
        let text = |field| file::text(found, field).unwrap_or_default().to_owned();
        let optional = |field| found.state.get(field).and_then(Value::as_str).map(str::to_owned);
    };

    /// The path `workspace/project/type/aggregate/filename`, with `_` for each part that is absent.
    path: String = text(file::PATH),
    /// The id of the aggregate that represents the file. The aggregate's events are the file's history.
    file_id: String = found.id.to_string(),
    filename: String = text(file::FILENAME),
    mime_type: String = text(file::MIME_TYPE),
    /// The size in bytes.
    size: u64 = file::size_bytes(found),
    sha256: String = text(file::SHA256),
    /// The id of the aggregate that the file is attached to.
    aggregate_id: Option<String> = optional(file::ATTACHED_ID),
    aggregate_type: Option<String> = optional(file::ATTACHED_TYPE),
    project_id: Option<String> = found.project_id.as_deref().map(str::to_owned),
    version: u64 = found.version,
    created_at: String = format_date(found.created_at),
    updated_at: String = format_date(found.last_event_at),
}

listed!(FileBody as "FilePage": "A page of files.");

/// A link for downloading a file's bytes. The link needs no token.
#[derive(Object, Serialize)]
#[oai(rename = "FileLink")]
struct LinkBody {
    url: String,
    expires_at: String,
}

shown! {
    /// The storage usage of the workspace.
    #[oai(rename = "StorageUsage")]
    struct UsageBody from usage: StorageUsage;

    /// The number of bytes of stored files, of unfinished uploads, and of deleted or replaced files whose bytes the
    /// store has not removed yet.
    used_bytes: u64 = usage.used_bytes,
    /// The limit of `used_bytes`, or null if the workspace has no limit.
    quota_bytes: Option<u64> = usage.quota_bytes,
    files: u64 = usage.files,
    /// The number of bytes of the files that `GET /files` lists.
    file_bytes: u64 = usage.file_bytes,
}

#[derive(ApiResponse)]
pub(super) enum FileUploadResponse {
    /// A new file was stored.
    #[oai(status = 201)]
    New(JsonResponse<FileBody>, #[oai(header = "Location")] String),
    /// The file at this path was replaced or already had the same content and metadata, or an earlier request with the
    /// same idempotency key stored the file.
    #[oai(status = 200)]
    Known(
        JsonResponse<FileBody>,
        #[oai(header = "Location")] String,
        #[oai(header = "Idempotency-Replayed")] Option<String>,
    ),
}

no_content!(FileDeletionResponse: "The file was deleted. Its history stays in the log.");

const LIST: &str = "files";
/// The base64 decoder. Padding is optional.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);
/// The maximum size in bytes of a block of a decoded file.
const BLOCK_BYTES: usize = 128 << 10;

#[OpenApi(tag = "Section::Files")]
impl Api {
    /// Lists files, newest first.
    ///
    /// The list contains only metadata. `GET /files/{path}` returns a link to the bytes of a file. A page may have
    /// fewer rows than `limit`, because its size in bytes is limited as well.
    #[oai(path = "/files", method = "get", operation_id = "list_files")]
    async fn list_files(
        &self,
        access: ApiRead,
        /// Only files whose paths begin with these segments. The first segment of every path is the workspace's id.
        prefix: Query<Option<String>>,
        #[oai(name = "limit")] Query(rows): Query<Option<u64>>,
        /// The `next_cursor` of the previous page.
        cursor: Query<Option<String>>,
        page_bytes: Data<&PageBytes>,
    ) -> ApiResult<JsonResponse<PageBody<FileBody>>> {
        let before = read_cursor(LIST, cursor.as_deref())?;
        let page = access.0.list_files(prefix.as_deref(), before, page_limit(rows, *page_bytes.0)?).await?;
        let bytes = page.items.iter().map(|file| file.size_bytes()).sum();
        Ok(JsonResponse::large(bytes, || PageBody::new(page, LIST, |found| FileBody::from(&*found))))
    }

    /// Stores a file whose bytes are in the JSON body, encoded in base64. A file at the same path is replaced.
    ///
    /// The path is built from the project, the aggregate and the filename. An upload that would exceed the workspace's
    /// quota is rejected (400 `storage_quota_exceeded`).
    #[oai(path = "/files", method = "post", operation_id = "create_file")]
    async fn create_file(
        &self,
        access: ApiWrite,
        body: Body<UploadFile>,
        #[oai(name = "Idempotency-Key")] key: Header<Option<String>>,
    ) -> ApiResult<FileUploadResponse> {
        let Body { value: UploadFile { filename, data, mime_type, aggregate_id, aggregate_type, project_id }, text } =
            body;
        let request = key.0.map(|key| request_id(access.0.caller().user_id(), &key, "create_file", &text)).transpose();
        let request = request?;
        drop(text);
        let decoded = offload(data.len(), || BASE64.decode(data));
        let bytes = decoded.map_err(|error| Error::invalid_at("/data", format!("expected base64: {error}")))?;
        let mime_type = self::mime_type(mime_type.as_deref(), &filename)?;
        let new = NewFile {
            content_disposition: attachment(&filename),
            filename,
            mime_type,
            place: FileOwner { project: project_id, aggregate_type, aggregate_id },
            size: Some(bytes.len() as u64),
            request,
            ..NewFile::default()
        };
        Ok(stored(&access.0.upload_file(new, blocks(bytes)).await?))
    }

    /// Returns a link to the file's bytes that is valid for an hour and needs no token.
    ///
    /// Slashes in the path may be sent as `/` or as `%2F`. Anybody with the link can download this file until the link
    /// expires. A key with only the scope `content:read` gets links only to files that are attached to published
    /// articles. Such a link also stops working when the article is unpublished.
    #[oai(path = "/files/:path", method = "get", operation_id = "get_file")]
    async fn get_file(
        &self,
        access: ContentRead,
        request: &Request,
        /// The path `workspace/project/type/aggregate/filename`. Slashes may be sent as `/` or as `%2F`.
        path: Path<String>,
    ) -> ApiResult<JsonResponse<LinkBody>> {
        Ok(JsonResponse::new(&match access.0.file_link(&path).await? {
            FileLink::Stored { url, expires_at } => LinkBody { url, expires_at: format_date(expires_at) },
            FileLink::Signed(link) => {
                let expires_at = format_date(link.expires_s.saturating_mul(1_000));
                LinkBody { url: download::url(request, &link), expires_at }
            }
        }))
    }

    /// Stores a file whose bytes are the request body. A file at the same path is replaced.
    ///
    /// The server streams the bytes to the store, so the file may be larger than a JSON body. The setting `[files]
    /// upload_limit` limits the file's size. The path is the file's full path, as in responses.
    #[oai(path = "/files/:path", method = "put", operation_id = "upload_file")]
    async fn upload_file(
        &self,
        access: ApiWrite,
        /// The path `workspace/project/type/aggregate/filename`. Slashes may be sent as `/` or as `%2F`.
        path: Path<String>,
        body: RawBody,
    ) -> ApiResult<FileUploadResponse> {
        let RawBody { upload, content_type } = body;
        let announced = upload.announced;
        let bytes = upload.blocks()?;
        let new = new_at(&access.0, path.0, content_type.as_deref(), announced)?;
        Ok(stored(&access.0.upload_file(new, bytes).await?))
    }

    /// Deletes a file.
    ///
    /// The file's bytes count towards the quota until the store has removed the bytes. The file's history stays in the
    /// log.
    #[oai(path = "/files/delete", method = "post", operation_id = "delete_file")]
    async fn delete_file(&self, access: ApiWrite, body: Body<DeleteFile>) -> ApiResult<FileDeletionResponse> {
        access.0.delete_file(&body.path).await?;
        Ok(FileDeletionResponse::Done)
    }

    /// Returns the workspace's storage usage and its quota.
    ///
    /// The usage includes unfinished uploads, because the quota also limits unfinished uploads.
    #[oai(path = "/system/storage", method = "get", operation_id = "get_storage")]
    async fn get_storage(&self, access: ApiRead) -> ApiResult<JsonResponse<UsageBody>> {
        Ok(JsonResponse::new(&UsageBody::from(access.0.storage_usage().await?)))
    }
}

/// Returns the description of a new file from the path and the headers of a request.
fn new_at(writer: &Writer, path: String, mime_type: Option<&str>, size: Option<u64>) -> Result<NewFile, Error> {
    let invalid = |message: String| Error::invalid(format!("path: {message}"));
    let (workspace, place, filename) = FilePath::read(&path).map_err(invalid)?;
    if workspace != writer.caller().workspace_id() {
        return Err(Error::not_found("workspace", &workspace));
    }
    let mime_type = self::mime_type(mime_type, &filename)?;
    Ok(NewFile {
        content_disposition: attachment(&filename),
        filename,
        mime_type,
        place,
        path: Some(path),
        size,
        ..NewFile::default()
    })
}

pub(super) fn stored(uploaded: &UploadOutcome) -> FileUploadResponse {
    let body = FileBody::from(&*uploaded.file);
    let location = format!("{}/files/{}", API, download::encoded(&body.path));
    let body = JsonResponse::new(&body);
    match uploaded {
        UploadOutcome { repeated: true, .. } => FileUploadResponse::Known(body, location, Some("true".into())),
        UploadOutcome { replaced: true, .. } => FileUploadResponse::Known(body, location, None),
        _ => FileUploadResponse::New(body, location),
    }
}

/// Splits bytes in memory into blocks, like an upload that arrives in parts.
fn blocks(bytes: Vec<u8>) -> Incoming {
    let bytes = Bytes::from(bytes);
    let offsets = (0..bytes.len()).step_by(BLOCK_BYTES);
    let blocks = offsets.map(move |begin| Ok(bytes.slice(begin..bytes.len().min(begin + BLOCK_BYTES))));
    futures_util::stream::iter(blocks).boxed()
}
