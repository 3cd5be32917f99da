//! The object store that contains the archive, with the few operations that the archive needs. Each operation is safe
//! to repeat.

use std::fs::File;

use bytes::Bytes;
use futures_util::stream::BoxStream;
use futures_util::{StreamExt, TryStreamExt};
use object_store::buffered::BufWriter;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload};
use tokio::io::AsyncWriteExt;

use crate::error::{Error, Result};
use crate::store;
use crate::store::blobs::{Blobs, OpenObjects, found};

/// The maximum size of an object that is read into memory, in bytes.
const MAX_READ_BYTES: u64 = 512 << 20;

/// The object store of an archive: a folder, a bucket of a cloud provider, or memory.
#[derive(Clone)]
pub struct Bucket(OpenObjects);

/// An object in a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedObject {
    pub key: String,
    pub size: u64,
    /// The time at which the object was written, in milliseconds since 1970.
    pub modified_at: i64,
}

impl Bucket {
    /// Opens `file://PATH`, `mem://`, `s3://BUCKET/PREFIX`, `gs://BUCKET/PREFIX` or `az://CONTAINER/PREFIX`. `options`
    /// configures the object store. The options have the names of the environment variables that the crate
    /// `object_store` reads, such as `AWS_ACCESS_KEY_ID`. Unknown options are ignored.
    pub fn open(url: &str, options: impl IntoIterator<Item = (String, String)>) -> Result<Bucket> {
        Ok(Bucket(Blobs::open_objects(url, options)?))
    }

    /// Writes a new object. Returns `false` if the object already exists.
    pub async fn create(&self, key: &str, bytes: Bytes) -> Result<bool> {
        match self.write(key, bytes, PutMode::Create).await {
            Err(object_store::Error::AlreadyExists { .. }) => Ok(false),
            other => other.map(|()| true).map_err(failed),
        }
    }

    /// Writes an object. Replaces an existing object.
    pub async fn put(&self, key: &str, bytes: Bytes) -> Result<()> {
        self.write(key, bytes, PutMode::Overwrite).await.map_err(failed)
    }

    async fn write(&self, key: &str, bytes: Bytes, mode: PutMode) -> object_store::Result<()> {
        let path = self.path(key)?;
        let options = PutOptions { mode, ..PutOptions::default() };
        self.0.objects.put_opts(&path, PutPayload::from(bytes), options).await?;
        self.sync(path).await
    }

    /// Writes an object from a stream. Replaces an existing object. The object appears only after the end of the
    /// stream.
    pub async fn put_stream<E>(&self, key: &str, mut bytes: BoxStream<'_, Result<Bytes, E>>) -> Result<()>
    where
        Error: From<E>,
    {
        let path = self.path(key).map_err(failed)?;
        let mut writer = BufWriter::new(self.0.objects.clone(), path.clone());
        while let Some(block) = bytes.next().await {
            match block {
                Ok(block) => writer.put(block).await.map_err(failed)?,
                Err(error) => {
                    // The parts of an upload that is not aborted would stay in the bucket.
                    let _ = writer.abort().await;
                    return Err(error.into());
                }
            }
        }
        writer.shutdown().await.map_err(|error| failed(generic(error)))?;
        self.sync(path).await.map_err(failed)
    }

    /// Returns the bytes of an object, or `None` if the object does not exist. Fails if the object has more than
    /// `MAX_READ_BYTES` bytes.
    pub async fn read(&self, key: &str) -> Result<Option<Bytes>> {
        let path = self.path(key).map_err(failed)?;
        let Some(found) = found(self.0.objects.get(&path).await).map_err(failed)? else { return Ok(None) };
        if found.meta.size > MAX_READ_BYTES {
            let message = format!("{key} has {} bytes; expected at most {MAX_READ_BYTES}", found.meta.size);
            return Err(Error::Unavailable(store::Error::corrupt(message)));
        }
        found.bytes().await.map(Some).map_err(failed)
    }

    /// Returns the time that an object contains, in milliseconds since 1970. Returns `None` if the object does not
    /// exist or contains no time.
    pub async fn read_time(&self, key: &str) -> Result<Option<i64>> {
        let bytes = self.read(key).await?;
        Ok(bytes.and_then(|bytes| std::str::from_utf8(&bytes).ok()?.parse().ok()))
    }

    /// Returns the bytes of an object as a stream, or `None` if the object does not exist.
    pub async fn stream(&self, key: &str) -> Result<Option<BoxStream<'static, std::io::Result<Bytes>>>> {
        let path = self.path(key).map_err(failed)?;
        let found = found(self.0.objects.get(&path).await).map_err(failed)?;
        Ok(found.map(|found| found.into_stream().map_err(std::io::Error::other).boxed()))
    }

