//! The folder that belongs to an export and contains the bytes of files. The name of each file in the folder is the
//! SHA-256 of its content.
//!
//! No file name on the disk comes from a client. Several exports may use one folder, and each content is written once.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use bytes::Bytes;
use futures_util::{Stream, StreamExt, TryStreamExt, stream};
use sha2::{Digest, Sha256};
use tokio::fs::File;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// The number of bytes per read.
const BLOCK_BYTES: usize = 128 * 1024;

/// A folder with the bytes of files.
#[derive(Clone, Debug)]
pub struct FilesFolder {
    path: PathBuf,
}

impl FilesFolder {
    /// Opens a folder to write to, and creates it if needed.
    pub fn create(path: &Path) -> anyhow::Result<Self> {
        fs::create_dir_all(path).with_context(|| format!("{} cannot be created", path.display()))?;
        Ok(Self { path: path.to_owned() })
    }

    /// Opens a folder to read from.
    pub fn open(path: &Path) -> anyhow::Result<Self> {
        ensure!(path.is_dir(), "{} is not a folder", path.display());
        Ok(Self { path: path.to_owned() })
    }

    /// Stores bytes under their hash, unless the folder already contains these bytes. Returns `false` without storing
    /// the bytes if their hash differs from `sha256`.
    pub async fn store<E>(
        &self,
        sha256: &str,
        size: u64,
        mut bytes: impl Stream<Item = Result<Bytes, E>> + Unpin,
    ) -> anyhow::Result<bool>
    where
        E: std::error::Error + Send + Sync + 'static,
    {
        let path = self.path_of(sha256)?;
        // Writes the file again if the stored file is damaged.
        if fs::metadata(&path).is_ok_and(|about| about.len() == size) && hash_of(&path).await? == sha256 {
            return Ok(true);
        }
        let unfinished = self.path.join(format!(".{sha256}.{}", std::process::id()));
        let cannot = || format!("{} cannot be written", unfinished.display());
        let mut file = File::create(&unfinished).await.with_context(cannot)?;
        let mut hash = Sha256::new();
        while let Some(block) = bytes.next().await {
            let block = block.context("the bytes cannot be read from their source")?;
            hash.update(&block);
            file.write_all(&block).await.with_context(cannot)?;
        }
        file.sync_all().await.with_context(cannot)?;
        let is_same = hex::encode(hash.finalize()) == sha256;
        if is_same {
            fs::rename(&unfinished, &path).with_context(|| format!("{} cannot be written", path.display()))?;
        } else {
            fs::remove_file(&unfinished).with_context(cannot)?;
        }
        Ok(is_same)
    }

    /// Returns the stored bytes with a SHA-256 hash as a stream. Fails if the number of bytes is not `size`. Does not
    /// check the hash: the import compares the hash of the bytes that the recipient has received.
    pub async fn read(
        &self,
        sha256: &str,
        size: u64,
    ) -> anyhow::Result<impl Stream<Item = std::io::Result<Bytes>> + Send + use<>> {
        let path = self.path_of(sha256)?;
        let file = File::open(&path).await.with_context(|| format!("{} cannot be read", path.display()))?;
        let length = file.metadata().await.with_context(|| format!("{} cannot be read", path.display()))?.len();
        ensure!(length == size, "{} has {length} bytes, expected {size}", path.display());
        Ok(stream::try_unfold(file, |mut file| async move {
            let mut block = vec![0; BLOCK_BYTES];
            let length = file.read(&mut block).await?;
            block.truncate(length);
            Ok((length > 0).then(|| (Bytes::from(block), file)))
        }))
    }

    /// Returns a request body with the stored bytes whose SHA-256 hash is `sha256`. The request fails if the bytes
    /// cannot be read.
    pub fn body(&self, sha256: &str, size: u64) -> reqwest::Body {
        let (folder, sha256) = (self.clone(), sha256.to_owned());
        let blocks = stream::once(async move { folder.read(&sha256, size).await });
        reqwest::Body::wrap_stream(blocks.map_ok(|blocks| blocks.map_err(anyhow::Error::from)).try_flatten())
    }

    fn path_of(&self, sha256: &str) -> anyhow::Result<PathBuf> {
        if sha256.len() != 64 || !sha256.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')) {
            bail!("'{sha256:.80}' is not a SHA-256: expected 64 lower-case hexadecimal digits");
        }
        Ok(self.path.join(sha256))
    }
}

/// Returns the SHA-256 of a file's content.
async fn hash_of(path: &Path) -> anyhow::Result<String> {
    let cannot = || format!("{} cannot be read", path.display());
    let mut file = File::open(path).await.with_context(cannot)?;
    let (mut hash, mut block) = (Sha256::new(), vec![0; BLOCK_BYTES]);
    loop {
        let length = file.read(&mut block).await.with_context(cannot)?;
        match block.get(..length) {
            Some(read) if length > 0 => hash.update(read),
            _ => return Ok(hex::encode(hash.finalize())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OF_ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

    fn blocks(text: &'static str) -> impl Stream<Item = std::io::Result<Bytes>> + Unpin {
        stream::iter([Ok(Bytes::from_static(text.as_bytes()))])
    }

    #[tokio::test]
    async fn bytes_are_stored_once_under_their_hash() {
        let place = std::env::temp_dir().join(format!("foldwork-folder-{}", uuid::Uuid::now_v7()));
        let folder = FilesFolder::create(&place).expect("a folder");
        assert!(!folder.store(OF_ABC, 3, blocks("abd")).await.expect("read"), "the hash differs");
        assert!(folder.store(OF_ABC, 3, blocks("abc")).await.expect("stored"));
        assert!(folder.store(OF_ABC, 3, blocks("not read again")).await.expect("stored"));
        fs::write(place.join(OF_ABC), "abd").expect("damaged");
        assert!(folder.store(OF_ABC, 3, blocks("abc")).await.expect("stored again"));
        assert_eq!(fs::read(place.join(OF_ABC)).expect("read"), b"abc");
        let read: Vec<_> = folder.read(OF_ABC, 3).await.expect("there").collect().await;
        assert_eq!(read.len(), 1);
        assert!(folder.read(OF_ABC, 4).await.is_err(), "the size differs");
        assert!(folder.store("../x", 3, blocks("abc")).await.is_err());
        assert_eq!(fs::read_dir(&place).expect("listed").count(), 1);
        fs::remove_dir_all(place).expect("removed");
    }
}
