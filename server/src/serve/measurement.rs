//! Measures the store and the open workspaces at regular intervals, for the metrics.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use foldwork_engine::Engine;

use crate::metric::{DISK_FREE_BYTES, DISK_SIZE_BYTES, STORE_FOLDER_BYTES};

/// The interval between measurements.
const INTERVAL: Duration = Duration::from_secs(10);

/// Returns the folder of the store with this URL, or `None` if the store is not in a folder.
pub fn folder_of(url: &str) -> Option<PathBuf> {
    let path = url.strip_prefix("surrealkv://")?;
    Some(path.split_once('?').map_or(path, |(path, _)| path).into())
}

/// Measures until the task is aborted. `folder` is the folder of the store, if the store is in a folder.
pub async fn keep_measuring(engine: Arc<Engine>, folder: Option<PathBuf>) {
    let mut interval = tokio::time::interval(INTERVAL);
    interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        interval.tick().await;
        engine.measure().await;
        if let Some(folder) = folder.clone()
            && let Err(error) = tokio::task::spawn_blocking(move || measure_disk(&folder)).await
        {
            tracing::warn!(%error, "failed to measure the disk usage of the store");
        }
    }
}

fn measure_disk(folder: &Path) {
    match bytes_below(folder) {
        Ok(bytes) => STORE_FOLDER_BYTES.set(&[], bytes as f64),
        Err(error) => tracing::debug!(%error, ?folder, "failed to read the size of the store's folder"),
    }
    match rustix::fs::statvfs(folder) {
        Ok(disk) => {
            DISK_FREE_BYTES.set(&[], disk.f_bavail as f64 * disk.f_frsize as f64);
            DISK_SIZE_BYTES.set(&[], disk.f_blocks as f64 * disk.f_frsize as f64);
        }
        Err(error) => tracing::debug!(%error, ?folder, "failed to read the disk space of the store"),
    }
}

/// Returns the total size of the files in a folder and its subfolders, in bytes. Reads the size of each file, which is
/// fast because a store has few files: its log and its tables.
fn bytes_below(folder: &Path) -> std::io::Result<u64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        match entry.metadata() {
            Ok(metadata) if metadata.is_dir() => bytes += bytes_below(&entry.path())?,
            Ok(metadata) => bytes += metadata.len(),
            // The store may remove a file after the folder was read.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_store_folder_is_known_only_for_surrealkv_urls() {
        assert_eq!(folder_of("surrealkv://data/db?sync=every").as_deref(), Some(Path::new("data/db")));
        assert_eq!(folder_of("surrealkv:///srv/db").as_deref(), Some(Path::new("/srv/db")));
        assert_eq!(folder_of("mem://"), None);
        assert_eq!(folder_of("ws://host:8000"), None);
    }
}
