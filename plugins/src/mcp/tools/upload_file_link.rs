//! `upload_file_link`: a URL to which the bytes of a file are sent, past the model.

use foldwork_engine::model::date::format_date;
use foldwork_engine::model::file_path::Place;
use foldwork_engine::workspace::files::{NewFile, mime_type};
use foldwork_engine::{Error, Result, Writer};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::mcp::tool::{Call, Effect, Tool, Words};

const WORDS: Words = Words {
    name: "upload_file_link",
    title: "Get a link to upload a file",
    description: "Gives a URL by which a file is stored: send its bytes, as they are, with HTTP PUT, as in `curl -T FILE URL`. \
        The URL needs no key, so tell it to nobody else; it is good for 15 minutes and one file, which it names and bounds. A \
        file that is at the path already is replaced. Once anything is stored there the URL is used up (409): get another one. \
        Nothing is stored before the bytes are sent.",
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The name that the file is to have, such as `report.pdf`. No slashes.
    filename: String,
    /// Its media type, such as `application/pdf`; told by the name where it is not given.
    mime_type: Option<String>,
    /// Bytes that it may have at most; as many as the server takes where it is not given.
    #[schemars(range(min = 1))]
    max_bytes: Option<u64>,
    /// The aggregate that the file is attached to.
    aggregate_id: Option<String>,
    /// The type of that aggregate, where it is not there yet.
    aggregate_type: Option<String>,
    /// A project's id or slug.
    project_id: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct Answer {
    /// Where the bytes are sent to.
    url: String,
    /// `PUT`.
    method: &'static str,
    /// Where the file will be: `workspace/project/type/aggregate/filename`.
    path: String,
    mime_type: String,
    /// Null: there is no bound.
    max_bytes: Option<u64>,
    expires_at: String,
}

pub(super) fn tool() -> Tool {
    // The file that was at the path is replaced, once the link is used.
    Tool::writing(&WORDS, Effect { destructive: true, idempotent: false }, upload_file_link)
}

async fn upload_file_link(writer: Writer, arguments: Arguments, call: Call) -> Result<Answer> {
    let Arguments { filename, mime_type: given, max_bytes, aggregate_id, aggregate_type, project_id } = arguments;
    if let (Some(wanted), Some(most)) = (max_bytes, call.upload_bytes.filter(|most| max_bytes > Some(*most))) {
        return Err(Error::invalid_at("/max_bytes", format!("a file may have {most} bytes here, not {wanted}")));
    }
    let max_bytes = max_bytes.or(call.upload_bytes);
    let mime_type = mime_type(given.as_deref(), &filename)?;
    let place = Place { project: project_id, aggregate_type, aggregate_id };
    let new = NewFile { filename, mime_type: mime_type.clone(), place, ..NewFile::default() };
    let link = writer.upload_link(new, max_bytes).await?;
    let (url, expires_at) = (format!("{}{}", call.upload_url, link.token), format_date(link.expires_at));
    Ok(Answer { url, method: "PUT", path: link.path, mime_type, max_bytes, expires_at })
}
