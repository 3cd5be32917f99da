//! The bytes of files: in a local folder, in memory, or in an object store. Each upload has its own key.
//!
//! A key is written only once. After the write is completed, the bytes under the key never change, with one exception:
//! a restore from the archive replaces bytes that do not have the archived hash.

mod folder;
mod objects;

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use folder::{BlobFolder, FolderWriter};
use futures_util::stream::BoxStream;
use object_store::ObjectStore;
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use objects::{Objects, ObjectsWriter};

use super::error::{Error, Result};

/// Metadata that is stored with the bytes in an object store, so that downloads through the links of the object store
/// have the right headers. Azure Blob Storage stores no metadata for bytes that are uploaded in parts.
#[derive(Debug, Clone)]
pub struct BlobKind {
    pub mime_type: String,
    /// The value of the `Content-Disposition` header.
    pub content_disposition: String,
}

/// The object store of the archive. Its objects include copies of the bytes of files.
#[derive(Clone)]
pub struct OpenObjects {
    pub objects: Arc<dyn ObjectStore>,
    /// The prefix of the path of every object.
    pub prefix: Path,
    /// The folder, if the store is a local folder.
    pub folder: Option<Arc<LocalFileSystem>>,
}

/// The storage for the bytes of files.
pub enum Blobs {
    Folder(BlobFolder),
    Objects(Objects),
}

/// A writer for the bytes under one key.
pub enum BlobWriter {
    Folder(FolderWriter),
    Objects(ObjectsWriter),
}

impl Blobs {
    /// Opens `file://PATH`, `mem://`, `s3://BUCKET/PREFIX`, `gs://BUCKET/PREFIX` or `az://CONTAINER/PREFIX`. `options`
    /// configures the object store. Each option has the name of an environment variable that the crate `object_store`
    /// reads, such as `AWS_ACCESS_KEY_ID`. Unknown options are ignored.
    pub fn open(url: &str, options: impl IntoIterator<Item = (String, String)>) -> Result<Blobs> {
        let (scheme, rest) = url.split_once("://").unwrap_or((url, ""));
        Ok(match scheme {
            "file" if !rest.is_empty() => Blobs::Folder(BlobFolder::open(rest)?),
            "mem" => Blobs::Objects(Objects::memory()),
            _ => Blobs::Objects(Objects::open(scheme, url, rest, options)?),
        })
    }

    /// Opens the object store of an archive. `url` and `options` have the same form as in [`Blobs::open`].
    pub fn open_objects(url: &str, options: impl IntoIterator<Item = (String, String)>) -> Result<OpenObjects> {
        Ok(match Blobs::open(url, options)? {
            Blobs::Folder(folder) => folder.into_objects(),
            Blobs::Objects(objects) => objects.into_objects(),
        })
    }

    /// Creates a storage in memory. The bytes are lost when the process ends.
    pub fn memory() -> Blobs {
        Blobs::Objects(Objects::memory())
    }

    /// Returns a writer for the bytes under a new key.
    pub async fn write(&self, key: &str, kind: BlobKind) -> Result<BlobWriter> {
        let key = parsed(key)?;
        Ok(match self {
            Blobs::Folder(folder) => BlobWriter::Folder(folder.write(&key).await?),
            Blobs::Objects(objects) => BlobWriter::Objects(objects.write(&key, kind)),
        })
    }

    /// Returns a range of the bytes under a key as a stream of blocks. The blocks are read on demand, a few at a time.
    pub async fn read(&self, key: &str, range: Range<u64>) -> Result<BoxStream<'static, Result<Bytes>>> {
        let key = parsed(key)?;
        match self {
            Blobs::Folder(folder) => folder.read(&key, range).await,
            Blobs::Objects(objects) => objects.read(&key, range).await,
        }
    }

    /// Removes the bytes under a key, and the parts of a multipart upload if its id is given. Succeeds if there is
    /// nothing to remove.
    pub async fn remove(&self, key: &str, parts_id: Option<&str>) -> Result<()> {
        let key = parsed(key)?;
        match self {
            Blobs::Folder(folder) => folder.remove(&key).await,
            Blobs::Objects(objects) => objects.remove(&key, parts_id).await,
        }
    }

    /// Removes the bytes under all keys that begin with `folder/`. Succeeds if there is nothing to remove.
    pub async fn remove_all(&self, folder: &str) -> Result<()> {
        let folder = parsed(folder)?;
        match self {
            Blobs::Folder(files) => files.remove_all(&folder).await,
            Blobs::Objects(objects) => objects.remove_all(&folder).await,
        }
    }

    /// Returns a link for downloading the bytes under a key directly from the object store. The link expires after the
    /// time `valid`. Returns `None` if the storage does not support links.
    pub async fn link(&self, key: &str, valid: Duration) -> Result<Option<String>> {
        match self {
            Blobs::Folder(_) => Ok(None),
            Blobs::Objects(objects) => objects.link(&parsed(key)?, valid).await,
        }
    }
}

impl BlobWriter {
    /// Writes the next bytes. Returns the id of the multipart upload in the call that starts the upload, and `None` in
    /// all other calls. The id is needed to remove the parts after a failure.
    pub async fn write(&mut self, block: Bytes) -> Result<Option<String>> {
        match self {
            BlobWriter::Folder(writer) => writer.write(block).await.map(|()| None),
            BlobWriter::Objects(writer) => writer.write(block).await,
        }
    }

