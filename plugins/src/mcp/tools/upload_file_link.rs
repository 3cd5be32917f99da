//! `upload_file_link`: creates a URL to which a file is uploaded without passing through the model.

use foldwork_engine::model::date::format_date;
use foldwork_engine::model::file_path::FileOwner;
use foldwork_engine::workspace::files::{NewFile, mime_type};
use foldwork_engine::{Error, Result, Writer};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::mcp::tool::{ToolCall, ToolWords};

pub(super) const WORDS: ToolWords = ToolWords {
    name: "upload_file_link",
    title: "Get a link to upload a file",
    description: "Returns a URL for uploading one file: send its bytes unchanged with HTTP PUT, as in `curl -T FILE \
        URL`. The URL needs no key, so keep it secret. It is valid for 15 minutes and one file, and fixes the file's \
        name and maximum size. A file that is already at the path is replaced. Once a file has been stored with it, \
        the URL is used up (409): request another one. Nothing is stored before the bytes are sent.",
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// The name of the file, such as `report.pdf`. The name must not contain slashes.
    filename: String,
    /// The media type of the file, such as `application/pdf`. Derived from the filename by default.
    mime_type: Option<String>,
    /// The maximum size of the file in bytes. The default is the server's limit.
    #[schemars(range(min = 1))]
    max_bytes: Option<u64>,
    /// The id of the aggregate to which the file is attached.
    aggregate_id: Option<String>,
    /// The type of the aggregate, if the aggregate does not exist yet.
    aggregate_type: Option<String>,
    /// The id or slug of the project.
    project_id: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Output {
    /// The URL to which the file's bytes are sent.
    url: String,
    /// The HTTP method of the upload: `PUT`.
    method: &'static str,
    /// The path of the stored file: `workspace/project/type/aggregate/filename`. The path contains `_` in place of a
    /// missing project, type or aggregate.
    path: String,
    mime_type: String,
    /// The maximum size of the file in bytes. Null means no limit.
    max_bytes: Option<u64>,
    expires_at: String,
}

pub(super) async fn upload_file_link(writer: Writer, arguments: Arguments, call: ToolCall) -> Result<Output> {
    let Arguments { filename, mime_type: given, max_bytes, aggregate_id, aggregate_type, project_id } = arguments;
    if let (Some(requested), Some(limit)) = (max_bytes, call.upload_bytes.filter(|limit| max_bytes > Some(*limit))) {
        return Err(Error::invalid_at(
            "/max_bytes",
            format!("expected at most {limit} bytes (the limit for a file), found {requested}"),
        ));
    }
    let max_bytes = max_bytes.or(call.upload_bytes);
    let mime_type = mime_type(given.as_deref(), &filename)?;
    let place = FileOwner { project: project_id, aggregate_type, aggregate_id };
    let new = NewFile { filename, mime_type: mime_type.clone(), place, ..NewFile::default() };
    let link = writer.upload_link(new, max_bytes).await?;
    let (url, expires_at) = (format!("{}{}", call.upload_url, link.token), format_date(link.expires_at));
    Ok(Output { url, method: "PUT", path: link.path, mime_type, max_bytes, expires_at })
}
