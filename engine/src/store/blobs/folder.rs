//! Stores the bytes of files in a local folder. The bytes are synced to disk before any file refers to the upload.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::{Path as FilePath, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use futures_util::stream::{self, BoxStream, StreamExt, TryStreamExt};
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{GetOptions, GetResultPayload, ObjectStore};
use tokio::task::{JoinHandle, spawn_blocking};

use super::OpenObjects;
use crate::store::error::{Error, Result};

/// The number of bytes that are gathered for one write.
const WRITE_BYTES: usize = 1 << 20;
/// The number of written bytes after which a sync starts in the background. Such syncs shorten the wait for the final
/// sync.
const SYNC_BYTES: usize = 64 << 20;
/// The size of a block, in bytes. The next block is read while the consumer processes the current block.
const BLOCK_BYTES: u64 = 256 << 10;

/// A block that is being read. Blocks are read in order.
struct PendingBlock {
    block: JoinHandle<io::Result<(File, Bytes)>>,
    /// The number of bytes that follow this block in the requested range.
    behind: u64,
}

impl PendingBlock {
    /// Starts to read the next block of the `remaining` bytes. Returns `None` if no bytes remain.
    fn begin(file: File, remaining: u64) -> Option<PendingBlock> {
        let length = BLOCK_BYTES.min(remaining);
        (length > 0).then(|| PendingBlock {
            block: spawn_blocking(move || read_block(file, length)),
            behind: remaining - length,
        })
    }
}