    /// Returns whether the object exists and has this size.
    pub async fn has(&self, key: &str, size: u64) -> Result<bool> {
        let found = found(self.0.objects.head(&self.path(key).map_err(failed)?).await).map_err(failed)?;
        Ok(found.is_some_and(|meta| meta.size == size))
    }

    /// Returns all objects below a folder, in the order of their keys.
    pub async fn list(&self, folder: &str) -> Result<Vec<ListedObject>> {
        let below = self.path(folder).map_err(failed)?;
        let listed = self.0.objects.list(Some(&below)).map_ok(|meta| ListedObject {
            key: self.key(&meta.location),
            size: meta.size,
            modified_at: meta.last_modified.timestamp_millis(),
        });
        let mut listed: Vec<ListedObject> = listed.try_collect().await.map_err(failed)?;
        listed.sort_unstable_by(|a, b| a.key.cmp(&b.key));
        Ok(listed)
    }

    /// Returns the names of the folders directly below a folder, sorted. An empty `folder` is the bucket itself.
    pub async fn folders(&self, folder: &str) -> Result<Vec<String>> {
        let below = self.path(folder).map_err(failed)?;
        let found = self.0.objects.list_with_delimiter(Some(&below)).await.map_err(failed)?;
        let name = |path: &Path| path.parts().next_back().map(|part| part.as_ref().to_owned());
        let mut names: Vec<String> = found.common_prefixes.iter().filter_map(name).collect();
        names.sort_unstable();
        Ok(names)
    }

    /// Removes an object. Succeeds if the object does not exist.
    pub async fn remove(&self, key: &str) -> Result<()> {
        found(self.0.objects.delete(&self.path(key).map_err(failed)?).await).map(drop).map_err(failed)
    }

    fn path(&self, key: &str) -> object_store::Result<Path> {
        let key = Path::parse(key)?;
        Ok(self.0.prefix.parts().chain(key.parts()).collect())
    }

    fn key(&self, path: &Path) -> String {
        path.parts()
            .skip(self.0.prefix.parts().count())
            .map(|part| part.as_ref().to_owned())
            .collect::<Vec<_>>()
            .join("/")
    }

    /// Syncs an object to the disk if the bucket is a folder. Other buckets need no sync.
    async fn sync(&self, path: Path) -> object_store::Result<()> {
        let Some(folder) = &self.0.folder else { return Ok(()) };
        let path = folder.path_to_filesystem(&path)?;
        let synced = tokio::task::spawn_blocking(move || {
            File::open(&path)?.sync_all()?;
            path.parent().map_or(Ok(()), |parent| File::open(parent)?.sync_all())
        });
        synced.await.map_err(|source| object_store::Error::JoinError { source })?.map_err(generic)
    }
}

fn generic(error: std::io::Error) -> object_store::Error {
    object_store::Error::Generic { store: "archive", source: error.into() }
}

fn failed(error: object_store::Error) -> Error {
    Error::Unavailable(store::Error::Archive(error))
}

#[cfg(test)]
mod tests {
    use futures_util::stream;

    use super::*;

    async fn check(bucket: &Bucket) {
        assert!(bucket.create("w/a/1", Bytes::from_static(b"one")).await.expect("created"));
        assert!(!bucket.create("w/a/1", Bytes::from_static(b"two")).await.expect("refused"));
        assert_eq!(bucket.read("w/a/1").await.expect("read").as_deref(), Some(b"one".as_slice()));
        bucket.put("w/a/1", Bytes::from_static(b"three")).await.expect("replaced");
        let blocks = ["fo", "ur"].map(|block| Ok::<_, Error>(Bytes::from_static(block.as_bytes())));
        bucket.put_stream("w/b/2", stream::iter(blocks).boxed()).await.expect("written");
        let listed = bucket.list("w").await.expect("listed");
        let listed: Vec<(&str, u64)> = listed.iter().map(|found| (found.key.as_str(), found.size)).collect();
        assert_eq!(listed, [("w/a/1", 5), ("w/b/2", 4)]);
        assert_eq!(bucket.folders("").await.expect("folders"), ["w"]);
        assert_eq!(bucket.folders("w").await.expect("folders"), ["a", "b"]);
        assert!(
            bucket.has("w/b/2", 4).await.expect("a response") && !bucket.has("w/b/2", 5).await.expect("a response")
        );
        for _ in 0..2 {
            bucket.remove("w/a/1").await.expect("removed");
        }
        assert_eq!(bucket.read("w/a/1").await.expect("read"), None);
        assert!(bucket.stream("w/a/1").await.expect("read").is_none());
    }

    #[tokio::test]
    async fn a_bucket_in_memory_behaves_like_a_bucket_in_a_folder() {
        check(&Bucket::open("mem://", []).expect("memory")).await;
        let folder = tempfile::tempdir().expect("a folder");
        check(&Bucket::open(&format!("file://{}", folder.path().display()), []).expect("a folder")).await;
    }
}
