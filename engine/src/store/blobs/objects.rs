//! Stores the bytes of files in an object store, or in memory. Large files are uploaded in parts.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{BoxStream, StreamExt, TryStreamExt};
use object_store::aws::AmazonS3Builder;
use object_store::azure::MicrosoftAzureBuilder;
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::memory::InMemory;
use object_store::multipart::{MultipartStore, PartId};
use object_store::path::Path;
use object_store::signer::Signer;
use object_store::{
    Attribute, Attributes, GetOptions, GetRange, ObjectStore, ObjectStoreExt, PutMultipartOptions, PutOptions,
    PutPayload,
};
use tokio::task::JoinHandle;

use super::{BlobKind, OpenObjects, found};
use crate::store::error::{Error, Result};

/// The minimum size of every part of an upload except the last part, in bytes. A smaller file is sent in one request.
const PART_BYTES: usize = 8 << 20;
/// The texts in the error messages of stores that do not support an operation.
const UNSUPPORTED_STATUSES: [&str; 2] = ["405 Method Not Allowed", "501 Not Implemented"];
/// The maximum number of parts that are sent at the same time. Meanwhile, the next part is gathered in memory.
const MAX_CONCURRENT_PARTS: usize = 2;

#[derive(Clone)]
pub struct Objects {
    objects: Arc<dyn ObjectStore>,
    parts: Arc<dyn MultipartStore>,
    signer: Option<Arc<dyn Signer>>,
    /// The prefix of the path of every object.
    prefix: Path,
}

impl Objects {
    pub fn memory() -> Objects {
        let memory = Arc::new(InMemory::new());
        Objects { objects: memory.clone(), parts: memory, signer: None, prefix: Path::default() }
    }

    pub fn open(
        scheme: &str,
        url: &str,
        rest: &str,
        options: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Objects> {
        // Only options with the vendor's prefix are used. Environment variables with general names, such as REGION or
        // TOKEN, may have another meaning.
        let of = |prefix: &'static str| {
            let options = options.into_iter().map(|(name, value)| (name.to_ascii_lowercase(), value));
            options.filter(move |(name, _)| name.starts_with(prefix))
        };
        macro_rules! built {
            ($builder:ident, $prefix:literal) => {{
                let known = of($prefix).filter_map(|(name, value)| Some((name.parse().ok()?, value)));
                let builder = $builder::new().with_url(url);
                Objects::of(known.fold(builder, |builder, (key, value)| builder.with_config(key, value)).build()?, rest)
            }};
        }
        match scheme {
            "s3" | "s3a" => built!(AmazonS3Builder, "aws_"),
            "gs" => built!(GoogleCloudStorageBuilder, "google_"),
            "az" | "adl" | "azure" | "abfs" | "abfss" => built!(MicrosoftAzureBuilder, "azure_"),
            _ => Err(Error::Opening(format!(
                "cannot store files under '{url}'; expected file://PATH, mem://, s3://BUCKET[/PREFIX], \
                 gs://BUCKET[/PREFIX] or az://CONTAINER[/PREFIX]"
            ))),
        }
    }

    fn of<S: ObjectStore + MultipartStore + Signer>(store: S, rest: &str) -> Result<Objects> {
        let store = Arc::new(store);
        let (_, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        let prefix = Path::parse(prefix).map_err(|error| Error::Blobs(error.into()))?;
        Ok(Objects { objects: store.clone(), parts: store.clone(), signer: Some(store), prefix })
    }

    /// Returns the object store for use by an archive.
    pub fn into_objects(self) -> OpenObjects {
        OpenObjects { objects: self.objects, prefix: self.prefix, folder: None }
    }

    fn path(&self, key: &Path) -> Path {
        self.prefix.parts().chain(key.parts()).collect()
    }

    pub fn write(&self, key: &Path, kind: BlobKind) -> ObjectsWriter {
        let (path, objects) = (self.path(key), self.clone());
        let (gathered, under_way, sent) = (Vec::new(), VecDeque::new(), Vec::new());
        ObjectsWriter { objects, path, kind, gathered, gathered_bytes: 0, upload_id: None, under_way, sent }
    }

    pub async fn read(&self, key: &Path, range: Range<u64>) -> Result<BoxStream<'static, Result<Bytes>>> {
        // Object stores reject empty ranges.
        let get_range = (!range.is_empty()).then_some(GetRange::Bounded(range));
        let head = get_range.is_none();
        let options = GetOptions { range: get_range, head, ..GetOptions::default() };
        let found = self.objects.get_opts(&self.path(key), options).await?;
        Ok(found.into_stream().map(|block| block.map_err(Error::Blobs)).boxed())
    }

