//! Files: the fields of a file's state, and the upload with the file's bytes.

use std::sync::Arc;

use super::aggregate::Aggregate;
use super::value::Value;

/// The name of the field with the file's path.
pub const PATH: &str = "path";
/// The name of the field with the last segment of the file's path.
pub const FILENAME: &str = "filename";
/// The name of the field with the file's media type.
pub const MIME_TYPE: &str = "mime_type";
/// The name of the field with the file's size, in bytes.
pub const SIZE: &str = "size";
/// The name of the field with the SHA-256 of the file's bytes.
pub const SHA256: &str = "sha256";
/// The name of the field with the id of the upload that contains the file's bytes. An upload never changes.
pub const UPLOAD_ID: &str = "upload_id";
/// The name of the field with the id of the aggregate that the file is attached to. The name differs from
/// `aggregate_id`, which identifies the file itself.
pub const ATTACHED_ID: &str = "attached_id";
/// The name of the field with the type of the aggregate that the file is attached to. The name differs from
/// `aggregate_type`, which is the type of the file itself.
pub const ATTACHED_TYPE: &str = "attached_type";

/// Returns a string field of a file's state.
pub fn text<'a>(file: &'a Aggregate, field: &str) -> Option<&'a str> {
    file.state.get(field).and_then(Value::as_str)
}

/// Returns the size of a file, in bytes, or 0 if the state contains no valid size.
pub fn size_bytes(file: &Aggregate) -> u64 {
    file.state.get(SIZE).and_then(Value::as_int).and_then(|size| u64::try_from(size).ok()).unwrap_or(0)
}

/// Returns the id of the upload that a file refers to, and the size of the upload, in bytes. Returns `None` if the file
/// does not exist, is deleted or refers to no upload.
pub fn upload_of(file: Option<&Aggregate>) -> Option<(Arc<str>, u64)> {
    let file = file.filter(|file| !file.deleted)?;
    Some((text(file, UPLOAD_ID)?.into(), size_bytes(file)))
}
