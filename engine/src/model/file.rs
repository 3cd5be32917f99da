//! Files: what the state of one says, and which bytes it names.

use std::sync::Arc;

use super::aggregate::Aggregate;
use super::value::Value;

/// Fields of a file's state.
pub const PATH: &str = "path";
pub const FILENAME: &str = "filename";
pub const MIME_TYPE: &str = "mime_type";
pub const SIZE: &str = "size";
pub const SHA256: &str = "sha256";
/// Names the bytes: an upload is never written again.
pub const UPLOAD_ID: &str = "upload_id";
/// The aggregate that the file is attached to. A state's own `aggregate_type` is `file`, hence the names.
pub const ATTACHED_ID: &str = "attached_id";
pub const ATTACHED_TYPE: &str = "attached_type";

/// A text of a file's state.
pub fn text<'a>(file: &'a Aggregate, field: &str) -> Option<&'a str> {
    file.state.get(field).and_then(Value::as_str)
}

/// How many bytes a file has.
pub fn size_bytes(file: &Aggregate) -> u64 {
    file.state.get(SIZE).and_then(Value::as_int).and_then(|size| u64::try_from(size).ok()).unwrap_or(0)
}

/// The upload that a file names, and its size. What is deleted names none.
pub fn named_bytes(file: Option<&Aggregate>) -> Option<(Arc<str>, u64)> {
    let file = file.filter(|file| !file.deleted)?;
    Some((text(file, UPLOAD_ID)?.into(), size_bytes(file)))
}