    pub async fn remove(&self, key: &Path, parts_id: Option<&str>) -> Result<()> {
        let path = self.path(key);
        if let Some(id) = parts_id {
            // NotFound means that the upload was already completed or removed.
            match self.parts.abort_multipart(&path, &id.to_owned()).await {
                Ok(()) | Err(object_store::Error::NotFound { .. }) => {}
                // The store in memory returns another error for an unknown upload. Some other stores do not support
                // aborting and must remove the parts themselves.
                Err(_) if self.signer.is_none() => {}
                Err(error) if UNSUPPORTED_STATUSES.iter().any(|status| error.to_string().contains(status)) => {
                    tracing::warn!(%path, "the object store cannot abort a multipart upload");
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(found(self.objects.delete(&path).await).map(drop)?)
    }

    /// Removes all objects below a path.
    pub async fn remove_all(&self, folder: &Path) -> Result<()> {
        let listed = self.objects.list(Some(&self.path(folder))).map_ok(|meta| meta.location).boxed();
        // NotFound means that another server has removed the object since the list was read.
        let deleted = self.objects.delete_stream(listed).map(|deleted| found(deleted).map(drop).map_err(Error::Blobs));
        deleted.try_collect().await
    }

    /// Returns the stored metadata of an object: the media type and the value of `Content-Disposition`.
    #[cfg(test)]
    pub async fn kind_of(&self, key: &Path) -> [String; 2] {
        let stored = self.objects.get(&self.path(key)).await.expect("an object").attributes;
        let value = |attribute| stored.get(&attribute).map(|value| value.as_ref().to_owned()).unwrap_or_default();
        [value(Attribute::ContentType), value(Attribute::ContentDisposition)]
    }

    pub async fn link(&self, key: &Path, valid: Duration) -> Result<Option<String>> {
        let Some(signer) = &self.signer else { return Ok(None) };
        let get = "GET".parse().map_err(|_| Error::corrupt("GET is not an HTTP method"))?;
        let url = signer.signed_url(get, &self.path(key), valid).await?;
        Ok(Some(url.to_string()))
    }
}

/// A writer that gathers bytes and sends them in parts.
pub struct ObjectsWriter {
    objects: Objects,
    path: Path,
    kind: BlobKind,
    gathered: Vec<Bytes>,
    gathered_bytes: usize,
    /// The id of the multipart upload. `None` until the upload starts.
    upload_id: Option<String>,
    /// The parts that are being sent.
    under_way: VecDeque<JoinHandle<object_store::Result<PartId>>>,
    /// The parts that were sent.
    sent: Vec<PartId>,
}

impl ObjectsWriter {
    pub async fn write(&mut self, block: Bytes) -> Result<Option<String>> {
        // A full part is sent only when more bytes follow, so that a file of at most one part is sent in one request.
        let mut started_id = None;
        if self.gathered_bytes >= PART_BYTES {
            match &self.upload_id {
                Some(_) => self.send().await?,
                None => {
                    let id = self.start().await?;
                    self.upload_id = Some(id.clone());
                    started_id = Some(id);
                }
            }
        }
        self.gathered_bytes += block.len();
        self.gathered.push(block);
        Ok(started_id)
    }

    /// Starts an upload in parts, and returns its id.
    async fn start(&self) -> Result<String> {
        let options = PutMultipartOptions { attributes: attributes(&self.kind), ..PutMultipartOptions::default() };
        match self.objects.parts.create_multipart_opts(&self.path, options).await {
            // Azure Blob Storage accepts no metadata at the start of an upload.
            Err(object_store::Error::NotSupported { .. }) => {
                Ok(self.objects.parts.create_multipart(&self.path).await?)
            }
            started => Ok(started?),
        }
    }

    /// Starts to send the gathered bytes as the next part. While [`MAX_CONCURRENT_PARTS`] parts are being sent, waits
    /// first.
    async fn send(&mut self) -> Result<()> {
        let Some(id) = self.upload_id.clone() else { return Ok(()) };
        self.wait(MAX_CONCURRENT_PARTS - 1).await?;
        self.gathered_bytes = 0;
        let payload = PutPayload::from_iter(std::mem::take(&mut self.gathered));
        let index = self.sent.len() + self.under_way.len();
        let (parts, path) = (self.objects.parts.clone(), self.path.clone());
        let sending = async move { parts.put_part(&path, &id, index, payload).await };
        self.under_way.push_back(tokio::spawn(sending));
        Ok(())
    }

    /// Waits until at most `max_under_way` parts are being sent.
    async fn wait(&mut self, max_under_way: usize) -> Result<()> {
        while self.under_way.len() > max_under_way {
            let Some(sending) = self.under_way.pop_front() else { break };
            let sent = sending.await.map_err(|source| object_store::Error::JoinError { source })?;
            self.sent.push(sent?);
        }
        Ok(())
    }

    pub async fn finish(mut self) -> Result<()> {
        let Some(id) = self.upload_id.clone() else {
            let payload = PutPayload::from_iter(std::mem::take(&mut self.gathered));
            let options = PutOptions { attributes: attributes(&self.kind), ..PutOptions::default() };
            return self.objects.objects.put_opts(&self.path, payload, options).await.map(drop).map_err(Error::Blobs);
        };
        if self.gathered_bytes > 0 {
            self.send().await?;
        }
        self.wait(0).await?;
        let parts = std::mem::take(&mut self.sent);
        self.objects.parts.complete_multipart(&self.path, &id, parts).await?;
        Ok(())
    }
}

impl Drop for ObjectsWriter {
    fn drop(&mut self) {
        self.under_way.iter().for_each(JoinHandle::abort);
    }
}

fn attributes(kind: &BlobKind) -> Attributes {
    Attributes::from_iter([
        (Attribute::ContentType, kind.mime_type.clone()),
        (Attribute::ContentDisposition, kind.content_disposition.clone()),
    ])
}
