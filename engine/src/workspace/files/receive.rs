//! Receives the bytes of an upload: reserves storage before writing the bytes, and computes their number and hash.

use std::sync::Arc;
use std::time::Duration;

use aws_lc_rs::digest::{Context, SHA256};
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;

use crate::error::{Error, ErrorCode, Result};
use crate::state::State;
use crate::state::background::Background;
use crate::state::storage::Storage;
use crate::store::blobs::BlobKind;
use crate::store::workspace::uploads::{MAX_BYTES, Reservation, Upload};
use crate::store::{self, Database};

/// The stream of the bytes of a file that a client sends.
pub type Incoming = BoxStream<'static, std::io::Result<Bytes>>;

/// The number of bytes that are buffered before storage is reserved, if the client did not announce the length. If the
/// file has fewer bytes, exactly the size of the file is reserved.
const MAX_BUFFERED_BYTES: usize = 1 << 20;
/// The maximum storage that an upload without an announced length reserves in advance, in bytes.
const MAX_RESERVATION_STEP: u64 = 64 << 20;

/// A running upload, from the reservation of storage until a file refers to the bytes or the upload is canceled.
pub struct RunningUpload {
    state: Arc<State>,
    db: Database,
    upload: Upload,
    quota: Option<u64>,
    reserved: u64,
    parts_id: Option<String>,
    /// Whether the upload has begun to write bytes but is not complete: bytes are missing, or another server has
    /// canceled the upload. The storage may already contain some of the bytes, but no file refers to them.
    is_partial: bool,
    _renewal: Option<Background>,
}

/// The result of receiving the bytes.
pub struct ReceivedBytes {
    pub size: u64,
    /// The SHA-256 hash, in hexadecimal.
    pub sha256: String,
}

impl RunningUpload {
    /// Creates an upload. `id` is a new id, or the id that the upload has in another store.
    pub fn new(state: &Arc<State>, db: &Database, id: Arc<str>, quota: Option<u64>) -> RunningUpload {
        let lease = Duration::from_millis(state.settings.upload_lease_ms);
        let upload = Upload { id, owner: state.storage.server(&*state.clock), lease };
        RunningUpload {
            state: state.clone(),
            db: db.clone(),
            upload,
            quota,
            reserved: 0,
            parts_id: None,
            is_partial: false,
            _renewal: None,
        }
    }

    pub fn upload_id(&self) -> &Arc<str> {
        &self.upload.id
    }

    /// Writes all bytes durably, then changes the reservation to their exact size.
    pub async fn write(&mut self, announced: Option<u64>, bytes: Incoming, kind: BlobKind) -> Result<ReceivedBytes> {
        // The stream may end while bytes are buffered. A fused stream can still be polled after its end.
        let mut bytes = bytes.fuse();
        let mut buffered = Vec::new();
        if announced.is_none() {
            let mut length = 0;
            while length < MAX_BUFFERED_BYTES
                && let Some(block) = bytes.next().await
            {
                let block = block.map_err(Error::Body)?;
                length += block.len();
                buffered.push(block);
            }
            self.reserve(length as u64).await?;
        }
        if let Some(announced) = announced {
            self.reserve(announced).await?;
        }
        self._renewal = keep_renewing(&self.state.record.id, &self.db, &self.upload);
        let key = Storage::key(&self.state.record.id, &self.upload.id);
        self.is_partial = true;
        let mut writer = self.state.storage.blobs().write(&key, kind).await?;
        let (mut size, mut hash) = (0, Context::new(&SHA256));
        let mut blocks = futures_util::stream::iter(buffered.into_iter().map(Ok)).chain(bytes);
        while let Some(block) = blocks.next().await {
            let block: Bytes = block.map_err(Error::Body)?;
            size += block.len() as u64;
            self.reserve_unannounced(size, announced).await?;
            hash.update(&block);
            if let Some(parts_id) = writer.write(block).await? {
                self.note_parts(parts_id).await?;
            }
        }
        if let Some(announced) = announced.filter(|announced| *announced != size) {
            let message = format!("the body is shorter than its announced length of {announced} bytes");
            return Err(Error::invalid(message));
        }
        writer.finish().await?;
        // Another server may have canceled the upload, and may have removed the bytes before the last bytes arrived.
        let is_held = if size < self.reserved {
            let _counting = self.state.storage.counting().await;
            self.db.settle(&self.upload, size).await?
        } else {
            self.db.renew_upload(&self.upload).await?
        };
        if !is_held {
            return Err(lost());
        }
        self.is_partial = false;
        Ok(ReceivedBytes { size, sha256: hex::encode(hash.finish()) })
    }

