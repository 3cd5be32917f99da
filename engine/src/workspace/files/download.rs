//! Downloads: signed links that are valid for one path and one hour, and the files that the links name.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;

use super::bytes::{is_live, key_of, not_found};
use crate::access::Access;
use crate::access::signing::{Purpose, Signature};
use crate::error::{Error, ErrorCode, Result};
use crate::model::aggregate::Aggregate;
use crate::model::article::published_version;
use crate::model::builtin::ARTICLE;
use crate::model::file;
use crate::model::file_path::FilePath;
use crate::state::State;
use crate::store::blobs::Blobs;
use crate::workspace::articles::Perspective;
use crate::workspace::rights::ContentReader;

/// The lifetime of a link, in seconds.
pub const LINK_S: i64 = 60 * 60;

/// A link to a file. A request with the link needs no other credential.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileLink {
    /// A link to the object store.
    Stored { url: String, expires_at: i64 },
    /// A link to a server of this installation.
    Signed(SignedLink),
}

/// The contents of a signed link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignedLink {
    pub path: String,
    /// The expiry time, in seconds since the epoch.
    pub expires_s: i64,
    /// Whether the link is valid only while the file is attached to a published article.
    pub published_only: bool,
    pub key_id: String,
    pub signature: Vec<u8>,
}

/// A file that the caller may read.
pub struct StoredFile {
    pub file: Arc<Aggregate>,
    blobs: Arc<Blobs>,
    key: String,
}

impl ContentReader {
    /// Returns a link to a file. Callers who may see only published content get links only to files attached to
    /// published articles. Such a link stops working when the article is unpublished, and always leads to a server of
    /// this installation, since an object store cannot check whether an article is published.
    pub async fn file_link(&self, path: &str) -> Result<FileLink> {
        let state = self.context.state();
        state.refresh().await?;
        let found = self.context.find_file(path)?;
        let published_only = self.shown(Perspective::Draft) == Perspective::Published;
        if published_only && !is_of_published(state, &found) {
            return Err(not_found(path));
        }
        let key = key_of(&state.record.id, &found).ok_or_else(|| not_found(path))?;
        let expires_s = state.clock.now_ms().div_euclid(1_000) + LINK_S;
        let valid = Duration::from_secs(LINK_S.unsigned_abs());
        if !published_only && let Some(url) = state.storage.blobs().link(&key, valid).await? {
            return Ok(FileLink::Stored { url, expires_at: expires_s * 1_000 });
        }
        let message = message(path, expires_s, published_only);
        let signature = self.context.access().sign(Purpose::FileLink, &message).await?;
        let (path, key_id, signature) = (path.to_owned(), signature.key_id, signature.mac);
        Ok(FileLink::Signed(SignedLink { path, expires_s, published_only, key_id, signature }))
    }
}

/// Returns whether a file is attached to a published article.
fn is_of_published(state: &State, found: &Aggregate) -> bool {
    let attached = file::text(found, file::ATTACHED_ID).and_then(|id| state.folded.get(id));
    attached.is_some_and(|article| {
        &*article.aggregate_type == ARTICLE && !article.deleted && published_version(&article).is_some()
    })
}

/// Returns the bytes that the signature of a link covers. A path contains no line breaks, so the bytes are unambiguous.
fn message(path: &str, expires_s: i64, published_only: bool) -> Vec<u8> {
    let of = if published_only { "\npublished" } else { "" };
    format!("GET\n{path}\n{expires_s}{of}").into_bytes()
}

/// Checks that a link was issued by this installation and has not expired. The link is the only credential needed.
pub async fn check_link(access: &Access, link: &SignedLink, now_ms: i64) -> Result<()> {
    let signature = Signature { key_id: link.key_id.clone(), mac: link.signature.clone() };
    let message = message(&link.path, link.expires_s, link.published_only);
    let is_ours = access.verify(Purpose::FileLink, &message, &signature).await?;
    if is_ours && now_ms < link.expires_s.saturating_mul(1_000) { Ok(()) } else { Err(refused()) }
}

/// Returns the error for a link that is not valid.
pub(super) fn refused() -> Error {
    Error::forbidden(ErrorCode::InvalidLink, "the link is invalid or has expired")
}

impl StoredFile {
    /// Returns the file that a link names, in the link's workspace. The link must have passed [`check_link`].
    pub async fn find(state: &State, link: &SignedLink) -> Result<StoredFile> {
        let path = &*link.path;
        state.refresh().await?;
        let found = state.folded.get(FilePath::aggregate_id(path).as_str()).filter(|found| is_live(found));
        let file = found.ok_or_else(|| not_found(path))?;
        if link.published_only && !is_of_published(state, &file) {
            return Err(refused());
        }
        let key = key_of(&state.record.id, &file).ok_or_else(|| not_found(path))?;
        Ok(StoredFile { file, blobs: state.storage.blobs().clone(), key })
    }

    /// Reads a range of the file's bytes on demand.
    pub async fn read(&self, range: Range<u64>) -> Result<BoxStream<'static, Result<Bytes>>> {
        let blocks = self.blobs.read(&self.key, range).await?;
        Ok(blocks.map(|block| block.map_err(Error::from)).boxed())
    }
}
