//! Upload links. A link names a path, and the version of the file at the path when the link was created. The upload can
//! replace only this version. The holder of the link sends the bytes.
//!
//! An upload through a link runs on behalf of the link's creator, with the rights that the creator has at the time of
//! the upload.

use serde::{Deserialize, Serialize};

use super::download::refused;
use super::receive::Incoming;
use super::upload::{NewFile, UploadOutcome};
use crate::access::Access;
use crate::access::signing::Purpose;
use crate::access::stored_caller::StoredCaller;
use crate::error::{Error, ErrorCode, Result};
use crate::model::access::Caller;
use crate::model::event::StreamExpectation;
use crate::model::file_path::FilePath;
use crate::model::id::AggregateId;
use crate::workspace::call_context::CallContext;
use crate::workspace::rights::{Uploader, Writer};

/// The lifetime of a link, in milliseconds. A link expires earlier if the right of its creator expires earlier.
pub const VALID_MS: i64 = 15 * 60 * 1_000;

/// An upload link. A request with the link needs no other credential.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UploadLink {
    /// The token of the link. The token can be part of a URL without escaping.
    pub token: String,
    pub path: String,
    /// The expiry time, in milliseconds since the epoch.
    pub expires_at: i64,
}

/// The signed contents of a link.
#[derive(Serialize, Deserialize)]
struct LinkClaims {
    path: String,
    mime_type: String,
    max_bytes: Option<u64>,
    /// The version of the file's stream when the link was created.
    version: u64,
    by: StoredCaller,
    expires_at: i64,
}

/// The right to store the file that a link names.
pub struct LinkedUpload {
    writer: Writer,
    new: NewFile,
    max_bytes: Option<u64>,
}

impl Writer {
    /// Returns a link. The holder of the link can store one file, once, without another credential. The file has the
    /// place, name and media type of `new`. The link is rejected if the file at the path has changed since the link was
    /// created.
    pub async fn upload_link(&self, new: NewFile, max_bytes: Option<u64>) -> Result<UploadLink> {
        let state = self.context.state();
        state.refresh().await?;
        let target = self.context.target(&new)?;
        let (caller, soon) = (self.context.caller(), state.clock.now_ms().saturating_add(VALID_MS));
        let expires_at = caller.expires_at.map_or(soon, |end| end.min(soon));
        let claims = LinkClaims {
            path: target.path.as_str().to_owned(),
            mime_type: new.mime_type,
            max_bytes,
            version: version_of(&self.context, &target.id),
            by: StoredCaller::from(caller),
            expires_at,
        };
        let token = self.context.access().sign_claims(Purpose::UploadLink, &claims).await?;
        Ok(UploadLink { token, path: claims.path, expires_at })
    }
}

/// A link that was issued by this installation and has not expired.
pub struct CheckedLink(LinkClaims);

impl CheckedLink {
    /// Verifies a link. Returns the link and its creator, with the rights that the creator has now.
    pub async fn check(access: &Access, token: &str, now_ms: i64) -> Result<(CheckedLink, Caller)> {
        let claims: Option<LinkClaims> = access.verified_claims(Purpose::UploadLink, token).await?;
        let claims = claims.filter(|claims| now_ms < claims.expires_at).ok_or_else(refused)?;
        let caller = access.return_of(&claims.by).await.map_err(refusing)?;
        Ok((CheckedLink(claims), caller))
    }

    /// Checks everything that can be checked before the bytes arrive, and returns the upload that the link allows.
    /// `right` is the right of the link's creator.
    pub async fn upload(self, right: Uploader) -> Result<LinkedUpload> {
        let LinkClaims { path, mime_type, max_bytes, version, .. } = self.0;
        let (_, place, filename) = FilePath::read(&path).map_err(Error::invalid)?;
        let expected = StreamExpectation::at(version);
        let new = NewFile { filename, mime_type, place, path: Some(path), expected, ..NewFile::default() };
        let writer = right.into_writer();
        writer.context.state().refresh().await?;
        // The project or type may have been deleted, or the aggregate may be in another project now.
        let target = writer.context.target(&new).map_err(|_| changed())?;
        match version_of(&writer.context, &target.id) == version {
            true => Ok(LinkedUpload { writer, new, max_bytes }),
            false => Err(changed()),
        }
    }
}

impl LinkedUpload {
    /// Returns the name of the file to store.
    pub fn filename(&self) -> &str {
        &self.new.filename
    }

    /// Returns the maximum size of the file in bytes, if the link sets a maximum.
    pub fn max_bytes(&self) -> Option<u64> {
        self.max_bytes
    }

    /// Stores the file like any other upload. The request provides the size and the content disposition, because the
    /// link contains neither.
    pub async fn store(self, size: Option<u64>, content_disposition: String, bytes: Incoming) -> Result<UploadOutcome> {
        let new = NewFile { size, content_disposition, ..self.new };
        self.writer.upload_file(new, bytes).await.map_err(|error| match error {
            Error::Conflict { code: ErrorCode::VersionConflict, .. } => changed(),
            Error::Unauthenticated(_) => refused(),
            other => other,
        })
    }
}

fn version_of(context: &CallContext, id: &AggregateId) -> u64 {
    context.state().folded.get(id.as_str()).map_or(0, |found| found.version)
}

fn changed() -> Error {
    Error::conflict(
        ErrorCode::FileChanged,
        "the file at the path, or its project, type or aggregate, has changed since the link was created",
    )
}

/// Replaces an error about a link's creator with a general error, so that the response does not reveal the reason to
/// the holder of the link. Temporary and internal errors stay unchanged.
pub fn refusing(error: Error) -> Error {
    match error {
        Error::Unavailable(_) | Error::Internal(_) | Error::IssuerUnavailable(_) => error,
        _ => refused(),
    }
}