    /// Completes the write. After success, all bytes are stored, and in a local folder also synced to disk.
    pub async fn finish(self) -> Result<()> {
        match self {
            BlobWriter::Folder(writer) => writer.finish().await,
            BlobWriter::Objects(writer) => writer.finish().await,
        }
    }
}

/// Returns the result of a request for an object, or `None` if the object does not exist.
pub fn found<T>(result: object_store::Result<T>) -> object_store::Result<Option<T>> {
    match result {
        Err(object_store::Error::NotFound { .. }) => Ok(None),
        other => other.map(Some),
    }
}

fn parsed(key: &str) -> Result<Path> {
    Path::parse(key).map_err(|error| Error::Blobs(error.into()))
}

#[cfg(test)]
mod tests {
    use futures_util::TryStreamExt;

    use super::*;

    fn kind() -> BlobKind {
        BlobKind { mime_type: "text/plain".into(), content_disposition: "attachment".into() }
    }

    #[tokio::test]
    async fn blobs_written_in_parts_have_the_metadata_of_blobs_written_in_one_request() {
        let blobs = Blobs::memory();
        let Blobs::Objects(objects) = &blobs else { unreachable!("memory is an object store") };
        for (key, blocks) in [("one", 1), ("several", 5)] {
            let mut writer = blobs.write(key, kind()).await.expect("a writer");
            for _ in 0..blocks {
                writer.write(vec![7; 4 << 20].into()).await.expect("written");
            }
            writer.finish().await.expect("written");
            assert_eq!(objects.kind_of(&parsed(key).expect("a key")).await, ["text/plain", "attachment"], "{key}");
        }
    }

    async fn read(blobs: &Blobs, key: &str, range: Range<u64>) -> Vec<u8> {
        let blocks: Vec<Bytes> = blobs.read(key, range).await.expect("there").try_collect().await.expect("read");
        blocks.concat()
    }

    /// Checks that a storage can write, read and remove large, small and empty files, and can remove whole folders.
    async fn check(blobs: &Blobs) {
        // The file has more than one part, and its size is not a multiple of the part size.
        let blocks: Vec<Bytes> = (0..150u8).map(|number| Bytes::from(vec![number; 131_071])).collect();
        let whole = blocks.concat();
        let mut writer = blobs.write("w/1", kind()).await.expect("begun");
        let mut parts = Vec::new();
        for block in blocks {
            parts.extend(writer.write(block).await.expect("written"));
        }
        writer.finish().await.expect("whole");
        assert!(parts.len() <= 1);
        assert!(read(blobs, "w/1", 0..whole.len() as u64).await == whole);
        assert_eq!(read(blobs, "w/1", 131_070..131_073).await, [0, 1, 1]);
        let mut writer = blobs.write("w/2", kind()).await.expect("begun");
        writer.write(Bytes::from_static(b"few")).await.expect("written");
        writer.finish().await.expect("whole");
        assert_eq!(read(blobs, "w/2", 1..3).await, b"ew");
        blobs.write("w/3", kind()).await.expect("begun").finish().await.expect("whole");
        assert_eq!(read(blobs, "w/3", 0..0).await, b"");
        for key in ["w/1", "w/2", "w/3", "w/never"] {
            blobs.remove(key, None).await.expect("removed");
            assert!(blobs.read(key, 0..1).await.is_err());
        }
        for key in ["v/1", "v/2", "vv/1"] {
            let mut writer = blobs.write(key, kind()).await.expect("begun");
            writer.write(Bytes::from_static(b"few")).await.expect("written");
            writer.finish().await.expect("whole");
        }
        for _ in 0..2 {
            blobs.remove_all("v").await.expect("removed");
        }
        assert!(blobs.read("v/1", 0..1).await.is_err() && blobs.read("v/2", 0..1).await.is_err());
        assert_eq!(read(blobs, "vv/1", 0..3).await, b"few");
        assert_eq!(blobs.link("w/1", Duration::from_secs(1)).await.expect("asked"), None);
    }

    #[tokio::test]
    async fn blobs_in_memory_are_written_read_and_removed() {
        check(&Blobs::open("mem://", []).expect("memory")).await;
    }

    #[tokio::test]
    async fn blobs_in_a_folder_are_written_read_and_removed() {
        let folder = std::env::temp_dir().join(format!("foldwork-blobs-{}", uuid::Uuid::now_v7()));
        let blobs = Blobs::open(&format!("file://{}", folder.display()), []).expect("a folder");
        check(&blobs).await;
        // An interrupted upload can be removed like a completed upload.
        let mut writer = blobs.write("w/4", kind()).await.expect("begun");
        writer.write(Bytes::from(vec![1; 1 << 20])).await.expect("written");
        drop(writer);
        blobs.remove("w/4", None).await.expect("removed");
        let left: Vec<_> = std::fs::read_dir(folder.join("w")).expect("a folder").collect();
        assert!(left.is_empty(), "{left:?}");
        std::fs::remove_dir_all(folder).expect("removed");
    }

    #[tokio::test]
    async fn invalid_store_urls_and_blob_keys_are_rejected() {
        for url in ["", "file://", "nowhere://x", "s3://"] {
            assert!(Blobs::open(url, []).is_err(), "{url}");
        }
        for key in ["w/../x", "/w//x", "w/\0"] {
            assert!(Blobs::memory().write(key, kind()).await.is_err(), "{key}");
        }
    }
}