fn read_block(file: File, length: u64) -> io::Result<(File, Bytes)> {
    let mut block = Vec::with_capacity(usize::try_from(length).map_err(io::Error::other)?);
    (&file).take(length).read_to_end(&mut block)?;
    match block.len() as u64 == length {
        true => Ok((file, block.into())),
        false => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

pub struct BlobFolder {
    files: LocalFileSystem,
}

impl BlobFolder {
    pub fn open(path: &str) -> Result<BlobFolder> {
        let failed = |error: io::Error| Error::Opening(format!("cannot open the files folder {path}: {error}"));
        std::fs::create_dir_all(path).map_err(failed)?;
        let files = LocalFileSystem::new_with_prefix(path).map_err(Error::Blobs)?;
        Ok(BlobFolder { files })
    }

    /// Returns the folder as an object store.
    pub fn into_objects(self) -> OpenObjects {
        let folder = Arc::new(self.files);
        OpenObjects { objects: folder.clone(), prefix: Path::default(), folder: Some(folder) }
    }

    pub async fn write(&self, key: &Path) -> Result<FolderWriter> {
        let path = self.files.path_to_filesystem(key)?;
        let target = path.clone();
        let file = blocking(move || make(&target)).await?;
        Ok(FolderWriter {
            path,
            gathered: Vec::new(),
            gathered_bytes: 0,
            writing: WriteState::Idle(file),
            unsynced_bytes: 0,
            syncing: None,
        })
    }

    pub async fn read(&self, key: &Path, range: Range<u64>) -> Result<BoxStream<'static, Result<Bytes>>> {
        let found = self.files.get_opts(key, GetOptions::default()).await?;
        if range.end > found.meta.size {
            return Err(Error::corrupt(format!(
                "{key} has {} bytes; expected at least {}",
                found.meta.size, range.end
            )));
        }
        let GetResultPayload::File(mut file, _) = found.payload else {
            return Ok(found.into_stream().map_err(Error::Blobs).boxed());
        };
        file.seek(SeekFrom::Start(range.start)).map_err(failed)?;
        let first = PendingBlock::begin(file, range.end - range.start);
        let blocks = stream::try_unfold(first, |reading| async move {
            let Some(PendingBlock { block, behind }) = reading else { return Ok(None) };
            let (file, block) = joined(block).await?;
            Ok(Some((block, PendingBlock::begin(file, behind))))
        });
        Ok(blocks.boxed())
    }

    pub async fn remove(&self, key: &Path) -> Result<()> {
        self.remove_with(key, |path| std::fs::remove_file(path)).await
    }

    /// Removes a folder with all files in it.
    pub async fn remove_all(&self, folder: &Path) -> Result<()> {
        self.remove_with(folder, |path| std::fs::remove_dir_all(path)).await
    }

    async fn remove_with(&self, key: &Path, remove: fn(&FilePath) -> io::Result<()>) -> Result<()> {
        let path = self.files.path_to_filesystem(key)?;
        blocking(move || match remove(&path) {
            Ok(()) => synced_folder(&path),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
        })
        .await
    }
}

/// A file that is being written. No thread is blocked while the writer waits for more bytes.
pub struct FolderWriter {
    path: PathBuf,
    gathered: Vec<Bytes>,
    gathered_bytes: usize,
    writing: WriteState,
    unsynced_bytes: usize,
    syncing: Option<JoinHandle<io::Result<()>>>,
}

enum WriteState {
    Idle(File),
    UnderWay(JoinHandle<io::Result<File>>),
    Failed,
}

impl FolderWriter {
    pub async fn write(&mut self, block: Bytes) -> Result<()> {
        self.gathered_bytes += block.len();
        self.gathered.push(block);
        if self.gathered_bytes < WRITE_BYTES {
            return Ok(());
        }
        self.flush().await
    }

    /// Starts to write the gathered bytes, after the previous write has finished.
    async fn flush(&mut self) -> Result<()> {
        let mut file = self.idle().await?;
        self.sync_meanwhile(&file).await?;
        self.unsynced_bytes += self.gathered_bytes;
        let blocks = std::mem::take(&mut self.gathered);
        self.gathered_bytes = 0;
        self.writing = WriteState::UnderWay(spawn_blocking(move || {
            blocks.iter().try_for_each(|block| file.write_all(block))?;
            Ok(file)
        }));
        Ok(())
    }

    /// Starts to sync the written bytes in the background if at least `SYNC_BYTES` bytes are unsynced and no sync is
    /// running. The result of each sync is checked before the next sync starts, or at the end.
    async fn sync_meanwhile(&mut self, file: &File) -> Result<()> {
        if self.unsynced_bytes < SYNC_BYTES || self.syncing.as_ref().is_some_and(|syncing| !syncing.is_finished()) {
            return Ok(());
        }
        self.synced().await?;
        let file = file.try_clone().map_err(failed)?;
        self.unsynced_bytes = 0;
        self.syncing = Some(spawn_blocking(move || file.sync_data()));
        Ok(())
    }

    async fn synced(&mut self) -> Result<()> {
        match self.syncing.take() {
            Some(syncing) => joined(syncing).await,
            None => Ok(()),
        }
    }

    async fn idle(&mut self) -> Result<File> {
        match std::mem::replace(&mut self.writing, WriteState::Failed) {
            WriteState::Idle(file) => Ok(file),
            WriteState::UnderWay(writing) => joined(writing).await,
            WriteState::Failed => Err(failed(io::Error::other("an earlier write of the file failed"))),
        }
    }

    pub async fn finish(mut self) -> Result<()> {
        self.flush().await?;
        let file = self.idle().await?;
        self.synced().await?;
        let path = self.path;
        blocking(move || {
            file.sync_all()?;
            synced_folder(&path)
        })
        .await
    }
}

/// Creates a new file. Creates the folder of the file if the folder does not exist.
fn make(path: &FilePath) -> io::Result<File> {
    let new = || File::options().write(true).create_new(true).open(path);
    match (new(), path.parent()) {
        (Err(error), Some(folder)) if error.kind() == io::ErrorKind::NotFound => {
            std::fs::create_dir_all(folder)?;
            synced_folder(folder)?;
            new()
        }
        (file, _) => file,
    }
}

/// Syncs the folder that contains a file or folder, so that the creation or removal of the file or folder survives a
/// crash.
fn synced_folder(path: &FilePath) -> io::Result<()> {
    path.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> io::Result<T> + Send + 'static) -> Result<T> {
    joined(spawn_blocking(work)).await
}

async fn joined<T>(work: JoinHandle<io::Result<T>>) -> Result<T> {
    work.await.map_err(io::Error::other).flatten().map_err(failed)
}

fn failed(error: io::Error) -> Error {
    Error::Blobs(object_store::Error::Generic { store: "folder", source: Box::new(error) })
}