    /// Reserves the storage that `size` bytes need beyond the current reservation. Fails if the client announced a
    /// smaller length. To reserve less often, doubles the reservation, but adds at most [`MAX_RESERVATION_STEP`] in
    /// advance. If the quota does not allow a reservation in advance, reserves only the missing storage.
    async fn reserve_unannounced(&mut self, size: u64, announced: Option<u64>) -> Result<()> {
        let Some(missing) = size.checked_sub(self.reserved).filter(|missing| *missing > 0) else { return Ok(()) };
        if let Some(announced) = announced {
            let message = format!("the body is longer than its announced length of {announced} bytes");
            return Err(Error::invalid(message));
        }
        match self.reserve(missing.max(self.reserved.min(MAX_RESERVATION_STEP))).await {
            Err(Error::Invalid { .. }) => self.reserve(missing).await,
            other => other,
        }
    }

    /// Reserves storage for more bytes, without writing them.
    pub async fn reserve(&mut self, more: u64) -> Result<()> {
        let first = self.reserved == 0;
        let reservation = {
            let _counting = self.state.storage.counting().await;
            self.db.reserve(&self.upload, more, first, self.quota).await?
        };
        match reservation {
            Reservation::Reserved => {
                self.reserved += more;
                Ok(())
            }
            Reservation::Exceeded => Err(exceeded(self.quota.unwrap_or(MAX_BYTES))),
            Reservation::Lost => Err(lost()),
        }
    }

    async fn note_parts(&mut self, parts_id: String) -> Result<()> {
        let noted = self.db.note_parts(&self.upload, &parts_id).await?;
        self.parts_id = Some(parts_id);
        if noted { Ok(()) } else { Err(lost()) }
    }

    /// If no file refers to the upload, cancels the upload, removes its bytes and frees their storage. If the removal
    /// fails, the periodic cleanup removes the bytes later.
    pub async fn give_up(mut self) {
        self._renewal = None;
        let (state, db, id) = (&self.state, &self.db, &self.upload.id);
        let given_up = async {
            // Another server may have canceled the upload, and bytes may have arrived after that server had removed the
            // earlier bytes.
            if db.give_up_upload(id).await? || self.is_partial {
                state.storage.clear(db, &state.record.id, id, self.parts_id.as_deref()).await?;
            }
            Ok::<_, Error>(())
        };
        if let Err(error) = given_up.await {
            let (workspace, upload) = (&state.record.id, id);
            tracing::warn!(%error, %workspace, %upload, "failed to remove the bytes of a failed upload; will retry");
            state.storage.report_failed_removal();
        }
    }
}

/// Returns the error for an upload that another server has removed after its lease expired.
fn lost() -> Error {
    Error::Unavailable(store::Error::Conflict)
}

fn exceeded(quota: u64) -> Error {
    let message = format!("the file would exceed the workspace's storage quota of {quota} bytes");
    Error::invalid_with_code(ErrorCode::StorageQuotaExceeded, message)
}

/// Starts a task that renews the lease of an upload until the returned handle is dropped. Returns `None` if the lease
/// is too short to be renewed.
fn keep_renewing(workspace: &Arc<str>, db: &Database, upload: &Upload) -> Option<Background> {
    let every = upload.lease / 4;
    if every.is_zero() {
        return None;
    }
    let (workspace, db, upload) = (workspace.clone(), db.clone(), upload.clone());
    Some(Background::spawn(async move {
        loop {
            tokio::time::sleep(every).await;
            match db.renew_upload(&upload).await {
                Ok(true) => {}
                Ok(false) => return,
                Err(error) => {
                    let upload = &upload.id;
                    tracing::warn!(%error, %workspace, %upload, "failed to renew the lease of an upload");
                }
            }
        }
    }))
}

#[cfg(test)]
mod tests {
    use futures_util::stream;

    use super::*;
    use crate::clock::SystemClock;
    use crate::engine::Engine;
    use crate::state::EngineSettings;
    use crate::state::plugins::Plugins;
    use crate::store::Store;

    #[tokio::test]
    async fn bytes_that_arrive_after_the_upload_was_canceled_are_removed() {
        let store = Store::connect("mem://").await.expect("a store");
        let plugins = Plugins::none().expect("no plugins");
        let engine = Engine::open(store, Arc::new(SystemClock), EngineSettings::default(), plugins).await;
        let engine = engine.expect("an engine");
        engine.first_start(None).await.expect("started");
        let id = engine.workspaces().await.expect("workspaces")[0].id.clone();
        let runtime = engine.runtime(&id).await.expect("a workspace");
        let db = runtime.appender.database().clone();
        let mut upload = RunningUpload::new(&runtime.state, &db, "u".into(), None);
        let late = async move {
            // Another server cancels the upload and removes its bytes.
            db.give_up_upload("u").await.expect("canceled");
            db.forget_upload("u").await.expect("removed");
            Ok(Bytes::from_static(b"late"))
        };
        let kind = BlobKind { mime_type: "text/plain".into(), content_disposition: "inline".into() };
        let written = upload.write(Some(4), stream::once(late).boxed(), kind).await;
        assert!(matches!(written, Err(Error::Unavailable(store::Error::Conflict))));
        upload.give_up().await;
        let key = Storage::key(&id, "u");
        assert!(runtime.state.storage.blobs().read(&key, 0..4).await.is_err(), "the bytes are removed");
    }
}
