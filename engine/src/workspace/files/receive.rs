//! The bytes of an upload as they come: room is reserved for them before they are written, and they are counted and hashed
//! on their way.

use std::sync::Arc;
use std::time::Duration;

use aws_lc_rs::digest::{Context, SHA256};
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use tokio::task::JoinHandle;

use crate::core::State;
use crate::core::storage::Storage;
use crate::error::{Error, Result};
use crate::store;
use crate::store::blobs::BlobKind;
use crate::store::uploads::{Room, Upload};

/// The bytes of a file as they come.
pub type Incoming = BoxStream<'static, Result<Bytes>>;

/// Where nobody said how many bytes will come, so many are waited for before room is reserved: of a small file it is then
/// known how much it takes.
const AHEAD: usize = 1 << 20;
/// Room that is reserved at once for bytes that may come.
const STEP: u64 = 64 << 20;

/// An upload that is under way, from when room was asked for until a file names it or it is given up.
pub struct Receiving {
    state: Arc<State>,
    upload: Upload,
    quota: Option<u64>,
    reserved: u64,
    parts_id: Option<String>,
    _renewal: Option<Renewal>,
}

/// What came.
pub struct Received {
    pub size: u64,
    /// In hexadecimal.
    pub sha256: String,
}

impl Receiving {
    pub fn new(state: &Arc<State>, quota: Option<u64>) -> Receiving {
        let lease = Duration::from_millis(state.settings.upload_lease_ms);
        let id = state.clock.new_id().to_string().into();
        let upload = Upload { id, owner: state.storage.server(&*state.clock), lease };
        Receiving { state: state.clone(), upload, quota, reserved: 0, parts_id: None, _renewal: None }
    }

    pub fn upload_id(&self) -> &Arc<str> {
        &self.upload.id
    }

    /// Writes all bytes. Afterwards they are on the disk, and exactly their room is reserved.
    pub async fn write(&mut self, announced: Option<u64>, bytes: Incoming, kind: BlobKind) -> Result<Received> {
        // They may end while they are gathered, and are asked for again behind that.
        let mut bytes = bytes.fuse();
        let mut ahead = Vec::new();
        if announced.is_none() {
            let mut length = 0;
            while length < AHEAD
                && let Some(block) = bytes.next().await
            {
                let block = block?;
                length += block.len();
                ahead.push(block);
            }
            self.reserve(length as u64).await?;
        }
        if let Some(announced) = announced {
            self.reserve(announced).await?;
        }
        self._renewal = Renewal::start(&self.state, &self.upload);
        let key = Storage::key(&self.state.record.id, &self.upload.id);
        let mut writer = self.state.storage.blobs().write(&key, kind).await?;
        let (mut size, mut hash) = (0, Context::new(&SHA256));
        let mut blocks = futures_util::stream::iter(ahead.into_iter().map(Ok)).chain(bytes);
        while let Some(block) = blocks.next().await {
            let block: Bytes = block?;
            size += block.len() as u64;
            self.make_room(size, announced).await?;
            hash.update(&block);
            if let Some(parts_id) = writer.write(block).await? {
                self.note_parts(parts_id).await?;
            }
        }
        if announced.is_some_and(|announced| announced != size) {
            return Err(Error::invalid("the body broke off"));
        }
        writer.finish().await?;
        if size < self.reserved {
            let _counting = self.state.storage.counting().await;
            if !self.state.log.settle(&self.upload, size).await? {
                return Err(lost());
            }
        }
        Ok(Received { size, sha256: hex::encode(hash.finish()) })
    }

    /// Reserves room for bytes that came unannounced: for more of them at once the more there were.
    async fn make_room(&mut self, size: u64, announced: Option<u64>) -> Result<()> {
        let Some(wanted) = size.checked_sub(self.reserved).filter(|wanted| *wanted > 0) else { return Ok(()) };
        if announced.is_some() {
            return Err(Error::invalid("the body is longer than it was said to be"));
        }
        match self.reserve(wanted.max(self.reserved.min(STEP))).await {
            Err(Error::Invalid { .. }) => self.reserve(wanted).await,
            other => other,
        }
    }

    async fn reserve(&mut self, more: u64) -> Result<()> {
        let first = self.reserved == 0;
        let room = {
            let _counting = self.state.storage.counting().await;
            self.state.log.reserve(&self.upload, more, first, self.quota).await?
        };
        match room {
            Room::Reserved => {
                self.reserved += more;
                Ok(())
            }
            Room::Exceeded => Err(exceeded(self.quota.unwrap_or_default())),
            Room::Lost => Err(lost()),
        }
    }

    async fn note_parts(&mut self, parts_id: String) -> Result<()> {
        let noted = self.state.log.note_parts(&self.upload, &parts_id).await?;
        self.parts_id = Some(parts_id);
        if noted { Ok(()) } else { Err(lost()) }
    }

    /// Gives the upload up, unless a file names it: removes its bytes, and gives its room back. What fails here is done
    /// by whoever looks for leftovers.
    pub async fn give_up(mut self) {
        self._renewal = None;
        let (state, id) = (&self.state, &self.upload.id);
        let given_up = async {
            if state.log.give_up_upload(id).await? {
                state.storage.clear(&state.log, &state.record.id, id, self.parts_id.as_deref()).await?;
            }
            Ok::<_, Error>(())
        };
        if let Err(error) = given_up.await {
            tracing::warn!(%error, upload = %id, "the bytes of an upload that failed are not removed yet");
        }
    }
}

/// The upload was taken for dead by another server.
fn lost() -> Error {
    Error::Unavailable(store::Error::Conflict)
}

fn exceeded(quota: u64) -> Error {
    let message = format!("the workspace may keep {quota} bytes of files, and this would be more");
    Error::Invalid { code: "storage_quota_exceeded", message, violations: Vec::new() }
}

/// Says that an upload goes on, until it is dropped.
struct Renewal(JoinHandle<()>);

impl Renewal {
    /// None where the lease has no length that could be renewed.
    fn start(state: &Arc<State>, upload: &Upload) -> Option<Renewal> {
        let every = upload.lease / 4;
        if every.is_zero() {
            return None;
        }
        let (state, upload) = (state.clone(), upload.clone());
        Some(Renewal(tokio::spawn(async move {
            loop {
                tokio::time::sleep(every).await;
                match state.log.renew_upload(&upload).await {
                    Ok(true) => {}
                    Ok(false) => return,
                    Err(error) => tracing::warn!(%error, upload = %upload.id, "an upload's lease was not renewed"),
                }
            }
        })))
    }
}

impl Drop for Renewal {
    fn drop(&mut self) {
        self.0.abort();
    }
}
