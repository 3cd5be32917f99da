//! Links to upload: what is to be at a path is decided when the link is made, and whoever has the link sends the bytes.
//!
//! A link stands for whoever made it. What they may do no more, it does no more either.

use serde::{Deserialize, Serialize};

use super::receive::Incoming;
use super::upload::{NewFile, Uploaded};
use crate::access::Access;
use crate::access::before::Before;
use crate::access::signing::Purpose;
use crate::error::{Error, Result};
use crate::model::access::Caller;
use crate::model::event::Expected;
use crate::model::file_path::FilePath;
use crate::model::id::AggregateId;
use crate::workspace::entered::Entered;
use crate::workspace::rights::{Uploader, Writer};

/// How long a link is good for, in milliseconds; one of a caller whose right ends before ends with that.
pub const VALID_MS: i64 = 15 * 60 * 1_000;

/// A link to upload, for whoever has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UploadLink {
    /// What is shown for it: it stands in a URL as it is.
    pub token: String,
    pub path: String,
    /// Milliseconds since the epoch.
    pub expires_at: i64,
}

/// What is signed.
#[derive(Serialize, Deserialize)]
struct Claims {
    path: String,
    mime_type: String,
    max_bytes: Option<u64>,
    /// What the file's stream was at when the link was made.
    version: u64,
    by: Before,
    expires_at: i64,
}

/// The right to store the file that a link speaks of.
pub struct LinkedUpload {
    writer: Writer,
    new: NewFile,
    max_bytes: Option<u64>,
}

impl Writer {
    /// A link by which whoever has it stores a file of this place, name and kind without a token, once: where something
    /// else is at its path meanwhile, the link is refused.
    pub async fn upload_link(&self, new: NewFile, max_bytes: Option<u64>) -> Result<UploadLink> {
        let state = self.entered.state();
        state.refresh().await?;
        let target = self.entered.target(&new)?;
        let (caller, soon) = (self.entered.caller(), state.clock.now_ms().saturating_add(VALID_MS));
        let expires_at = caller.expires_at.map_or(soon, |end| end.min(soon));
        let claims = Claims {
            path: target.path.as_str().to_owned(),
            mime_type: new.mime_type,
            max_bytes,
            version: version_of(&self.entered, &target.id),
            by: Before::from(caller),
            expires_at,
        };
        let token = self.entered.access().sign_claims(Purpose::UploadLink, &claims).await?;
        Ok(UploadLink { token, path: claims.path, expires_at })
    }
}

/// A link that was made here and is still good.
pub struct CheckedLink(Claims);

impl CheckedLink {
    /// Whoever made the link is asked for what they may do now.
    pub async fn check(access: &Access, token: &str, now_ms: i64) -> Result<(CheckedLink, Caller)> {
        let claims: Option<Claims> = access.verified_claims(Purpose::UploadLink, token).await?;
        let claims = claims.filter(|claims| now_ms < claims.expires_at).ok_or_else(refused)?;
        let caller = access.return_of(&claims.by).await.map_err(refusing)?;
        Ok((CheckedLink(claims), caller))
    }

    /// The upload, by the right that its maker has still. What would be refused behind the bytes is so before they come.
    pub async fn upload(self, right: Uploader) -> Result<LinkedUpload> {
        let Claims { path, mime_type, max_bytes, version, .. } = self.0;
        let (_, place, filename) = FilePath::read(&path).map_err(Error::invalid)?;
        let expected = if version == 0 { Expected::None } else { Expected::Version(version) };
        let new = NewFile { filename, mime_type, place, path: Some(path), expected, ..NewFile::default() };
        let writer = right.into_writer();
        writer.entered.state().refresh().await?;
        // Its project or type may be gone, or its aggregate be in another project.
        let target = writer.entered.target(&new).map_err(|_| changed())?;
        match version_of(&writer.entered, &target.id) == version {
            true => Ok(LinkedUpload { writer, new, max_bytes }),
            false => Err(changed()),
        }
    }
}

impl LinkedUpload {
    pub fn filename(&self) -> &str {
        &self.new.filename
    }

    /// How many bytes the file may have, where the link says so.
    pub fn max_bytes(&self) -> Option<u64> {
        self.max_bytes
    }

    /// Stores the file, as every other one is stored. What the link does not say is its length and how object stores are
    /// to name it.
    pub async fn store(self, size: Option<u64>, content_disposition: String, bytes: Incoming) -> Result<Uploaded> {
        let new = NewFile { size, content_disposition, ..self.new };
        self.writer.upload_file(new, bytes).await.map_err(|error| match error {
            Error::Conflict { code: "version_conflict", .. } => changed(),
            Error::Unauthenticated(_) => refused(),
            other => other,
        })
    }
}

fn version_of(entered: &Entered, id: &AggregateId) -> u64 {
    entered.state().folded.get(id.as_str()).map_or(0, |found| found.version)
}

fn changed() -> Error {
    Error::conflict("file_changed", "what is at the path has changed since the link was made")
}

fn refused() -> Error {
    Error::forbidden("invalid_link", "the link is not valid, or not any more")
}

/// Whoever has a link is told nothing of who made it.
pub fn refusing(error: Error) -> Error {
    match error {
        Error::Unavailable(_) | Error::Internal(_) | Error::IssuerSilent => error,
        _ => refused(),
    }
}
